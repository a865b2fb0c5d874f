#include "apps/generate/printer.h"

#include <algorithm>
#include <cstdio>

namespace braid::apps {

bool Printer::show(const std::string& more, bool last) {
  std::fwrite(before_.data(), 1, before_.size(), stdout);
  before_.clear();
  held_ += more;
  size_t cut = std::string::npos, keep = 0;
  for (const std::string& stop : stops_) {
    cut = std::min(cut, held_.find(stop));
    for (size_t n = std::min(stop.size() - 1, held_.size()); n > keep; --n) {
      if (held_.compare(held_.size() - n, n, stop, 0, n) == 0) keep = n;
    }
  }
  size_t ready = cut != std::string::npos ? cut : last ? held_.size() : held_.size() - keep;
  std::fwrite(held_.data(), 1, ready, stdout);
  std::fflush(stdout);
  held_.erase(0, cut != std::string::npos ? held_.size() : ready);
  return cut == std::string::npos;
}

}  // namespace braid::apps
