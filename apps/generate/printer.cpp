#include "apps/generate/printer.h"

#include <unistd.h>

#include <cstdio>

#include "apps/cli/terminal_text.h"
#include "braid/distributed/comm/mpi_session.h"

namespace braid::apps {

Printer::Printer(const models::text::Tokenizer& tokenizer, std::vector<std::string> stops, std::string before)
    : text_(tokenizer, std::move(stops)),
      before_(std::move(before)),
      terminal_(::isatty(STDOUT_FILENO) != 0 && !dist::launched_by_mpi()) {}

bool Printer::push(int32_t token) {
  show(text_.push(token));
  return !text_.stopped();
}

void Printer::show(const std::string& more) {
  std::string all = std::exchange(before_, {}) + more;
  if (terminal_) all = terminal_text(all);
  std::fwrite(all.data(), 1, all.size(), stdout);
  std::fflush(stdout);
}

}  // namespace braid::apps
