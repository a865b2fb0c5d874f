#include "braid/models/training/communication_estimate.h"

#include <algorithm>

#include "braid/distributed/parallel/data_parallel.h"
#include "braid/distributed/parallel/sequence_shard.h"
#include "braid/models/dcformer/cost.h"
#include "braid/models/dcformer/layers.h"
#include "braid/nn/module.h"
#include "braid/tensor/detail/integers.h"

namespace braid::models {

namespace {

using dist::Collective;

struct Counter {
  dist::CommStats& traffic;
  int64_t bytes_per_number;
  void operator()(Collective c, int64_t elements) const {
    traffic.bytes[static_cast<size_t>(c)] += elements * bytes_per_number;
  }
};

// Key-side elements per head and position: read factors, write factors and a gate, of both stages.
int64_t key_side_elements(const ModelConfig& c) {
  if (!c.use_dcmha || !c.profile.key_side) return 0;
  return (c.profile.pre_compose + c.profile.post_compose) * (2 * c.profile.rank + 1);
}

// Elements of the parameters of a tensor rank, in the order in which backward reaches them: first those that are
// sharded over the tensor ranks, then those that all ranks hold.
struct Held {
  std::vector<int64_t> sharded, replicated;
};
Held held_by(const ModelConfig& config, int64_t ranks, int64_t rank) {
  std::map<std::string, dist::Shard> shards = tensor_shards(config, static_cast<int>(ranks));
  const std::vector<nn::NamedTensor> parameters = shape_only_parameters(config);
  Held held;
  for (auto p = parameters.rbegin(); p != parameters.rend(); ++p) {
    auto shard = shards.find(p->name);
    bool split = ranks > 1 && shard != shards.end();
    Shape shape = p->value.shape();
    if (split) shape[shard->second.axis] = shard->second.partition.size(static_cast<int>(rank));
    (split ? held.sharded : held.replicated).push_back(numel(shape));
  }
  return held;
}

// The keys that a rank's queries need in a layer.
dist::KeyExchangePlan keys_of(const ModelConfig& config, int64_t layer, const LayoutSizes& sizes,
                              const RankPlace& place, int64_t T, bool own_rows) {
  nn::AttentionOptions o = block_options(config, layer, false).attention;
  return dist::plan_key_exchange(T,
                                 {static_cast<int>(place.context), static_cast<int>(sizes.context),
                                  static_cast<int>(place.tensor), static_cast<int>(sizes.tensor)},
                                 {o.causal, o.window, 0}, own_rows);
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

// Gradients to their owners, parameters back.
void count_buckets(const std::vector<int64_t>& elements, int64_t holders, int64_t rank, const Counter& count) {
  if (holders == 1) return;
  size_t next = 0;
  for (size_t end : dist::bucket_ends(elements, count.bytes_per_number, dist::kBucketBytes)) {
    int64_t size = 0;
    for (; next <= end; ++next) size += elements[next];
    int64_t own = dist::even_partition(size, static_cast<int>(holders)).size(static_cast<int>(rank));
    count(Collective::reduce_scatter, size - own);
    count(Collective::all_gather, (holders - 1) * own);
  }
}

}  // namespace

StepVolume step_volume(ModelConfig config, const LayoutSizes& sizes, const RankPlace& place, const StepShape& step) {
  resolve(config);
  StepVolume volume;
  int64_t P = sizes.tensor, C = sizes.context, T = step.seq_len, D = config.dim, e = step.bytes_per_number;
  const int64_t wide = std::max<int64_t>(4, e);  // statistics, gradients of masters and masters
  Counter tensor{volume.tensor, e}, context{volume.context, e}, statistics{volume.tensor, wide};
  Counter replicas{volume.replicas, wide}, world{volume.world, wide};

  dist::Partition over_context = dist::zigzag_partition(T, static_cast<int>(C));
  auto c = static_cast<int>(place.context), t = static_cast<int>(place.tensor);
  int64_t rows = over_context.size(c);                                                        // of the context rank
  int64_t own = dist::zigzag_partition_within(over_context, c, static_cast<int>(P)).size(t);  // of this rank
  dist::HeadSplit split = dist::split_heads(block_options(config, 0, false).attention, static_cast<int>(P));
  int64_t N = config.n_head, n = split.heads.size(t), d = config.head_dim, key_side = key_side_elements(config);
  int64_t here = split.groups_stay_on_rank ? n : N;  // heads whose attention this rank computes
  int64_t passes = step.checkpoint_activations ? 2 : 1;

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
    if (P > 1) statistics(Collective::all_gather, (P - 1) * 2 * B * rows);  // two values per row of logits
    for (int64_t layer = 0; layer < config.n_layer; ++layer) {
      all_gather(2 * passes, 2);  // of attention and FFN
      reduce_scatter(2 * passes, 2);
      dist::KeyExchangePlan keys = keys_of(config, layer, sizes, place, T, !split.groups_stay_on_rank);
      int64_t to_tensor = 0;  // rows of keys that we send to tensor ranks; those of others come back as gradients
      for (int r = 0; r < P; ++r) to_tensor += r == t ? 0 : keys.to_tensor_ranks.size(r);
      if (!split.groups_stay_on_rank) {
        int64_t heads_to_rows = B * (rows - own) * n * d, rows_to_heads = B * own * (N - n) * d;
        tensor(Collective::all_to_all, passes * (heads_to_rows + rows_to_heads));            // q there, y back
        tensor(Collective::all_to_all, rows_to_heads + heads_to_rows);                       // their gradients
        tensor(Collective::all_to_all, passes * 2 * B * to_tensor * n * d);                  // k, v
        tensor(Collective::all_to_all, 2 * B * keys.to_tensor_ranks.size(t) * (N - n) * d);  // their gradients
        dist::Partition over_tensor = dist::zigzag_partition_within(over_context, c, static_cast<int>(P));
        Exchanged plan_key_exchange = exchanged(over_tensor, keys.to_tensor_ranks, t);
        tensor(Collective::all_gather, passes * B * plan_key_exchange.sent * key_side * N);
        tensor(Collective::reduce_scatter, B * plan_key_exchange.received * key_side * N);
      }
      int64_t per_row = here * (2 * d + key_side);  // k, v and key-side weights
      Exchanged rows_of_keys = exchanged(keys.local, keys.required, c);
      context(Collective::all_gather, passes * B * rows_of_keys.sent * per_row);
      context(Collective::reduce_scatter, B * rows_of_keys.received * per_row);
    }
  }
  Held held = held_by(config, P, place.tensor);
  count_buckets(held.sharded, sizes.data * C, place.data * C + place.context, replicas);
  count_buckets(held.replicated, sizes.data * C * P, (place.data * C + place.context) * P + place.tensor, world);
  return volume;
}

RankParameters rank_parameters(ModelConfig config, const LayoutSizes& sizes, int64_t tensor_rank) {
  resolve(config);
  Held held = held_by(config, sizes.tensor, tensor_rank);
  RankParameters r;
  int64_t sharded = 0, replicated = 0;
  for (int64_t n : held.sharded) sharded += n;
  for (int64_t n : held.replicated) replicated += n;
  r.held = sharded + replicated;
  auto share = [](int64_t n, int64_t ranks) { return detail::ceil_div(n, ranks); };
  r.owned = share(sharded, sizes.data * sizes.context) + share(replicated, sizes.data * sizes.context * sizes.tensor);
  return r;
}

int64_t gathered_by_attention(const ModelConfig& config, const LayoutSizes& sizes, const RankPlace& place,
                              int64_t layer, int64_t seq_len) {
  dist::HeadSplit split = dist::split_heads(block_options(config, 0, false).attention, static_cast<int>(sizes.tensor));
  if (sizes.context == 1 && split.groups_stay_on_rank) return 0;
  int64_t heads = split.groups_stay_on_rank ? split.heads.size(static_cast<int>(place.tensor)) : config.n_head;
  dist::KeyExchangePlan keys = keys_of(config, layer, sizes, place, seq_len, !split.groups_stay_on_rank);
  return keys.required.size(static_cast<int>(place.context)) * heads *
         (2 * config.head_dim + key_side_elements(config));
}

}  // namespace braid::models
