#include "braid/models/families/dcformer/communication.h"

#include <algorithm>

#include "braid/distributed/parallel/head_shards.h"
#include "braid/distributed/parallel/sequence_shard.h"
#include "braid/models/families/dcformer/cost.h"
#include "braid/models/families/dcformer/layers.h"
#include "braid/models/families/dcformer/model.h"

namespace braid::models {

namespace {

using dist::Collective;

struct Counter {
  dist::CommStats& traffic;
  int64_t bytes_per_element;
  void operator()(Collective c, int64_t elements) const {
    traffic.bytes[static_cast<size_t>(c)] += elements * bytes_per_element;
  }
};

// Key-side elements per head and position: read factors, write factors and a gate, of both stages.
int64_t key_side_elements(const DcformerConfig& c) {
  if (!c.use_dcmha || !c.profile.key_side) return 0;
  return (c.profile.pre_compose + c.profile.post_compose) * (2 * c.profile.rank + 1);
}

// How heads are sharded: by even_partition. Where no head group spans ranks each rank attends with its own heads, route
// (a) of nn/attention/attention.h, else with all of them for its rows, route (b).
bool groups_stay_on_rank(const DcformerConfig& c, int64_t ranks) {
  return !mixes_heads(c) || c.profile.num_groups % ranks == 0;
}

dist::HeadShards shard_heads(const DcformerConfig& c, int64_t ranks) {
  return dist::shard_heads(c.n_head, c.n_kv_head, static_cast<int>(ranks));
}

// The keys that a rank's queries need in a layer.
dist::KeyExchangePlan keys_of(const DcformerConfig& config, int64_t layer, const MeshShape& mesh, const MeshCoord& rank,
                              int64_t T) {
  return dist::plan_key_exchange(T,
                                 {static_cast<int>(rank.context), static_cast<int>(mesh.context),
                                  static_cast<int>(rank.tensor), static_cast<int>(mesh.tensor)},
                                 {config.profile.causal, config.keys_of_layer(layer, false), 0},
                                 !groups_stay_on_rank(config, mesh.tensor));
}

// Entries that dist::sparse_all_gather sends to and receives from other ranks; gradients go the other way.
struct Exchanged {
  int64_t sent = 0, received = 0;
};
Exchanged exchanged(const dist::Partition& have, const dist::Partition& need, int rank) {
  Exchanged e;
  auto me = static_cast<size_t>(rank);
  for (size_t r = 0; r < have.ranges.size(); ++r) {
    if (r == me) continue;
    e.sent += dist::entries(dist::intersect(have.ranges[me], need.ranges[r]));
    e.received += dist::entries(dist::intersect(have.ranges[r], need.ranges[me]));
  }
  return e;
}

// Elements that the attention of a layer has from other ranks and from itself for all keys that the queries of the
// first rank attend to, kept for backward, per sequence. 0 where nothing comes from others.
int64_t gathered_by_attention(const DcformerConfig& config, const MeshShape& mesh, int64_t layer, int64_t seq_len) {
  const bool stay = groups_stay_on_rank(config, mesh.tensor);
  const dist::HeadShards heads = shard_heads(config, mesh.tensor);
  if (mesh.context == 1 && stay && heads.required == heads.keys) return 0;
  const int64_t queries = stay ? heads.queries.size(0) : config.n_head;
  int64_t key_values = stay ? heads.required.size(0) : config.n_kv_head;
  int64_t repeated = 0;  // key/value heads of the rank that keeps a copy for each query head (dist::evenly_shared)
  for (int r = 0; stay && r < mesh.tensor; ++r)
    if (!dist::shares_evenly(heads, r)) repeated = std::max(repeated, heads.queries.size(r));
  key_values += repeated;
  return keys_of(config, layer, mesh, {}, seq_len).required.size(0) *
         (key_values * 2 * config.head_dim + queries * key_side_elements(config));
}

}  // namespace

StepVolume activation_volume(const DcformerConfig& config, const MeshShape& mesh, const MeshCoord& rank,
                             const StepShape& step) {
  StepVolume volume;
  int64_t P = mesh.tensor, C = mesh.context, T = step.seq_len, D = config.dim, e = step.bytes_per_element;
  Counter tensor{volume.tensor, e}, context{volume.context, e};
  Counter statistics{volume.tensor, std::max<int64_t>(4, e)};

  dist::Partition over_context = dist::zigzag_partition(T, static_cast<int>(C));
  auto c = static_cast<int>(rank.context), t = static_cast<int>(rank.tensor);
  int64_t rows = over_context.size(c);                                                        // of the context rank
  int64_t own = dist::zigzag_partition_within(over_context, c, static_cast<int>(P)).size(t);  // of this rank
  const bool stay = groups_stay_on_rank(config, P);
  const dist::HeadShards heads = shard_heads(config, P);
  int64_t N = config.n_head, n = heads.queries.size(t), d = config.head_dim, key_side = key_side_elements(config);
  int64_t Nkv = config.n_kv_head, nkv = heads.keys.size(t);
  int64_t here = stay ? n : N;                                        // heads whose attention this rank computes
  int64_t read = stay ? heads.required.size(t) : Nkv;                 // key/value heads that these read
  const Exchanged shared = exchanged(heads.keys, heads.required, t);  // of them with other ranks, route (a)
  int64_t passes = step.recompute ? 2 : 1;

  for (int64_t B : step.samples) {
    // rows of width D: gathered, or summed and scattered; each is the other's backward
    auto all_gather = [&](int64_t forward, int64_t backward) {
      if (P == 1) return;
      tensor(Collective::all_gather, forward * (P - 1) * B * own * D);
      tensor(Collective::reduce_scatter, backward * B * (rows - own) * D);
    };
    auto reduce_scatter = [&](int64_t forward, int64_t backward) { all_gather(backward, forward); };
    reduce_scatter(1, 1);                                                   // token embedding
    all_gather(1, 1);                                                       // final norm's result
    if (P > 1) statistics(Collective::all_gather, (P - 1) * 3 * B * rows);  // three values per row of logits
    for (int64_t layer = 0; layer < config.n_layer; ++layer) {
      all_gather(2 * passes, 2);  // of attention and FFN
      reduce_scatter(2 * passes, 2);
      dist::KeyExchangePlan keys = keys_of(config, layer, mesh, rank, T);
      int64_t to_tensor = 0;  // rows of keys that we send to tensor ranks; those of others come back as gradients
      for (int r = 0; r < P; ++r) to_tensor += r == t ? 0 : keys.to_tensor_ranks.size(r);
      if (!stay) {
        int64_t heads_to_rows = B * (rows - own) * n * d, rows_to_heads = B * own * (N - n) * d;
        tensor(Collective::all_to_all, passes * (heads_to_rows + rows_to_heads));                // q there, y back
        tensor(Collective::all_to_all, rows_to_heads + heads_to_rows);                           // their gradients
        tensor(Collective::all_to_all, passes * 2 * B * to_tensor * nkv * d);                    // k, v
        tensor(Collective::all_to_all, 2 * B * keys.to_tensor_ranks.size(t) * (Nkv - nkv) * d);  // their gradients
        dist::Partition over_tensor = dist::zigzag_partition_within(over_context, c, static_cast<int>(P));
        Exchanged plan_key_exchange = exchanged(over_tensor, keys.to_tensor_ranks, t);
        tensor(Collective::all_gather, passes * B * plan_key_exchange.sent * key_side * N);
        tensor(Collective::reduce_scatter, B * plan_key_exchange.received * key_side * N);
      }
      if (stay && heads.required != heads.keys) {
        tensor(Collective::all_gather, passes * 2 * B * rows * shared.sent * d);  // k, v
        tensor(Collective::reduce_scatter, 2 * B * rows * shared.received * d);
      }
      int64_t per_row = read * 2 * d + here * key_side;  // k, v and key-side weights
      Exchanged rows_of_keys = exchanged(keys.local, keys.required, c);
      context(Collective::all_gather, passes * B * rows_of_keys.sent * per_row);
      context(Collective::reduce_scatter, B * rows_of_keys.received * per_row);
    }
  }
  return volume;
}

// A process keeps its shard of the activations of its samples, and the tensors that layers gathered from others: keys,
// values and key-side weights, and the inputs of column-parallel layers.
TrainingMemory rank_memory(const DcformerConfig& config, const TrainingSetup& setup) {
  const TrainingMemory unsharded = training_memory(config, setup);
  const MeshShape& mesh = setup.mesh;
  if (mesh.ranks() == 1) return unsharded;
  const int64_t P = mesh.tensor, e = setup.bytes_per_element;
  const double rows = double(setup.seq_len) / double(mesh.context), m = double(std::max<int64_t>(4, e));
  double gathered = 0;  // of all blocks; of the largest one where blocks are recomputed
  for (int64_t i = 0; i < config.n_layer; ++i) {
    const double block =
        double(gathered_by_attention(config, mesh, i, setup.seq_len)) + (P > 1 ? 2 * rows * double(config.dim) : 0);
    gathered = setup.recompute ? std::max(gathered, block) : gathered + block;
  }
  const RankParameters held = rank_parameters(shape_only_model(config), mesh, 0);
  TrainingMemory memory;
  memory.gradients = double(held.held) * m;
  memory.weights = memory.gradients * unsharded.weights / unsharded.gradients;
  memory.optimizer = unsharded.optimizer / unsharded.gradients * (double(held.owned) * m);
  memory.activations = unsharded.activations / double(mesh.context * P) + double(e * setup.batch) * gathered;
  memory.working = unsharded.working / double(P);
  return memory;
}

}  // namespace braid::models
