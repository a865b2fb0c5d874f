#include "braid/distributed/parallel/parallel_attention.h"

#include "braid/autograd/ops.h"
#include "braid/distributed/parallel/mappings.h"

namespace braid::dist {

namespace {

// The query side of a stage for rows [begin, end) of it.
HeadMixing query_rows(HeadMixing c, int64_t begin, int64_t end) {
  for (Tensor* x : {&c.q_down, &c.q_up, &c.q_gate}) {
    if (*x) *x = contiguous(slice(*x, 1, begin, end));
  }
  return c;
}

// The key side of a stage, each of its tensors (B, rows, ...) changed alike.
template <class F>
HeadMixing with_keys(HeadMixing c, F&& f) {
  for (Tensor* x : {&c.k_down, &c.k_up, &c.k_gate}) {
    if (*x) *x = f(*x);
  }
  return c;
}

// q: rows at these positions, one run after the other; k, v and key sides: the positions `keys`, all that q sees.
Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, const nn::CompositionWeights::Stages& compose,
              const Ranges& positions, const Ranges& keys, DcmhaOptions options) {
  std::vector<Tensor> ys;
  const AttentionMask sight = options.mask;  // of positions
  int64_t row = 0;
  for (const Range& run : positions) {
    int64_t end = row + run.size();
    // Without a window the keys are all from position 0 on; with one, a run sees a stretch of them.
    int64_t first = sight.first(run.begin);
    auto seen = [&](const Tensor& x) {
      if (!sight.causal || sight.window == 0) return x;
      Range stretch = places_in(keys, {{first, run.end}})[0];
      return contiguous(slice(x, 1, stretch.begin, stretch.end));
    };
    options.mask.offset = run.begin - first;
    ys.push_back(dcmha(contiguous(slice(q, 1, row, end)), seen(k), seen(v),
                       with_keys(query_rows(compose.pre, row, end), seen),
                       with_keys(query_rows(compose.post, row, end), seen), options));
    row = end;
  }
  return ys.size() == 1 ? ys[0] : concat(ys, 1);
}

}  // namespace

HeadSplit split_heads(const nn::AttentionOptions& o, int ranks) {
  check(o.heads >= ranks, ErrorKind::setting, [&] {
    return "parallel.tensor = " + std::to_string(ranks) + " is more than the model's " + std::to_string(o.heads) +
           " heads: expected at most one process per head";
  });
  if (!o.compose) return {true, even_partition(o.heads, ranks), {}};
  int64_t G = o.composition_options.groups;
  if (G % ranks != 0) return {false, even_partition(o.heads, ranks), {}};
  Partition groups = even_partition(G, ranks);
  return {true, widened(groups, o.heads / G), groups};
}

ParallelAttention::ParallelAttention(const nn::AttentionOptions& options, const ProcessMesh& mesh)
    : options_(options), mesh_(mesh), split_(split_heads(options, mesh.tensor.size())) {
  nn::AttentionOptions& o = options_;
  if (o.head_dim == 0) o.head_dim = o.width / o.heads;
  check(o.kv_heads == 0 || o.kv_heads == o.heads, ErrorKind::setting, [] {
    return std::string(
        "grouped key/value heads cannot be split over processes (no published DCFormer has them, and the model "
        "format refuses them); set parallel.tensor and parallel.context to 1");
  });
  int rank = mesh.tensor.rank();
  int64_t heads = split_.heads.size(rank), d = o.head_dim;
  qkv_ = nn::Linear(o.width, 3 * heads * d, {.bias = o.projection.bias, .init = nn::Init::none()}, {});
  out_ = RowParallelLinear(heads * d, o.width, o.projection.bias, mesh.tensor);
  if (o.qk_norm) {
    q_norm_ = nn::RmsNorm(d, o.qk_norm_eps, "scale");
    k_norm_ = nn::RmsNorm(d, o.qk_norm_eps, "scale");
  }
  if (!o.compose) return;
  nn::CompositionOptions c = o.composition_options;
  c.dw1 = c.qkw = c.dd = c.base = nn::Init::none();
  if (split_.whole_groups) c.groups = split_.groups.size(rank);
  compose_ = nn::CompositionWeights(o.width, split_.whole_groups ? heads : o.heads, c, {});
}

Tensor ParallelAttention::operator()(const Tensor& u, const SequenceShard& rows, const nn::Rope& rope) const {
  const nn::AttentionOptions& o = options_;
  const Communicator &tensor = mesh_.tensor, &context = mesh_.context;
  Tensor all = all_gather(u, 1, rows.over_tensor, tensor);  // (B, Tc, D): the rows of our context rank
  int64_t B = all.dim(0), Tc = all.dim(1), d = o.head_dim, heads = split_.heads.size(tensor.rank());

  std::vector<Tensor> parts = split(qkv_(all), {heads * d, heads * d, heads * d}, 2);
  Tensor q = reshape(parts[0], {B, Tc, heads, d});
  Tensor k = reshape(parts[1], {B, Tc, heads, d});
  Tensor v = reshape(parts[2], {B, Tc, heads, d});
  if (o.qk_norm) {
    q = q_norm_(q);
    k = k_norm_(k);
  }
  q = rope(q, rows.positions);
  k = rope(k, rows.positions);

  nn::CompositionWeights::Stages compose;
  DcmhaOptions options;
  options.mask = {o.causal, o.window, 0};
  options.impl = o.impl;
  options.workspace = o.workspace;
  KeyExchangePlan keys =
      plan_key_exchange(rows.over_context.total(), {context.rank(), context.size(), tensor.rank(), tensor.size()},
                        {o.causal, o.window, 0}, !split_.whole_groups);
  if (!split_.whole_groups) {
    q = all_to_all(q, 1, rows.over_tensor, 2, split_.heads, tensor);  // (B, t, N, d)
    k = all_to_all(k, 1, keys.to_tensor, 2, split_.heads, tensor);    // (B, held, N, d)
    v = all_to_all(v, 1, keys.to_tensor, 2, split_.heads, tensor);
    compose = compose_(u);
    auto to_tensor = [&](const Tensor& x) { return sparse_all_gather(x, 1, rows.over_tensor, keys.to_tensor, tensor); };
    compose.pre = with_keys(compose.pre, to_tensor);
    compose.post = with_keys(compose.post, to_tensor);
    options.groups = o.composition_options.groups;
  } else if (o.compose) {
    compose = compose_(all);
    options.groups = split_.groups.size(tensor.rank());
  }
  auto needed = [&](const Tensor& x) { return sparse_all_gather(x, 1, keys.held, keys.needed, context); };
  k = needed(k);  // (B, S, ..., d)
  v = needed(v);
  compose.pre = with_keys(compose.pre, needed);
  compose.post = with_keys(compose.post, needed);

  Tensor y = attend(q, k, v, compose, split_.whole_groups ? rows.context : rows.own,
                    keys.needed.of[static_cast<size_t>(context.rank())], options);
  if (!split_.whole_groups) y = all_to_all(y, 2, split_.heads, 1, rows.over_tensor, tensor);  // (B, Tc, our heads, d)
  return out_(reshape(y, {B, Tc, heads * d}), rows.over_tensor);
}

void ParallelAttention::visit(nn::Visitor& v) {
  v("wqkv", qkv_);
  v("wo", out_);
  if (options_.compose) v("dyn_w_proj", compose_);
  if (options_.qk_norm) {
    v("q_norm", q_norm_);
    v("k_norm", k_norm_);
  }
}

std::vector<std::pair<std::string, Shard>> attention_shards(const nn::AttentionOptions& o, int ranks) {
  HeadSplit split = split_heads(o, ranks);
  Partition features = widened(split.heads, o.head_dim > 0 ? o.head_dim : o.width / o.heads);
  std::vector<std::pair<std::string, Shard>> list{{"wqkv.weight", {0, stacked(features, 3)}},
                                                  {"wqkv.bias", {0, stacked(features, 3)}},
                                                  {"wo.weight", {1, features}}};
  if (o.compose && split.whole_groups) {
    for (auto& [name, axis] : {std::pair{"dw1", 1}, {"qkw", 0}, {"dd", 1}, {"pre_proj.w", 0}, {"post_proj.w", 0}}) {
      list.push_back({std::string("dyn_w_proj.") + name, {axis, split.groups}});
    }
  }
  return list;
}

}  // namespace braid::dist
