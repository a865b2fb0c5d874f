// The floating-point mode of a thread: how results are rounded, and whether subnormal values become 0. Every thread has
// its own. Libraries built with -ffast-math switch the flush to zero on for the thread that loads them.
#pragma once
#include <cstdint>

namespace braid::detail {

uint64_t float_mode();               // of this thread
void set_float_mode(uint64_t mode);  // a value of float_mode()

// Gives this thread the mode of IEEE 754: to nearest, with subnormal values. True when it had another one.
bool restore_float_mode();

}  // namespace braid::detail
