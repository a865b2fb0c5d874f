// Which positions of a sequence a rank works on.
#pragma once
#include "braid/distributed/sharding/process_mesh.h"
#include "braid/tensor/kernels/attention.h"

namespace braid::dist {

// T positions are dealt out over the context ranks, and those of one context rank over its tensor ranks, early and late
// runs together, so that causal attention is balanced. Layers that work on single tokens (norms, residuals) see `own`;
// layers that are split by heads or columns see all rows of the context rank.
struct SequenceShard {
  Partition over_context;  // of [0, T)
  Partition over_tensor;   // of the context rank's rows, counted from 0
  Ranges context;          // positions of the context rank's rows, neighbouring runs joined
  Ranges own;              // positions of ours
  Tensor positions;        // those of `context`, i64
};

// Whether a sequence of T positions leaves no tensor or context rank without a row.
bool every_rank_has_rows(int64_t T, const ProcessMesh& mesh);
// Error(setting) when some rank would have no row.
SequenceShard shard_sequence(int64_t T, const ProcessMesh& mesh);

// The keys that queries of a rank see in a layer, and how they get there.
// Keys come with the rows of their context rank and of some heads; a context rank's own keys reach its tensor ranks
// first, then every rank asks those with its tensor rank in other context ranks.
//
//   context rank c', tensor rank t:  held (c', t) = its keys that (any c, t) needs  -->  needed by (c, t)
struct KeyExchangePlan {
  Partition
      to_tensor;   // of our context rank's rows, counted from 0: those that each of its tensor ranks needs or passes on
  Partition held;  // positions, per context rank: what the rank with our tensor rank has after that
  Partition needed;  // positions, per context rank: what the rank with our tensor rank sees
};
struct MeshCoord {
  int context = 0, contexts = 1, tensor = 0, tensors = 1;
};
// own_rows: queries are the rank's own rows (else all rows of its context rank, and to_tensor is all of them).
KeyExchangePlan plan_key_exchange(int64_t T, const MeshCoord& rank, const AttentionMask& sight, bool own_rows);

}  // namespace braid::dist
