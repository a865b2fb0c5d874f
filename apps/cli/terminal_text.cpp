#include "apps/cli/terminal_text.h"

#include <vector>

#include "apps/cli/text.h"

namespace braid::apps {

std::string terminal_text(const std::string& bytes) {
  std::vector<std::string> parts = split(bytes, '\t');
  for (std::string& part : parts) part = printable(part, "\n");
  return join(parts, "\t");
}

}  // namespace braid::apps
