#include "braid/tensor/base/processor.h"

#include <cstdlib>
#include <string>

#include "braid/tensor/error.h"

#if defined(__x86_64__)
#include <cpuid.h>
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif
#endif

namespace braid::detail {

namespace {

enum class Allowed : char { portable, avx2, avx512, amx };

Allowed allowed() {
  static const Allowed found = [] {
    const char* text = std::getenv("BRAID_INSTRUCTIONS");
    const std::string name = text ? text : "";
    if (name == "portable") return Allowed::portable;
    if (name == "avx2") return Allowed::avx2;
    if (name == "avx512") return Allowed::avx512;
    check(name.empty() || name == "amx", ErrorKind::setting, [&] {
      return "the environment variable BRAID_INSTRUCTIONS names no instruction set: expected portable, avx2, avx512 or "
             "amx, found " +
             name;
    });
    return Allowed::amx;
  }();
  return found;
}

}  // namespace

bool instructions_limited() { return allowed() < Allowed::avx512; }

#if defined(__x86_64__)

// __builtin_cpu_supports() also asks whether the system saves the vector registers. It has no names of some features in
// clang 14; these are bits of the processor's answer, of vectors that another name stands for.
namespace {

#ifdef BRAID_EMULATE_AVX512  // tests/emulation/avx512.h
constexpr bool kEmulated = true;
#else
constexpr bool kEmulated = false;
#endif

bool has_bit_of_leaf_7_1(unsigned bit) {  // in register EAX
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & (1u << bit)) != 0;
}

// AMX-TILE and AMX-BF16. Linux saves the 8 KiB of tiles only of processes that asked for it.
bool may_use_tiles() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  const unsigned needed = 1u << 24 | 1u << 22;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & needed) != needed) return false;
#ifdef __linux__
  constexpr long request_permission = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILE_DATA
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
#else
  return false;
#endif
}

}  // namespace

bool has_avx2() {
  return allowed() >= Allowed::avx2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return has_avx2() && __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

bool has_avx_vnni() { return has_f16c() && (kEmulated || has_bit_of_leaf_7_1(4)); }

bool has_avx512() {
  return allowed() >= Allowed::avx512 && has_f16c() &&
         (kEmulated || (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")));
}

bool has_avx512_bf16() { return has_avx512() && (kEmulated || has_bit_of_leaf_7_1(5)); }

bool has_amx() {
  static const bool found = allowed() >= Allowed::amx && has_avx512_bf16() && (kEmulated || may_use_tiles());
  return found;
}

bool prefers_avx512_bf16() { return has_avx512_bf16() && (kEmulated || !__builtin_cpu_is("intel")); }

bool has_avx512_vnni() { return has_avx512() && (kEmulated || __builtin_cpu_supports("avx512vnni")); }

bool has_amx_int8() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return has_avx512_vnni() && has_amx() &&
         (kEmulated || (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & 1u << 25) != 0));
}

#else

bool has_avx2() { return false; }
bool has_f16c() { return false; }
bool has_avx_vnni() { return false; }
bool has_avx512() { return false; }
bool has_avx512_bf16() { return false; }
bool has_amx() { return false; }
bool has_amx_int8() { return false; }
bool prefers_avx512_bf16() { return false; }
bool has_avx512_vnni() { return false; }

#endif

}  // namespace braid::detail
