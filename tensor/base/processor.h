// Vector instructions that the processor has and the system lets programs use; none on other architectures than x86-64.
//
// The environment variable BRAID_INSTRUCTIONS allows fewer, to compare or to test them: portable (none of these), avx2
// (none of AVX-512), avx512 (no AMX) or amx (all). Any other value: Error(setting). oneDNN chooses for itself
// (ONEDNN_MAX_CPU_ISA).
#pragma once

namespace braid::detail {

bool instructions_limited();  // by BRAID_INSTRUCTIONS

bool has_avx2();         // and FMA
bool has_f16c();         // beside AVX2: conversions of 16-bit floats
bool has_avx_vnni();     // beside AVX2 and F16C: sums of products of 8-bit numbers
bool has_avx512();       // F, BW, DQ and VL, beside AVX2 and F16C
bool has_avx512_vnni();  // beside these: sums of products of 8-bit numbers
bool has_avx512_bf16();  // beside these: sums of products of bf16
bool has_amx();          // beside AVX512-BF16: products of tiles of bf16, which the system was asked for
bool has_amx_int8();     // beside AVX512-VNNI and AMX: products of tiles of 8-bit numbers

// Has AVX512-BF16, and it multiplies faster than f32 does. An instruction sums 32 products where one of f32 takes 16.
// AMD's processors (Zen 4, Zen 5) start as many of the first a cycle as of the second; Intel's Emerald Rapids was
// measured at a quarter: 1.34e9 against 5.49e9 a second on one core.
bool prefers_avx512_bf16();

}  // namespace braid::detail
