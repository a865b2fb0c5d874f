#include "apps/cli/memory_text.h"

#include <sys/resource.h>

#include "apps/cli/text.h"
#include "braid/tensor/error.h"

namespace braid::apps {

std::string bytes_text(double bytes) {
  const char* unit = "B";
  for (const char* next : {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}) {
    if (bytes < 1024) break;
    bytes /= 1024;
    unit = next;
  }
  return human(bytes, bytes < 1000 ? 3 : 4) + " " + unit;
}

double peak_process_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024;  // Linux counts KiB
}

std::string peak_text(const MemoryByUse& memory) {
  std::string text = bytes_text(double(memory.peak()));
  for (size_t i = 0; i < kMemoryUses; ++i) {
    if (memory.max[i] == 0) continue;
    const std::string then = bytes_text(double(memory.at_peak[i])), max = bytes_text(double(memory.max[i]));
    text += str(text.find(':') == std::string::npos ? ": " : ", ", name(static_cast<MemoryUse>(i)), " ", then,
                max == then ? "" : " (at most " + max + ")");
  }
  return text;
}

}  // namespace braid::apps
