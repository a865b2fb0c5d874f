// Weights in groups of 32 along a row that share a scale of 16 bits: the arithmetic of the types Q8_0 and Q4_0 of GGUF
// files (tensor/io/gguf.md).
#pragma once
#include "braid/tensor/tensor.h"

namespace braid {

inline constexpr int64_t kGroup = 32, kPanelRows = 32;

// W[o, i] = scale[o, i / 32] q[o, i], -128 <= q <= 127 or -8 <= q <= 7. Rows are filled up with zeros to n = ceil(in /
// 32) groups.
struct GroupWeight {
  Tensor values;  // u8 (out, 32 n): 128 + q
  Tensor scale;   // f16 (out, n)
  int bits = 8;   // or 4
};

// The same in the order in which products read it. R = 32 consecutive rows, the last ones of a matrix fewer, are a
// panel; panels follow each other. A product takes four elements of each row of a panel at once:
//
//   scale:  panel [n][R]
//   values: panel [n][bits][R][4] bytes; of row r and group g the byte [g][j][r][b] holds
//           8 bits: 128 + q of element 4 j + {0, 2, 1, 3}[b]: as 16-bit numbers, 0 and 1 below 2 and 3
//           4 bits: 8 + q of element 8 j + b in the lower half, of 8 j + 4 + b in the upper one
struct GroupPanels {
  Tensor values;  // u8 (out, 4 bits n)
  Tensor scale;   // f16 (out, n)

  int bits() const { return values.dim(1) == kGroup * scale.dim(1) ? 8 : 4; }
};
GroupPanels in_panels(const GroupWeight& weight);

}  // namespace braid
