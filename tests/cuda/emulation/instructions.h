// The functions of cuda/device/instructions.cuh, which says what they mean, as operations of 32 fibers.
#pragma once
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "braid/tensor/dtype.h"
#include "tests/cuda/emulation/engine.h"

namespace braid::cuda {

// Lane 8t+r reads, or writes, row r of tile t itself, so that order and sanitizers see that lane's access.
struct TileRow {
  uint32_t pair[4];
};

// A tile moves in one pass when its rows lie in 8 different groups of 4 banks.
template <int n>
void count_bank_conflicts(const void* const (&row)[8 * n]) {
  emulated::statistics().tiles += n;
  for (int t = 0; t < n; ++t) {
    int max = 0, in_group[8] = {};
    for (int r = 0; r < 8; ++r) {
      int& rows = in_group[reinterpret_cast<uintptr_t>(row[8 * t + r]) / 16 % 8];
      max = ++rows > max ? rows : max;
    }
    emulated::statistics().bank_conflicts += static_cast<uint64_t>(max - 1);
  }
}

template <bool transposed = false, int n>
void ldmatrix(uint32_t (&out)[n], const void* row, const emulated::Where& where = emulated::Where::current()) {
  static_assert(n == 1 || n == 2 || n == 4, "ldmatrix moves 1, 2 or 4 tiles");
  struct Lane {
    TileRow row;
    const void* address;
    uint32_t* out;
  } mine{{}, row, out};
  if (emulated::lane() < 8 * n) {
    emulated::require_shared("ldmatrix", row, sizeof(TileRow));
    mine.row = *static_cast<const TileRow*>(row);
  }
  emulated::together(
      "ldmatrix", emulated::Lanes::all, ~0u, mine,
      [](const std::array<Lane*, 32>& lanes) {
        const void* addresses[8 * n];
        for (size_t l = 0; l < 8 * n; ++l) addresses[l] = lanes[l]->address;
        count_bank_conflicts<n>(addresses);
        const auto element = [&](size_t t, size_t r, size_t c) {
          return lanes[8 * t + r]->row.pair[c / 2] >> 16 * (c % 2) & 0xffffu;
        };
        for (size_t t = 0; t < n; ++t) {
          for (size_t l = 0; l < 32; ++l) {
            const size_t i = l / 4, k = 2 * (l % 4);
            lanes[l]->out[t] = transposed ? element(t, k, i) | element(t, k + 1, i) << 16
                                          : element(t, i, k) | element(t, i, k + 1) << 16;
          }
        }
      },
      where);
}

template <bool transposed = false, int n>
void stmatrix(void* row, const uint32_t (&in)[n], const emulated::Where& where = emulated::Where::current()) {
  static_assert(n == 1 || n == 2 || n == 4, "stmatrix moves 1, 2 or 4 tiles");
  struct Lane {
    TileRow row;
    const void* address;
    const uint32_t* in;
  } mine{{}, row, in};
  if (emulated::lane() < 8 * n) emulated::require_shared("stmatrix", row, sizeof(TileRow));
  emulated::together(
      "stmatrix", emulated::Lanes::all, ~0u, mine,
      [](const std::array<Lane*, 32>& lanes) {
        const void* addresses[8 * n];
        for (size_t l = 0; l < 8 * n; ++l) addresses[l] = lanes[l]->address;
        count_bank_conflicts<n>(addresses);
        for (size_t t = 0; t < n; ++t) {
          for (size_t l = 0; l < 32; ++l) {
            for (size_t k = 2 * (l % 4); k <= 2 * (l % 4) + 1; ++k) {  // element k of row l/4, or of column l/4
              const size_t r = transposed ? k : l / 4, c = transposed ? l / 4 : k;
              lanes[8 * t + r]->row.pair[c / 2] |= (lanes[l]->in[t] >> 16 * (k % 2) & 0xffffu) << 16 * (c % 2);
            }
          }
        }
      },
      where);
  if (emulated::lane() < 8 * n) *static_cast<TileRow*>(row) = mine.row;
}

template <class T>
T kept(T x) {  // about registers only
  return x;
}
template <class T>
T* kept_shared(T* p) {
  return p;
}
inline float low_bf16(uint32_t pair) { return std::bit_cast<float>(pair << 16); }
inline float high_bf16(uint32_t pair) { return std::bit_cast<float>(pair & 0xffff0000u); }
inline uint32_t pack_bf16(float low, float high) {
  return bfloat16::from_float(low) | static_cast<uint32_t>(bfloat16::from_float(high)) << 16;
}
// A product of two bf16 is exact in f32, so one rounding of the sum to f32 comes before the one to bf16.
inline uint32_t fma_bf16x2(uint32_t a, uint32_t b, uint32_t c) {
  return pack_bf16(std::fma(low_bf16(a), low_bf16(b), low_bf16(c)), std::fma(high_bf16(a), high_bf16(b), high_bf16(c)));
}
inline uint32_t negative_bf16x2(uint32_t a) { return a ^ 0x80008000u; }
inline uint32_t multiply_bf16x2(uint32_t a, uint32_t b) { return fma_bf16x2(a, b, 0x80008000u); }

// The product of depth 8 or 16.
template <size_t depth>
void mma_bf16(float (&c)[4], const uint32_t (&a)[depth / 4], const uint32_t (&b)[depth / 8],
              const emulated::Where& where) {
  struct Lane {
    const uint32_t *a, *b;
    float* c;
  } mine{a, b, c};
  emulated::together(
      "mma_bf16", emulated::Lanes::all, ~0u, mine,
      [](const std::array<Lane*, 32>& lanes) {
        ++emulated::statistics().mma;
        float left[16][depth], right[depth][8], sum[16][8];
        for (size_t l = 0; l < 32; ++l) {
          const size_t g = l / 4, t = l % 4;
          for (size_t i = 0; i < depth / 4; ++i) {
            const size_t row = g + 8 * (i % 2), column = 2 * t + 8 * (i / 2);
            left[row][column] = low_bf16(lanes[l]->a[i]);
            left[row][column + 1] = high_bf16(lanes[l]->a[i]);
          }
          for (size_t i = 0; i < 4; ++i) sum[g + 8 * (i / 2)][2 * t + i % 2] = lanes[l]->c[i];
          for (size_t i = 0; i < depth / 8; ++i) {
            right[2 * t + 8 * i][g] = low_bf16(lanes[l]->b[i]);
            right[2 * t + 8 * i + 1][g] = high_bf16(lanes[l]->b[i]);
          }
        }
        for (size_t m = 0; m < 16; ++m) {
          for (size_t k = 0; k < depth; ++k) {
            for (size_t n = 0; n < 8; ++n) sum[m][n] += left[m][k] * right[k][n];
          }
        }
        for (size_t l = 0; l < 32; ++l) {
          for (size_t i = 0; i < 4; ++i) lanes[l]->c[i] = sum[l / 4 + 8 * (i / 2)][2 * (l % 4) + i % 2];
        }
      },
      where);
}
inline void mma_bf16(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1,
                     const emulated::Where& where = emulated::Where::current()) {
  mma_bf16<16>(c, a, {b0, b1}, where);
}
inline void mma_bf16(float (&c)[4], uint32_t a0, uint32_t a1, uint32_t b0,
                     const emulated::Where& where = emulated::Where::current()) {
  mma_bf16<8>(c, {a0, a1}, {b0}, where);
}

template <int bytes>
void copy_async(void* to, const void* from, bool valid = true) {
  static_assert(bytes == 4 || bytes == 8 || bytes == 16, "copy_async moves 4, 8 or 16 bytes");
  emulated::require_shared("copy_async", to, bytes);
  if (reinterpret_cast<uintptr_t>(from) % bytes != 0) emulated::fail("copy_async: the source is not aligned");
  emulated::copy_async(to, from, bytes, valid);
}
inline void copy_async_commit() { emulated::copy_async_commit(); }
template <int n>
void copy_async_wait() {
  emulated::copy_async_wait(n);
}

inline uint4 read_16(const void* from) {
  if (reinterpret_cast<uintptr_t>(from) % 16 != 0) emulated::fail("read_16: the address is not aligned");
  uint4 v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
inline void write_16(void* to, uint4 v) {
  if (reinterpret_cast<uintptr_t>(to) % 16 != 0) emulated::fail("write_16: the address is not aligned");
  std::memcpy(to, &v, sizeof v);
}

inline float exp2_approx(float x) {
  const float y = std::exp2(x);
  return y < std::numeric_limits<float>::min() ? 0.0f : y;
}

}  // namespace braid::cuda
