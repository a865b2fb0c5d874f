// The types of GGUF files and the values of their blocks (gguf.md). Compiled without fused multiplications, so that the
// values are the same on every processor.
#include <algorithm>
#include <cstring>

#include "braid/tensor/io/gguf_format.h"

namespace braid::io {

namespace {

using Bytes = const uint8_t*;

float f16_at(Bytes p) {
  uint16_t bits = 0;
  std::memcpy(&bits, p, sizeof bits);
  return float16::to_float(bits);
}

// `bits` of a byte from bit `from` on.
int bits_of(int byte, int from, int bits) { return byte >> from & ((1 << bits) - 1); }
// Value i of 32: the lower half of byte j holds value j, the upper one value j + 16.
int half_of(Bytes q, int i) { return bits_of(q[i % 16], i / 16 * 4, 4); }

void q8_0(Bytes b, float* y) {
  for (int i = 0; i < 32; ++i) y[i] = f16_at(b) * static_cast<float>(static_cast<int8_t>(b[2 + i]));
}

// Q4_0, Q4_1, Q5_0, Q5_1.
template <int bits, bool minimum>
void q4_q5(Bytes b, float* y) {
  const float d = f16_at(b), m = minimum ? f16_at(b + 2) : 0;
  const Bytes fifth = b + (minimum ? 4 : 2), halves = fifth + (bits == 5 ? 4 : 0);
  for (int i = 0; i < 32; ++i) {
    const int q = half_of(halves, i) | (bits == 5 ? bits_of(fifth[i / 8], i % 8, 1) << 4 : 0);
    y[i] = minimum ? d * static_cast<float>(q) + m : d * static_cast<float>(q - (1 << (bits - 1)));
  }
}

constexpr float kNonLinear[] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

void iq4_nl(Bytes b, float* y) {
  for (int i = 0; i < 32; ++i) y[i] = f16_at(b) * kNonLinear[half_of(b + 2, i)];
}

void iq4_xs(Bytes b, float* y) {
  for (int i = 0; i < 256; ++i) {
    const int g = i / 32;
    const int scale = bits_of(b[4 + g / 2], g % 2 * 4, 4) | bits_of(b[2 + g / 4], g % 4 * 2, 2) << 4;
    y[i] = f16_at(b) * static_cast<float>(scale - 32) * kNonLinear[half_of(b + 8 + 16 * g, i % 32)];
  }
}

// Two bits of element i of 256: those of 128 elements lie in 32 bytes.
int quarter_of(Bytes q, int i) { return bits_of(q[i / 128 * 32 + i % 32], i % 128 / 32 * 2, 2); }

void q2_k(Bytes b, float* y) {
  const float d = f16_at(b + 80), m = f16_at(b + 82);
  for (int i = 0; i < 256; ++i) {
    const int scale = b[i / 16];
    y[i] = d * static_cast<float>(scale & 15) * static_cast<float>(quarter_of(b + 16, i)) -
           m * static_cast<float>(scale >> 4);
  }
}

void q3_k(Bytes b, float* y) {
  const float d = f16_at(b + 108);
  const Bytes scales = b + 96;
  for (int i = 0; i < 256; ++i) {
    const int s = i / 16, third = bits_of(b[i % 32], i / 32, 1);
    const int scale = bits_of(scales[s % 8], s / 8 * 4, 4) | bits_of(scales[8 + s % 4], s / 4 * 2, 2) << 4;
    y[i] = d * static_cast<float>(scale - 32) * static_cast<float>(quarter_of(b + 32, i) + 4 * third - 4);
  }
}

// Q4_K, Q5_K.
template <int bits>
void q4_k_q5_k(Bytes b, float* y) {
  const float d = f16_at(b), m = f16_at(b + 2);
  const Bytes s = b + 4, fifth = b + 16, halves = fifth + (bits == 5 ? 32 : 0);
  for (int i = 0; i < 256; ++i) {
    const int g = i / 32, low = s[g], high = s[g + 4], j = g - 4;
    const int scale = g < 4 ? low & 63 : (high & 15) | s[j] >> 6 << 4;
    const int minimum = g < 4 ? high & 63 : high >> 4 | low >> 6 << 4;
    const int q =
        bits_of(halves[g / 2 * 32 + i % 32], g % 2 * 4, 4) | (bits == 5 ? bits_of(fifth[i % 32], g, 1) << 4 : 0);
    y[i] = d * static_cast<float>(scale) * static_cast<float>(q) - m * static_cast<float>(minimum);
  }
}

void q6_k(Bytes b, float* y) {
  const float d = f16_at(b + 208);
  for (int i = 0; i < 256; ++i) {
    const int low = bits_of(b[i / 128 * 64 + i % 64], i % 128 / 64 * 4, 4), high = quarter_of(b + 128, i);
    y[i] = d * static_cast<float>(static_cast<int8_t>(b[192 + i / 16])) * static_cast<float>((low | high << 4) - 32);
  }
}

// Sizes do not change any more. Without a function: values as they are, or a type that is not read.
constexpr GgufType kTypes[] = {{0, "F32", 1, 4},
                               {1, "F16", 1, 2},
                               {30, "BF16", 1, 2},
                               {2, "Q4_0", 32, 18, q4_q5<4, false>},
                               {3, "Q4_1", 32, 20, q4_q5<4, true>},
                               {6, "Q5_0", 32, 22, q4_q5<5, false>},
                               {7, "Q5_1", 32, 24, q4_q5<5, true>},
                               {8, "Q8_0", 32, 34, q8_0},
                               {10, "Q2_K", 256, 84, q2_k},
                               {11, "Q3_K", 256, 110, q3_k},
                               {12, "Q4_K", 256, 144, q4_k_q5_k<4>},
                               {13, "Q5_K", 256, 176, q4_k_q5_k<5>},
                               {14, "Q6_K", 256, 210, q6_k},
                               {20, "IQ4_NL", 32, 18, iq4_nl},
                               {23, "IQ4_XS", 256, 136, iq4_xs},
                               {9, "Q8_1", 32, 36},
                               {15, "Q8_K", 256, 292},
                               {16, "IQ2_XXS", 256, 66},
                               {17, "IQ2_XS", 256, 74},
                               {18, "IQ3_XXS", 256, 98},
                               {19, "IQ1_S", 256, 50},
                               {21, "IQ3_S", 256, 110},
                               {22, "IQ2_S", 256, 82},
                               {29, "IQ1_M", 256, 56},
                               {34, "TQ1_0", 256, 54},
                               {35, "TQ2_0", 256, 66},
                               {39, "MXFP4", 32, 17},
                               {24, "I8", 1, 1},
                               {25, "I16", 1, 2},
                               {26, "I32", 1, 4},
                               {27, "I64", 1, 8},
                               {28, "F64", 1, 8}};

}  // namespace

std::span<const GgufType> gguf_types() { return kTypes; }

const GgufType* find_gguf_type(const std::string& name) {
  const auto* at = std::ranges::find_if(kTypes, [&](const GgufType& type) { return name == type.name; });
  return at == std::end(kTypes) ? nullptr : at;
}

bool is_read(const GgufType& type) { return type.decode || gguf::plain_type(type); }

}  // namespace braid::io
