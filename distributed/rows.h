// Which positions of a sequence a rank works on.
#pragma once
#include "distributed/layout.h"

namespace braid::dist {

// T positions are dealt out over the context ranks, and those of one context rank over its tensor ranks, early and late
// runs together, so that causal attention is balanced. Layers that work on single tokens (norms, residuals) see `own`;
// layers that are split by heads or columns see all rows of the context rank.
struct Rows {
  Parts over_context;  // of [0, T)
  Parts over_tensor;   // of the context rank's rows, counted from 0
  Intervals context;   // positions of the context rank's rows, neighbouring runs joined
  Intervals own;       // positions of ours
  Tensor positions;    // those of `context`, i64
};

// Error(setting) when some rank would have no row.
Rows rows_of(int64_t T, const Layout& layout);

}  // namespace braid::dist
