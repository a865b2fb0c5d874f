// What the files of several instruction sets compile alike: words of pairs and their panels, and the rounding of sums.
// Every function is the including file's own.
#pragma once
#include <immintrin.h>

#include "braid/tensor/cpu/gemm/bf16_kernels.h"

namespace braid::cpu {
namespace {

using Word = uint32_t;

__mmask16 first_of_16(int64_t n) { return static_cast<__mmask16>(n >= 16 ? 0xffffu : (1u << n) - 1u); }
__mmask32 first_of_32(int64_t n) { return n >= 32 ? 0xffffffffu : (1u << n) - 1u; }

// v[i] word j -> v[j] word i.
void transpose(__m512i (&v)[16]) {
  __m512i t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    v[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    v[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    v[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    v[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  // Now 128-bit lane l of v[4 g + c] holds rows 4 g .. 4 g + 3 of word 4 l + c.
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    const __m512i low = _mm512_shuffle_i32x4(v[c], v[4 + c], 0x88), high = _mm512_shuffle_i32x4(v[c], v[4 + c], 0xdd);
    const __m512i low2 = _mm512_shuffle_i32x4(v[8 + c], v[12 + c], 0x88),
                  high2 = _mm512_shuffle_i32x4(v[8 + c], v[12 + c], 0xdd);
    t[c] = _mm512_shuffle_i32x4(low, low2, 0x88);
    t[4 + c] = _mm512_shuffle_i32x4(high, high2, 0x88);
    t[8 + c] = _mm512_shuffle_i32x4(low, low2, 0xdd);
    t[12 + c] = _mm512_shuffle_i32x4(high, high2, 0xdd);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) v[i] = t[i];
}

// Columns whose depth is contiguous: 16 of them by 16 pairs at a time, transposed.
void pack_transposed(const uint16_t* x, int64_t stride, int64_t vectors, int64_t depth, int64_t pairs, Word* panels) {
  for (int64_t base = 0; base < vectors; base += kBf16Columns, panels += kBf16Columns * pairs) {
    for (int64_t group = 0; group < kBf16Columns; group += 16) {
      const int64_t left = vectors - base - group;
      if (left <= 0) {
        for (int64_t p = 0; p < pairs; ++p)
          _mm512_store_si512(panels + p * kBf16Columns + group, _mm512_setzero_si512());
        continue;
      }
      for (int64_t p = 0; p < pairs; p += 16) {
        const __mmask32 mask = first_of_32(depth - 2 * p);
        const uint16_t* from = x + (base + group) * stride + 2 * p;
        __m512i v[16];
        if (left >= 16 && mask == 0xffffffffu) {
#pragma GCC unroll 16
          for (int i = 0; i < 16; ++i) v[i] = _mm512_loadu_si512(from + i * stride);
        } else {
          for (int i = 0; i < 16; ++i)
            v[i] = i < left ? _mm512_maskz_loadu_epi16(mask, from + i * stride) : _mm512_setzero_si512();
        }
        transpose(v);
        Word* to = panels + p * kBf16Columns + group;
        const int64_t count = pairs - p < 16 ? pairs - p : 16;
        for (int64_t i = 0; i < count; ++i) _mm512_store_si512(to + i * kBf16Columns, v[i]);
      }
    }
  }
}

// 16 words of two neighbouring depths, `stride` apart: `real` of them exist, and `depths` of the two.
__m512i interleaved(const uint16_t* even, int64_t stride, __mmask16 real, int64_t depths) {
  const auto words = [&](const uint16_t* from, bool exists) {
    return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(exists ? real : __mmask16(0), from));
  };
  const __m512i low = words(even, depths > 0), high = words(even + stride, depths > 1);
  return _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
}

// Vectors that are contiguous at every depth: two depths are interleaved, panels of `width` vectors, pairs `pitch`
// words apart. Some pairs at a time, so that what neighbouring panels read from the same cache lines is still there.
void pack_interleaved(const uint16_t* x, int64_t depth_stride, int64_t vectors, int64_t depth, int64_t pairs,
                      int64_t width, int64_t pitch, int64_t panel_words, Word* panels) {
  constexpr int64_t kPairs = 8;
  for (int64_t p0 = 0; p0 < pairs; p0 += kPairs) {
    const int64_t end = p0 + kPairs < pairs ? p0 + kPairs : pairs;
    Word* panel = panels;
    for (int64_t base = 0; base < vectors; base += width, panel += panel_words) {
      for (int64_t group = 0; group < width; group += 16) {
        const int64_t max = width - group < 16 ? width - group : 16, left = vectors - base - group;
        const __mmask16 real = first_of_16(left < 0 ? 0 : left < max ? left : max);
        for (int64_t p = p0; p < end; ++p) {
          const uint16_t* even = x + 2 * p * depth_stride + base + group;
          _mm512_store_si512(panel + p * pitch + group, interleaved(even, depth_stride, real, depth - 2 * p));
        }
      }
    }
  }
}

// Panels of kBf16Columns vectors, [pair][vector]; one of the strides is 1.
void pack_panels(const uint16_t* x, int64_t vector_stride, int64_t depth_stride, int64_t vectors, int64_t depth,
                 int64_t pairs, Word* panels) {
  if (depth_stride == 1 || depth == 1)
    pack_transposed(x, vector_stride, vectors, depth, pairs, panels);
  else
    pack_interleaved(x, depth_stride, vectors, depth, pairs, kBf16Columns, kBf16Columns, kBf16Columns * pairs, panels);
}

__m512 widened(__m256i bits) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16)); }

// Calls put(address, mask, sum) for every vector of c with its bias; `old` adds what is there.
template <class Y, class Old, class Put>
void finish(int64_t rows, int64_t columns, const float* c, const float* bias, bool accumulate, Y* y, int64_t ldy,
            Old old, Put put) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; j += 16) {
      const __mmask16 mask = first_of_16(columns - j);
      __m512 sum = _mm512_maskz_loadu_ps(mask, c + i * kBf16Columns + j);
      if (bias) sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, bias + j));
      if (accumulate) sum = _mm512_add_ps(sum, old(mask, y + i * ldy + j));
      put(mask, y + i * ldy + j, sum);
    }
  }
}

void finish_f32(int64_t rows, int64_t columns, const float* c, const float* bias, bool accumulate, float* y,
                int64_t ldy) {
  finish(
      rows, columns, c, bias, accumulate, y, ldy,
      [](__mmask16 mask, const float* at) { return _mm512_maskz_loadu_ps(mask, at); },
      [](__mmask16 mask, float* at, __m512 v) { _mm512_mask_storeu_ps(at, mask, v); });
}

void finish_bf16(int64_t rows, int64_t columns, const float* c, const float* bias, bool accumulate, uint16_t* y,
                 int64_t ldy) {
  finish(
      rows, columns, c, bias, accumulate, y, ldy,
      [](__mmask16 mask, const uint16_t* at) { return widened(_mm256_maskz_loadu_epi16(mask, at)); },
      [](__mmask16 mask, uint16_t* at, __m512 v) {
        _mm256_mask_storeu_epi16(at, mask, reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(v)));
      });
}

}  // namespace
}  // namespace braid::cpu
