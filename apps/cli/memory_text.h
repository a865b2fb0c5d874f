// Bytes in words.
#pragma once
#include <string>

#include "braid/tensor/memory.h"

namespace braid::apps {

std::string bytes_text(double bytes);  // "12.3 MB", from 100 MB on "0.12 GB"
// Most memory that the process has had so far, in bytes, code and libraries included.
double peak_process_bytes();
// "61.2 MB: weights 4.6 MB, gradients 1.1 MB (at most 4.6 MB), ...": the parts at the moment when the sum was largest,
// and the most of a part where that was at another moment. Uses that never had anything are left out.
std::string peak_text(const MemoryByUse& memory);

}  // namespace braid::apps
