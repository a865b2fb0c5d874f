#include "braid/tensor/base/float_mode.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace braid::detail {

#if defined(__x86_64__)

// Bits of the control register: flush to zero, the direction of rounding, and subnormal inputs as zeros.
constexpr uint64_t kMode = 0x8000 | 0x6000 | 0x0040;

uint64_t float_mode() { return _mm_getcsr() & kMode; }
void set_float_mode(uint64_t mode) {
  _mm_setcsr((_mm_getcsr() & ~static_cast<uint32_t>(kMode)) | static_cast<uint32_t>(mode));
}

#elif defined(__aarch64__)

// Bits of FPCR: flush to zero, in f32 and f64 and in f16, and the direction of rounding.
constexpr uint64_t kMode = 1u << 24 | 1u << 19 | 3u << 22;

static uint64_t control() {
  uint64_t value;
  asm volatile("mrs %0, fpcr" : "=r"(value));
  return value;
}
uint64_t float_mode() { return control() & kMode; }
void set_float_mode(uint64_t mode) { asm volatile("msr fpcr, %0" : : "r"((control() & ~kMode) | mode)); }

#else

uint64_t float_mode() { return 0; }
void set_float_mode(uint64_t) {}

#endif

bool restore_float_mode() {
  const bool changed = float_mode() != 0;
  if (changed) set_float_mode(0);
  return changed;
}

}  // namespace braid::detail
