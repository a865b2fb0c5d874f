// The products of product.h by tiles of AMX (tensor/base/tiles.h). A register holds 8 rows of sums or of words, or 16
// rows of words on the right side: eight keys or queries at a time, 32 deep.
#pragma once
#include <utility>

#include "braid/tensor/base/tiles.h"
#include "braid/tensor/cpu/attention/problem.h"
#include "braid/tensor/cpu/attention/transpose.h"
#include "braid/tensor/cpu/attention/vector.h"

namespace braid::cpu::attention::BRAID_ATTENTION_ISA {

inline constexpr int64_t kTileWords = 16;  // of a row of a register
static_assert(kQueryTileRows == 8 && kLanes<float> == kTileWords);

inline void configure_tiles() {
  static constexpr tiles::Shapes shapes = tiles::shapes_of(kQueryTileRows);
  tiles::configure(shapes);
}

// Calls body.operator()<V>() for V = 0 .. N - 1: registers are known to the compiler only.
template <int N, class Body>
[[gnu::always_inline]] inline void for_registers(Body&& body) {
  [&]<int... V>(std::integer_sequence<int, V...>) { (body.template operator()<V>(), ...); }
  (std::make_integer_sequence<int, N>());
}
// Calls body.operator()<N>(first) so that `count` are covered, at most Most at a time.
template <int Most, class Body>
[[gnu::always_inline]] inline void for_groups(int64_t count, Body&& body) {
  int64_t i = 0;
  for (; count - i >= Most; i += Most) body.template operator()<Most>(i);
  if constexpr (Most > 1) {
    if (i < count) for_groups<Most - 1>(count - i, [&]<int N>(int64_t at) { body.template operator()<N>(i + at); });
  }
}

// Rows of the right side, `stride` apart, as a register reads them: where fewer than 16 exist, a copy with zeros.
class RightSide {
 public:
  const float* of(const float* rows, int64_t stride, int64_t count) {
    if (count == kTileWords) return rows;
    for (int64_t r = 0; r < kTileWords; ++r)
      store(copy_ + r * kTileWords, r < count ? load(rows + r * stride) : V<float>{});
    return copy_;
  }
  static int64_t bytes_apart(int64_t stride, int64_t count) { return (count == kTileWords ? stride : kTileWords) * 4; }

 private:
  alignas(64) float copy_[kTileWords * kTileWords];
};

// depth: of a key vector, in words, a multiple of 16.
inline void scores_by_tiles(const float* x, int64_t x_stride, const float* key_vectors, int64_t depth, int64_t count,
                            float factor, float* score_tiles, int64_t vector_stride) {
  for_groups<4>(count, [&]<int N>(int64_t s) {
    const float* keys = key_vectors + s * depth * kTileWords;
    float* out = score_tiles + s * vector_stride;
    for_registers<N>([]<int I>() { tiles::zero<I>(); });
    for (int64_t k = 0; k < depth; k += kTileWords) {
      tiles::load<4>(x + k, x_stride * 4);
      for_registers<N>([&]<int I>() {
        tiles::load<6 + I % 2>(keys + (I * depth + k) * kTileWords, 64);
        tiles::multiply<I, 4, 6 + I % 2>();
      });
    }
    for_registers<N>([&]<int I>() { tiles::store<I>(out + I * vector_stride, 64); });
    if (factor == 1) return;
    for (int i = 0; i < N; ++i) {
      float* tile = out + i * vector_stride;
      for (int64_t r = 0; r < kQueryTileRows; ++r) store(tile + r * kTileWords, load(tile + r * kTileWords) * factor);
    }
  });
}

// Most: of `count`.
template <int64_t Most>
inline void rows_times_by_tiles(const float* score_tiles, int64_t vector_stride, int64_t count, const float* rows,
                                int64_t row_stride, int64_t vectors, float* out, int64_t out_stride) {
  constexpr int64_t half = kTileWords / 2, register_words = kQueryTileRows * kTileWords;
  alignas(64) float words[(Most + 1) / 2 * register_words];  // [two key vectors][row][word]
  for (int64_t s = 0; s < count; ++s) {
    for (int64_t r = 0; r < kQueryTileRows; ++r)
      store_pairs(words + s / 2 * register_words + r * kTileWords + s % 2 * half,
                  load(score_tiles + s * vector_stride + r * kTileWords));
  }
  if (count % 2 == 1) {
    for (int64_t r = 0; r < kQueryTileRows; ++r)
      __builtin_memset(words + count / 2 * register_words + r * kTileWords + half, 0, half * sizeof(float));
  }
  for_groups<4>(vectors, [&]<int N>(int64_t v) {
    for_registers<N>([&]<int I>() { tiles::load<I>(out + (v + I) * kTileWords, out_stride * 4); });
    for (int64_t s = 0; s < count; s += 2) {
      const int64_t real = s + 1 < count ? kTileWords : half;
      tiles::load<4>(words + s / 2 * register_words, 64);
      for_registers<N>([&]<int I>() {
        RightSide right;
        const float* b = right.of(rows + s * half * row_stride + (v + I) * kTileWords, row_stride, real);
        tiles::load<6 + I % 2>(b, RightSide::bytes_apart(row_stride, real));
        tiles::multiply<I, 4, 6 + I % 2>();
      });
    }
    for_registers<N>([&]<int I>() { tiles::store<I>(out + (v + I) * kTileWords, out_stride * 4); });
  });
}

// Most: of `query_tiles`.
template <int64_t Most>
inline void keys_times_by_tiles(const float* score_tiles, int64_t query_tile_stride, int64_t query_tiles,
                                const float* rows, int64_t d_padded, float* out) {
  constexpr int64_t pairs = kQueryTileRows / 2, together = kTileWords / pairs;          // query tiles of a register
  alignas(64) float words[(Most + together - 1) / together * kTileWords * kTileWords];  // [4 query tiles][key][word]
  for (int64_t first = 0; first < query_tiles; first += together) {
    V<float> v[kTileWords];
    for (int64_t i = 0; i < together; ++i) {
      const float* tile = score_tiles + (first + i) * query_tile_stride;
      for (int64_t r = 0; r < pairs; ++r)
        v[i * pairs + r] = first + i < query_tiles
                               ? pair_words(load(tile + 2 * r * kTileWords), load(tile + (2 * r + 1) * kTileWords))
                               : V<float>{};
    }
    transpose<kTileWords / 2, float>(v);
    for (int64_t key = 0; key < kTileWords; ++key) store(words + (first * pairs + key) * kTileWords, v[key]);
  }
  const int64_t below = kQueryTileRows * d_padded;  // the sums of keys 8 to 15
  for_groups<2>(d_padded / kTileWords, [&]<int N>(int64_t v) {
    float* c = out + v * kTileWords;
    for_registers<N>([&]<int I>() {
      tiles::load<2 * I>(c + I * kTileWords, d_padded * 4);
      tiles::load<2 * I + 1>(c + I * kTileWords + below, d_padded * 4);
    });
    for (int64_t first = 0; first < query_tiles; first += together) {
      const float* a = words + first * pairs * kTileWords;
      const int64_t left = query_tiles - first, real = left < together ? left * pairs : kTileWords;
      tiles::load<4>(a, 64);
      tiles::load<5>(a + kQueryTileRows * kTileWords, 64);
      for_registers<N>([&]<int I>() {
        RightSide right;
        const float* b = right.of(rows + first * pairs * d_padded + (v + I) * kTileWords, d_padded, real);
        tiles::load<6 + I>(b, RightSide::bytes_apart(d_padded, real));
        tiles::multiply<2 * I, 4, 6 + I>();
        tiles::multiply<2 * I + 1, 5, 6 + I>();
      });
    }
    for_registers<N>([&]<int I>() {
      tiles::store<2 * I>(c + I * kTileWords, d_padded * 4);
      tiles::store<2 * I + 1>(c + I * kTileWords + below, d_padded * 4);
    });
  });
}

}  // namespace braid::cpu::attention::BRAID_ATTENTION_ISA
