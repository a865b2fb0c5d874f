// The heads of attention over tensor ranks where several query heads share a key/value head (N query heads, Nkv
// key/value heads, head n reads key/value head n / (N / Nkv)). Both are sharded evenly, each by itself, and every
// key/value head is projected on one rank. Four ranks, N = 8, Nkv = 2:
//
//   rank                        0      1      2      3
//   query heads  `queries`      0 1    2 3    4 5    6 7
//   key/value    `keys`         0      1      -      -       rows of wqkv; some ranks may have none
//                `required`     0      0      1      1       what the rank's query heads read
//
// Where the ranks divide Nkv, `required` is `keys` and nothing is sent. Parameters are never held twice, so optimizer,
// clipping and checkpoints need no case of their own.
#pragma once
#include "braid/distributed/comm/communicator.h"
#include "braid/nn/shard_context.h"

namespace braid::dist {

struct HeadShards {
  Partition queries;   // of N
  Partition keys;      // of Nkv
  Partition required;  // of Nkv; ranks may require the same head
};
// joined: consecutive query heads that stay on one rank.
HeadShards shard_heads(int64_t queries, int64_t keys, int ranks, int64_t joined = 1);

// k and v (B, S, own key/value heads, d) -> (B, S, those that this rank's query heads read, d).
void gather_required_heads(nn::AttentionOperands& x, const HeadShards& heads, const Communicator& tensor);
// Does each key/value head that the rank requires serve as many of its query heads as the others, as the attention op
// demands?
bool shares_evenly(const HeadShards& heads, int rank);
// The same operands with one key/value head for each query head where they are not shared evenly; else unchanged.
nn::AttentionOperands evenly_shared(nn::AttentionOperands x, const HeadShards& heads, int rank);

}  // namespace braid::dist
