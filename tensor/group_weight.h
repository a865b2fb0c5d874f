// Weights in groups of 32 along a row that share a scale of 16 bits: the arithmetic of the types Q8_0 and Q4_0 of GGUF
// files (tensor/io/gguf.md).
#pragma once
#include "braid/tensor/tensor.h"

namespace braid {

inline constexpr int64_t kGroup = 32;

// W[o, i] = scale[o, i / 32] q[o, i]. Rows are filled up with zeros to chunks of two groups: n = ceil(in / 64).
struct GroupWeight {
  // u8. 8 bits: (out, 64 n), 128 + q. 4 bits: (out, 32 n), 8 + q, a chunk in 32 bytes: byte j holds element j of the
  // first group in its lower half, element j of the second in its upper half.
  Tensor values;
  Tensor scale;  // f16 (out, 2 n)

  int bits() const { return values.dim(1) == kGroup * scale.dim(1) ? 8 : 4; }
};

// q of element i of a row of values.
inline int group_value(const uint8_t* row, int bits, int64_t i) {
  if (bits == 8) return row[i] - 128;
  return (row[i / 64 * kGroup + i % kGroup] >> (i / kGroup % 2 * 4) & 15) - 8;
}

}  // namespace braid
