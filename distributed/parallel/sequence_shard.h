// Which positions of a sequence a rank works on, and which keys its queries attend to.
//
// T = 8, two context ranks c with two tensor ranks t each (zigzag: an early and a late range):
//
//   position      0   1   2   3   4   5   6   7
//   context c     0   0   1   1   1   1   0   0        `context` of c = 0: [0 2) [6 8)
//   tensor t      0   1   0   1   1   0   1   0        `own` of (0, 0): [0 1) [7 8)
#pragma once
#include "braid/distributed/comm/process_mesh.h"
#include "braid/tensor/attention_operands.h"

namespace braid::dist {

// The positions of this rank. Layers that work on single tokens (norms, residuals) run on `own`; layers that are
// sharded by heads or columns run on all rows of the context rank.
struct SequenceShard {
  Partition over_context;  // of [0, T)
  Partition over_tensor;   // of the context rank's rows, counted from 0
  Ranges context;          // positions of the context rank's rows, adjacent ranges merged
  Ranges own;              // positions of this rank's rows
  Tensor positions;        // those of `context`, (Tc) i64
};

// Whether a sequence of T positions leaves no tensor or context rank without a row.
bool every_rank_has_rows(int64_t T, const ProcessMesh& mesh);
// Error(setting) when some rank would have no row.
SequenceShard shard_sequence(int64_t T, const ProcessMesh& mesh);

// How a layer's keys get to the ranks whose queries attend to them, in at most two exchanges. Rank (c, t) is tensor
// rank t of context rank c; it starts with the keys of its context rank's positions, for some of the heads.
//
//   keys of context rank c            `local` of c:                     `required` of (c, t):
//   (B, Tc, heads of t, d)            keys that tensor rank t of any    keys that the queries of (c, t)
//          |                          context rank needs                attend to
//          |    to_tensor_ranks             |    context ranks with this       |
//          +--- (tensor ranks of c) ------> +--- tensor rank ----------------> +
//
// Example: a causal layer with window 2 on the ranks of the diagram above, queries of the rank's own rows. Rank (0, 0)
// has queries 0 and 7 and requires keys 0, 6, 7: its context rank has them all. Rank (1, 0) has queries 2 and 5 and
// requires keys 1, 2, 4, 5; key 1 is local to (0, 0), which got it from the rows of (0, 1).
struct KeyExchangePlan {
  Partition
      to_tensor_ranks;  // rows of this context rank, counted from 0: what each of its tensor ranks holds for others
  Partition local;      // positions, per context rank: what the rank with this tensor rank has after that
  Partition required;   // positions, per context rank: what the rank with this tensor rank needs
};

// A rank's coordinates in the mesh.
struct MeshCoord {
  int context = 0, contexts = 1, tensor = 0, tensors = 1;
};
// own_rows: the queries of a rank are its own rows; else all rows of its context rank. mask: its offset is 0.
KeyExchangePlan plan_key_exchange(int64_t T, const MeshCoord& rank, const AttentionMask& mask, bool own_rows);

}  // namespace braid::dist
