// The products of tiles (tensor/base/tiles.h) against plain loops. Compiled twice: as the instructions and in
// emulation. The file that includes this one says which: CHECK_NAMESPACE. Nothing of the standard library is included:
// one of its inline functions compiled here could be the one that the whole program runs.
#include <stdint.h>

#include "braid/tensor/base/tiles.h"

namespace braid::test::CHECK_NAMESPACE {
namespace {

float f32(uint32_t bits) {
  float x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}
uint32_t bits_of(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
}
// Below 2^-126 it is zero of the same sign; before rounding, which could make it 2^-126.
float flushed(float x) { return __builtin_fabsf(x) < 0x1p-126f ? __builtin_copysignf(0, x) : x; }

struct Random {
  uint64_t state = 1;
  uint32_t bits() {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>(state >> 32);
  }
  // Mostly numbers of moderate size, so that sums round often; some subnormal, zero, tiny. No infinity and no NaN.
  uint32_t bf16() {
    const uint32_t x = bits(), kind = bits() % 32;
    const uint32_t exponent = kind == 0 ? 0 : kind == 1 ? 30 + bits() % 60 : 120 + bits() % 12;
    return kind == 2 ? x & 0x8000 : (x & 0x807f) | exponent << 7;
  }
  uint32_t pair() { return bf16() | bf16() << 16; }
};

struct Matrices {
  alignas(64) uint32_t a[16][16], b[16][16];  // pairs: (rows, words), (words, 16)
  alignas(64) float c[16][16];

  void draw(Random& random) {
    for (auto& row : a)
      for (auto& word : row) word = random.pair();
    for (auto& row : b)
      for (auto& word : row) word = random.pair();
    for (auto& row : c)
      for (auto& x : row) x = f32(random.bf16() << 16 | (random.bits() & 0xffff));
  }
  void multiply(int rows, int words) {  // what tiles::multiply means
    for (int m = 0; m < rows; ++m) {
      for (int n = 0; n < 16; ++n) {
        float chain[2] = {};
        for (int k = 0; k < words; ++k) {
          for (int half = 0; half < 2; ++half) {
            const auto value = [&](uint32_t word) { return flushed(f32(half == 0 ? word << 16 : word & 0xffff0000)); };
            chain[half] = flushed(__builtin_fmaf(value(a[m][k]), value(b[k][n]), chain[half]));
          }
        }
        c[m][n] = flushed(flushed(c[m][n]) + flushed(chain[0] + chain[1]));
      }
    }
  }
};

}  // namespace

// How many sums of random products of bytes differ.
int different_byte_sums() {
  namespace tiles = braid::cpu::tiles;
  Random random;
  int different = 0;
  for (int trial = 0; trial < 500; ++trial) {
    const int rows = 1 + static_cast<int>(random.bits() % 16), words = 1 + static_cast<int>(random.bits() % 16);
    alignas(64) uint8_t a[16][64];
    alignas(64) int8_t b[16][64];
    alignas(64) int32_t c[16][16], got[16][16] = {};
    for (int i = 0; i < 1024; ++i) {
      a[i / 64][i % 64] = static_cast<uint8_t>(trial == 0 ? 255 : random.bits() >> 24);
      b[i / 64][i % 64] = static_cast<int8_t>(trial == 0 ? -128 : static_cast<int>(random.bits() >> 24) - 128);
    }
    for (auto& row : c)
      for (auto& x : row) x = static_cast<int32_t>(random.bits() >> 8);
    tiles::Shapes shapes;
    shapes.set(2, rows, 64).set(4, rows, 4 * words).set(6, words, 64);
    tiles::configure(shapes);
    tiles::load<2>(c, 64);
    tiles::load<4>(a, 64);
    tiles::load<6>(b, 64);
    tiles::multiply_bytes<2, 4, 6>();
    tiles::store<2>(got, 64);
    tiles::release();
    for (int m = 0; m < rows; ++m) {
      for (int n = 0; n < 16; ++n) {
        int32_t sum = c[m][n];
        for (int k = 0; k < 4 * words; ++k) sum += a[m][k] * b[k / 4][4 * n + k % 4];
        different += got[m][n] != sum;
      }
    }
  }
  return different;
}

// How many sums of random products differ in a bit; rows and words of registers of all sizes.
int different_sums() {
  namespace tiles = braid::cpu::tiles;
  Random random;
  int different = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    const int rows = 1 + static_cast<int>(random.bits() % 16), words = 1 + static_cast<int>(random.bits() % 16);
    Matrices x;
    x.draw(random);
    alignas(64) float got[16][16];
    for (auto& row : got)
      for (auto& value : row) value = -1;
    tiles::Shapes shapes;
    shapes.set(1, rows, 64).set(5, rows, 4 * words).set(7, words, 64);
    tiles::configure(shapes);
    tiles::load<1>(x.c, 64);
    tiles::load<5>(x.a, 64);
    tiles::load<7>(x.b, 64);
    tiles::multiply<1, 5, 7>();
    tiles::store<1>(got, 64);
    tiles::zero<1>();
    tiles::multiply<1, 5, 7>();
    alignas(64) float from_zero[16][16];
    tiles::store<1>(from_zero, 64);
    tiles::release();
    Matrices zero = x;
    for (auto& row : zero.c)
      for (auto& value : row) value = 0;
    x.multiply(rows, words);
    zero.multiply(rows, words);
    for (int m = 0; m < 16; ++m) {
      for (int n = 0; n < 16; ++n) {
        different += bits_of(got[m][n]) != bits_of(m < rows ? x.c[m][n] : -1.0f);  // rows beyond are not written
        if (m < rows) different += bits_of(from_zero[m][n]) != bits_of(zero.c[m][n]);
      }
    }
  }
  return different;
}

}  // namespace braid::test::CHECK_NAMESPACE
