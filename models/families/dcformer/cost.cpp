#include "braid/models/families/dcformer/cost.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "braid/models/cost/trace.h"
#include "braid/models/families/dcformer/family.h"
#include "braid/models/families/dcformer/layers.h"
#include "braid/models/families/dcformer/model.h"
#include "braid/tensor/error.h"

namespace braid::models {
namespace {

double as_double(int64_t n) { return static_cast<double>(n); }

int64_t checked_sum(int64_t a, int64_t b) {
  int64_t sum = 0;
  check(!__builtin_add_overflow(a, b, &sum), ErrorKind::setting,
        "the model is too large: its number of parameters does not fit 63 bits");
  return sum;
}

// Stages of Compose that mix heads in a layer, of a resolved configuration.
int stages(const DcformerConfig& c, int64_t layer) {
  return mixes_heads(c) && c.composes(layer) ? c.profile.pre_compose + c.profile.post_compose : 0;
}

// The prefix of the names of the layer with most parameters: all layers are alike but for their attention.
std::string largest_layer(const std::vector<nn::NamedTensor>& parameters) {
  std::map<std::string, int64_t> sizes;
  std::string largest;
  for (const auto& [name, value] : parameters) {
    if (!name.starts_with("layers.")) continue;
    const std::string layer = name.substr(0, name.find('.', std::string_view("layers.").size()) + 1);
    sizes[layer] += value.numel();
    if (largest.empty()) largest = layer;
  }
  for (const auto& [layer, size] : sizes)
    if (size > sizes[largest]) largest = layer;
  return largest;
}

}  // namespace

Dcformer shape_only_model(const DcformerConfig& config, const dist::ProcessMesh& mesh) {
  const nn::ShapeOnlyScope no_memory;
  return Dcformer::uninitialised(config, mesh);
}

std::vector<nn::NamedTensor> shape_only_parameters(const DcformerConfig& config) {
  Dcformer model = shape_only_model(config);
  return nn::parameters(model);
}

ParameterCounts count_parameters(DcformerConfig config) {
  resolve(config);
  ParameterCounts counts;
  const std::vector<nn::NamedTensor> parameters = shape_only_parameters(config);
  const std::string first = largest_layer(parameters);
  for (const auto& [name, value] : parameters) {
    const int64_t n = value.numel();
    counts.total = checked_sum(counts.total, n);
    const auto of_layer = [&first, &name = name](const char* part) { return name.starts_with(first + part); };
    if (name.starts_with("layers.")) counts.layers = checked_sum(counts.layers, n);
    if (name.starts_with("norm.")) counts.final_norm += n;
    if (name == "tok_embeddings.weight" || name == "output.weight")
      counts.embedding += n;
    else
      counts.non_embedding = checked_sum(counts.non_embedding, n);
    if (!name.starts_with(first)) continue;
    counts.per_layer += n;
    if (of_layer("attention.w")) counts.attention += n;
    if (of_layer("attention.q_norm") || of_layer("attention.k_norm")) counts.qk_norm += n;
    if (of_layer("attention.dyn_w_proj")) (name.ends_with("_proj.w") ? counts.static_proj : counts.dynamic) += n;
    if (of_layer("feed_forward.")) counts.feed_forward += n;
    for (const char* norm : {"attention_norm", "attention_post_norm.", "ffn_norm.", "ffn_post_norm."})
      if (of_layer(norm)) counts.norms += n;
  }
  counts.other = counts.per_layer - counts.attention - counts.qk_norm - counts.dynamic - counts.static_proj -
                 counts.feed_forward - counts.norms;
  counts.depth = counts.non_embedding - counts.layers - counts.final_norm;
  return counts;
}

Flops flops_per_token(DcformerConfig c, int64_t seq_len) {
  const TracedFlops traced = forward_flops(DcformerSpec(c), seq_len);
  const double T = as_double(seq_len);
  Flops f{.attention = traced.attention / T,
          .low_rank = traced.low_rank / T,
          .diagonal = traced.diagonal / T,
          .static_proj = traced.static_proj / T,
          .logits = traced.products / T};
  for (const auto& [name, value] : shape_only_parameters(c)) {
    if (!name.starts_with("layers.") || value.shape().rank() < 2 || name.ends_with("_proj.w")) continue;
    double& part = name.find(".dyn_w_proj.") != name.npos     ? f.generation
                   : name.find(".feed_forward.") != name.npos ? f.feed_forward
                                                              : f.projections;
    part += 2 * as_double(value.numel());
    f.logits -= 2 * as_double(value.numel());
  }
  // What is left are the logits, and products of variants that are more than one of each weight with each token.
  const double logits = 2 * as_double(c.vocab_size * c.dim);
  f.projections += f.logits - logits;
  f.logits = logits;
  return f;
}

CacheSize cache_bytes(DcformerConfig c, int64_t batch, int64_t seq_len, int64_t bytes_per_element) {
  resolve(c);
  check(batch >= 1 && seq_len >= 1, ErrorKind::setting, [&] {
    return str("bad cache: expected at least one sequence of at least one token, found ", batch, " of ", seq_len);
  });
  const double N = as_double(c.query_heads()), R = as_double(c.profile.rank);
  CacheSize size;
  for (int64_t i = 0; i < c.n_layer; ++i) {
    const double factors = c.profile.key_side ? stages(c, i) * (2 * R * N + (c.profile.gates ? N : 0)) : 0;
    const double queries = c.caches_queries(i) ? N * as_double(c.head_dim) : 0;
    const double position =
        (2 * as_double(c.n_kv_head * c.head_dim) + queries + factors) * as_double(bytes_per_element);
    const int64_t window = std::max(c.keys_of_layer(i, false), c.keys_of_layer(i, true));
    size.per_token += position;
    size.full += as_double(batch) * position * as_double(window == 0 ? seq_len : std::min(window, seq_len));
  }
  return size;
}

}  // namespace braid::models
