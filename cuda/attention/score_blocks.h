// How DCMHA on tensor cores cuts a call into score blocks that fit into its workspace.
#pragma once
#include <vector>

#include "braid/cuda/attention/kernels.h"
#include "braid/tensor/kernels/attention.h"

namespace braid::cuda::attention::tensor_core {

struct Sizes {
  int64_t B, T, S, N, Nkv, d;
  explicit Sizes(const DcmhaInputs& x)
      : B(x.q.dim(0)), T(x.q.dim(1)), S(x.k.dim(1)), N(x.q.dim(2)), Nkv(x.k.dim(2)), d(x.q.dim(3)) {}
};

// Memory of a block: buffers of scores, and bytes of partial sums for each row and block of keys, and for each column
// of each panel.
struct Cost {
  int64_t buffers, row_sums, key_sums;
};

// The blocks of a call, those of the same samples one after the other in ascending order of rows. As many samples and
// rows in a block as fit into `workspace` bytes, at least some rows of one sample:
//   causal     all rows of some samples, in panels whose columns end at their last key
//   window     all rows of some samples: each panel of at most 128 rows and its keys is like a sample of its own
//   otherwise  (a window over other keys than those of its rows, or little memory) some rows
std::vector<ScoreBlock> blocks_of(const DcmhaInputs& x, const Cost& cost, int64_t workspace);

inline bool begins_samples(const ScoreBlock& c) { return c.first_row == 0; }
inline bool ends_samples(const ScoreBlock& c) { return c.first_row + c.rows == c.queries; }

// The end of the keys that the block has columns for.
inline int keys_end(const ScoreBlock& c) { return c.first_key_of(c.panels - 1) + c.key_columns_of(c.panels - 1); }

// The maximum of a number per block.
template <class F>
int64_t max_over(const std::vector<ScoreBlock>& blocks, F&& number) {
  int64_t result = 0;
  for (const ScoreBlock& c : blocks) result = std::max<int64_t>(result, number(c));
  return result;
}

}  // namespace braid::cuda::attention::tensor_core
