#include "braid/tensor/cpu/int8/groups.h"

#define BRAID_INT8_ISA portable_isa
#include "braid/tensor/cpu/int8/plain.h"

namespace braid::cpu::int8 {

struct Portable {
  typedef int32_t Vector __attribute__((vector_size(16)));
  typedef float Float __attribute__((vector_size(16)));
  static constexpr int kGroupTokens = 1, kGroupVectors = 4;
  static constexpr bool kShort = true;
  static Vector load(const void* p) {
    Vector v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
  }
  static Vector spread(int32_t x) { return Vector{} + x; }
  static Vector dot(Vector sum, Vector u, Vector s) {
    typedef int16_t Words __attribute__((vector_size(16)));
    const auto a = reinterpret_cast<Words>(u), b = reinterpret_cast<Words>(s);
    return reinterpret_cast<Vector>(reinterpret_cast<Words>(sum) + (a & 255) * (b << 8 >> 8) + (a >> 8) * (b >> 8));
  }
  static Vector pairs(Vector sum, Vector a, Vector b) {
    return sum + (a << 16 >> 16) * (b << 16 >> 16) + (a >> 16) * (b >> 16);
  }
};

extern constinit const Kernels portable{"portable", false, portable_isa::run, group_kernels<Portable, 8>,
                                        group_kernels<Portable, 4>};

}  // namespace braid::cpu::int8
