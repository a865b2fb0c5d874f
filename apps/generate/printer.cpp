#include "apps/generate/printer.h"

#include <cstdio>

namespace braid::apps {

bool Printer::push(int32_t token) {
  show(text_.push(token));
  return !text_.stopped();
}

void Printer::show(const std::string& more) {
  const std::string all = std::exchange(before_, {}) + more;
  std::fwrite(all.data(), 1, all.size(), stdout);
  std::fflush(stdout);
}

}  // namespace braid::apps
