#include "braid/distributed/parallel/sequence_parallel.h"

#include "braid/autograd/ops.h"
#include "braid/distributed/parallel/head_shards.h"
#include "braid/distributed/parallel/mappings.h"

namespace braid::dist {

namespace {

// Each non-empty tensor of the key side of both stages, (B, S, ...), replaced by f of it.
template <class F>
void map_key_side(nn::AttentionOperands& x, F&& f) {
  for (HeadMixing* stage : {&x.pre, &x.post}) {
    for (Tensor* t : {&stage->k_down, &stage->k_up, &stage->k_gate}) {
      if (*t) *t = f(*t);
    }
  }
}

// The query side of a stage for rows [begin, end).
HeadMixing query_rows(HeadMixing c, int64_t begin, int64_t end) {
  for (Tensor* x : {&c.q_down, &c.q_up, &c.q_gate}) {
    if (*x) *x = contiguous(slice(*x, 1, begin, end));
  }
  return c;
}

}  // namespace

Tensor SequenceParallel::gather_rows(const Tensor& x) const {
  return all_gather(x, 1, rows_.over_tensor, mesh_.tensor);
}

Tensor SequenceParallel::reduce_rows(const Tensor& partial) const {
  return reduce_scatter(partial, 1, rows_.over_tensor, mesh_.tensor);
}

nn::ShardContext::Units SequenceParallel::local_units(int64_t units) const {
  Range local = even_partition(units, mesh_.tensor.size()).single(mesh_.tensor.rank());
  return {local.begin, local.end};
}

KeyExchangePlan SequenceParallel::plan(const AttentionMask& mask, bool own_rows) const {
  return plan_key_exchange(rows_.over_context.total(),
                           {mesh_.context.rank(), mesh_.context.size(), mesh_.tensor.rank(), mesh_.tensor.size()}, mask,
                           own_rows);
}

// Two steps. Over tensor ranks, for route (b): q (B, Tc, n, d) -> (B, t, N, d); k, v (B, Tc, n, d) -> (B, local, Nkv,
// d); key-side weights (B, t, ...) -> (B, local, ...); for route (a) k, v of the heads that own queries read. Then over
// context ranks, keys: (B, local, ...) -> (B, required, ...).
nn::AttentionOperands SequenceParallel::exchange(const nn::AttentionOperands& local, const AttentionMask& mask,
                                                 const Heads& heads) const {
  const Communicator &tensor = mesh_.tensor, &context = mesh_.context;
  KeyExchangePlan keys = plan(mask, heads.mixed);
  const HeadShards by_head = shard_heads(heads.queries, heads.keys, tensor.size(), heads.joined);
  nn::AttentionOperands x = local;
  if (heads.mixed) {
    x.q = all_to_all(x.q, 1, rows_.over_tensor, 2, by_head.queries, tensor);
    x.k = all_to_all(x.k, 1, keys.to_tensor_ranks, 2, by_head.keys, tensor);
    x.v = all_to_all(x.v, 1, keys.to_tensor_ranks, 2, by_head.keys, tensor);
    map_key_side(
        x, [&](const Tensor& t) { return sparse_all_gather(t, 1, rows_.over_tensor, keys.to_tensor_ranks, tensor); });
  } else {
    gather_required_heads(x, by_head, tensor);
  }
  auto required = [&](const Tensor& t) { return sparse_all_gather(t, 1, keys.local, keys.required, context); };
  x.k = required(x.k);
  x.v = required(x.v);
  map_key_side(x, required);
  return x;
}

// One call of the op for each range of consecutive queries. Without a window its keys are all from position 0 on; with
// one, a stretch of them.
Tensor SequenceParallel::attend(const nn::AttentionOperands& operands, const DcmhaOptions& call,
                                const Heads& heads) const {
  const Communicator& tensor = mesh_.tensor;
  const HeadShards by_head = shard_heads(heads.queries, heads.keys, tensor.size(), heads.joined);
  const nn::AttentionOperands x = heads.mixed ? operands : evenly_shared(operands, by_head, tensor.rank());
  const Ranges& positions = heads.mixed ? rows_.own : rows_.context;  // of the queries
  const AttentionMask mask = call.mask;
  const Ranges keys = plan(mask, heads.mixed).required.of(mesh_.context.rank());
  std::vector<Tensor> ys;
  int64_t row = 0;
  for (const Range& queries : positions) {
    int64_t end = row + queries.size(), first = mask.first(queries.begin);
    auto attended = [&](const Tensor& t) {
      if (!mask.causal || mask.window == 0) return t;
      Range stretch = locate(keys, {{first, queries.end}})[0];
      return contiguous(slice(t, 1, stretch.begin, stretch.end));
    };
    nn::AttentionOperands part{contiguous(slice(x.q, 1, row, end)), attended(x.k), attended(x.v),
                               query_rows(x.pre, row, end), query_rows(x.post, row, end)};
    map_key_side(part, attended);
    part.composed = x.composed, part.pseudo = x.pseudo;
    DcmhaOptions options = call;
    options.mask.offset = queries.begin - first;
    std::vector<Document> documents;
    if (call.documents) documents = counted_from(*call.documents, first), options.documents = &documents;
    ys.push_back(nn::attend(part, options));
    row = end;
  }
  Tensor y = ys.size() == 1 ? ys[0] : concat(ys, 1);
  if (!heads.mixed) return y;
  return all_to_all(y, 2, by_head.queries, 1, rows_.over_tensor, tensor);  // (B, t, N, d) -> (B, Tc, n, d)
}

Tensor SequenceParallel::local_tokens(const Tensor& ids) const { return gather_ranges(ids, 1, rows_.context); }

Tensor SequenceParallel::gather_sequence(const Tensor& x) const {
  no_gradient("gather_sequence", x);
  Tensor of_context = mesh_.tensor.all_gather(x.detach(), 1, rows_.over_tensor);
  return mesh_.context.all_gather(of_context, 1, rows_.over_context);
}

}  // namespace braid::dist
