#include "braid/tensor/cpu/int8/groups.h"

#define BRAID_INT8_ISA portable_isa
#include "braid/tensor/cpu/int8/plain.h"

namespace braid::cpu::int8 {

struct Portable {
  typedef int32_t Vector __attribute__((vector_size(16)));
  static constexpr int kTokens = 1;
  static Vector zero() { return Vector{}; }
  static Vector load(const void* p) {
    Vector v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
  }
  static Vector nibbles(const uint8_t* p, int part) {
    return (part < 2 ? load(p + 16 * part) : load(p + 16 * (part - 2)) >> 4) & 0x0f0f0f0f;
  }
  template <int Bits>
  static Vector dot(Vector sum, Vector u, Vector s) {
    for (int k = 0; k < 4; ++k) sum += (u >> 8 * k & 255) * (s << (24 - 8 * k) >> 24);
    return sum;
  }
};

extern constinit const Kernels portable{"portable", false, portable_isa::run, run_groups<Portable, 8>,
                                        run_groups<Portable, 4>};

}  // namespace braid::cpu::int8
