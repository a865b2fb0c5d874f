// Bytes in words.
#pragma once
#include <string>

#include "braid/tensor/memory.h"

namespace braid::apps {

// "12.3 MiB", "1.40 GiB": the one form for memory, files and messages. Rates of links are GB/s, as links are sold.
std::string bytes_text(double bytes);
// Most memory that the process has had so far, in bytes, code and libraries included.
double peak_process_bytes();
// "61.2 MiB: weights 4.60 MiB, gradients 1.10 MiB (at most 4.60 MiB), ...": the parts at the moment when the sum was
// largest, and the most of a part where that was at another moment. Uses that never had anything are left out.
std::string peak_text(const MemoryByUse& memory);

}  // namespace braid::apps
