// Bytes in words.
#pragma once
#include <string>

#include "tensor/memory.h"

namespace braid::app {

std::string bytes_text(double bytes);  // "12.3 MB", from 100 MB on "0.12 GB"
// "weights 4.6 MB, gradients 4.6 MB, ..., 61.2 MB in all": the parts at the moment when the sum was largest. Uses that
// had nothing then are left out.
std::string peak_text(const MemoryByUse& memory);

}  // namespace braid::app
