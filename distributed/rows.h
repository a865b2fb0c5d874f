// Which positions of a sequence a rank works on.
#pragma once
#include "distributed/layout.h"
#include "tensor/dcmha.h"

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

// The keys that queries of a rank see in a layer, and how they get there.
// Keys come with the rows of their context rank and of some heads; a context rank's own keys reach its tensor ranks
// first, then every rank asks those with its tensor rank in other context ranks.
//
//   context rank c', tensor rank t:  held (c', t) = its keys that (any c, t) needs  -->  needed by (c, t)
struct KeyRows {
  Parts
      to_tensor;  // of our context rank's rows, counted from 0: those that each of its tensor ranks needs or passes on
  Parts held;     // positions, per context rank: what the rank with our tensor rank has after that
  Parts needed;   // positions, per context rank: what the rank with our tensor rank sees
};
struct RankInBox {
  int context = 0, contexts = 1, tensor = 0, tensors = 1;
};
// own_rows: queries are the rank's own rows (else all rows of its context rank, and to_tensor is all of them).
KeyRows key_rows(int64_t T, const RankInBox& rank, const Visibility& sight, bool own_rows);

}  // namespace braid::dist
