#include "braid/tensor/cpu/int8/groups.h"

#define BRAID_INT8_ISA portable_isa
#include "braid/tensor/cpu/int8/plain.h"

namespace braid::cpu::int8 {

struct Portable {
  typedef int32_t Vector __attribute__((vector_size(16)));
  static constexpr int kGroupRows = 1, kGroupTokens = 4;
  static Vector zero() { return Vector{}; }
  static Vector load(const void* p) {
    Vector v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
  }
  static Vector nibbles(const uint8_t* p, int part) {
    return (part < 2 ? load(p + 16 * part) : load(p + 16 * (part - 2)) >> 4) & 0x0f0f0f0f;
  }
  static Vector pairs(Vector sum, Vector a, Vector b) {
    return sum + (a << 16 >> 16) * (b << 16 >> 16) + (a >> 16) * (b >> 16);
  }
};

extern constinit const Kernels portable{"portable", false, portable_isa::run, run_groups<Portable, 8>,
                                        run_groups<Portable, 4>};

}  // namespace braid::cpu::int8
