#include "braid/models/families/dcformer/cost.h"

#include <algorithm>
#include <cmath>

#include "braid/models/cost/recomputed_activation.h"
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

// Stages of Compose that mix heads, of a resolved configuration.
int stages(const DcformerConfig& c) { return mixes_heads(c) ? c.profile.pre_compose + c.profile.post_compose : 0; }

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
  const std::string first = "layers.0.";
  for (const auto& [name, value] : shape_only_parameters(config)) {
    const int64_t n = value.numel();
    counts.total = checked_sum(counts.total, n);
    const auto of_layer = [&first, &name = name](const char* part) { return name.starts_with(first + part); };
    if (name.starts_with("layers.")) counts.layers = checked_sum(counts.layers, n);
    if (name.starts_with("norm.")) counts.final_norm += n;
    if (name == "tok_embeddings.weight" || name == "output.weight") counts.embedding += n;
    if (!name.starts_with(first)) continue;
    counts.per_layer += n;
    if (of_layer("attention.w")) counts.attention += n;
    if (of_layer("attention.q_norm") || of_layer("attention.k_norm")) counts.qk_norm += n;
    if (of_layer("attention.dyn_w_proj")) (name.ends_with("_proj.w") ? counts.static_proj : counts.dynamic) += n;
    if (of_layer("feed_forward.")) counts.feed_forward += n;
    if (of_layer("attention_norm.") || of_layer("ffn_norm.")) counts.norms += n;
  }
  counts.other = counts.per_layer - counts.attention - counts.qk_norm - counts.dynamic - counts.static_proj -
                 counts.feed_forward - counts.norms;
  counts.non_embedding = counts.layers + counts.final_norm;
  return counts;
}

double mean_unmasked_keys(const DcformerConfig& config, int64_t layer, int64_t seq_len) {
  check(seq_len >= 1, ErrorKind::setting,
        [&] { return str("bad sequence length: expected at least 1, found ", seq_len); });
  const double T = as_double(seq_len);
  if (!config.profile.causal) return T;
  const int64_t limit = config.keys_of_layer(layer, false);
  if (limit == 0 || limit >= seq_len) return (T + 1) / 2;
  // Query i attends to min(i+1, w) keys: w(w+1)/2 for the first w queries, w for each of the others.
  const double w = as_double(limit);
  return (w * (w + 1) / 2 + (T - w) * w) / T;
}

Flops flops_per_token(DcformerConfig c, int64_t seq_len) {
  resolve(c);
  const double L = as_double(c.n_layer), D = as_double(c.dim), N = as_double(c.n_head), d = as_double(c.head_dim);
  const double F = as_double(c.intermediate_size), V = as_double(c.vocab_size), G = as_double(c.profile.num_groups);
  const double Nkv = as_double(c.n_kv_head);
  const double M = as_double(c.group_heads()), K = as_double(c.generator_hidden()), R = as_double(c.profile.rank);
  const double C = as_double(c.dynamic_branches());
  double keys = 0;  // unmasked keys per query, summed over layers
  for (int64_t i = 0; i < c.n_layer; ++i) keys += mean_unmasked_keys(c, i, seq_len);

  Flops f;
  f.projections = L * 4 * D * (N + Nkv) * d;
  f.feed_forward =
      L * (as_double(2 * (nn::ffn_inputs(c.ffn) + 1)) * D * F + (c.mgate ? 2 * as_double(c.mgate_dim) * D : 0));
  f.attention = keys * 4 * N * d;
  f.logits = 2 * D * V;
  f.generation = L * (2 * D * C * G * K + 2 * G * C * K * 2 * R * M + 2 * D * C * N);  // dw1 + qkw + dd
  f.low_rank = keys * C * 4 * R * N;  // down and up, R N multiply-adds each
  f.diagonal = keys * C * 2 * N;
  if (c.profile.static_proj) f.static_proj = keys * stages(c) * 2 * N * M;
  return f;
}

// Whether the result of the activation, or of the gate, is cheap to compute again.
static bool ffn_is_recomputed(const DcformerConfig& c) { return recomputes_activation(c.ffn, c.hidden_act); }

const std::vector<ActivationTerm>& saved_activations() {
  using Config = const DcformerConfig&;
  // Describes the blocks, attention, compose weights and FFN of nn/ and the attention ops of autograd/; a test measures
  // it.
  constexpr auto always = [](Config) { return true; };
  static const std::vector<ActivationTerm> table = {
      {"residual stream before each norm",
       [](Config c) { return (c.use_parallel_residual ? 1 : 2) * as_double(c.dim); }},
      {"the norms' results", [](Config c) { return 2 * as_double(c.dim); }, false, always},
      {"v", [](Config c) { return as_double(c.n_kv_head * c.head_dim); }},
      {"q, k in front of the QK-norm",
       [](Config c) { return c.use_qk_norm ? as_double((c.n_head + c.n_kv_head) * c.head_dim) : 0; }},
      {"q, k after RoPE", [](Config c) { return as_double((c.n_head + c.n_kv_head) * c.head_dim); }, false,
       [](Config c) { return c.use_qk_norm; }},
      {"heads' output", [](Config c) { return as_double(c.n_head * c.head_dim); }},
      {"FFN: w1 x, w3 x",
       [](Config c) {
         const double F = as_double(c.intermediate_size);
         return as_double(nn::ffn_inputs(c.ffn)) * F + (c.mgate ? F + as_double(c.mgate_dim) : 0);
       }},
      {"FFN: the input of w2", [](Config c) { return as_double(c.intermediate_size); }, false,
       [](Config c) { return !c.mgate && ffn_is_recomputed(c); }},
      // Gated SiLU is one op; other gates keep act(w1 x) for the product.
      {"FFN: the gate after its activation",
       [](Config c) {
         const bool kept = nn::ffn_inputs(c.ffn) == 2 && c.hidden_act != Activation::silu;
         return kept ? as_double(c.intermediate_size) : 0;
       }},
      // Per branch and head: hidden layer before GELU (2 R), factors before and after the read factors' norm (4 R),
      // gates before and after tanh (2).
      {"dynamic weights",
       [](Config c) { return as_double(c.dynamic_branches() * c.n_head * (6 * c.profile.rank + 2)); }},
      {"dynamic weights: hidden layer after GELU",
       [](Config c) { return as_double(c.dynamic_branches() * c.n_head * 2 * c.profile.rank); }, false, always},
      {"row statistics of softmax and of the norms in front of both halves",
       [](Config c) {
         const double rows = c.norm == NormKind::layer ? 4 : 2;
         return as_double(c.n_head) + rows;
       },
       true},
  };
  return table;
}

TrainingMemory training_memory(DcformerConfig c, const TrainingSetup& s) {
  resolve(c);
  check(s.batch >= 1 && s.seq_len >= 1, ErrorKind::setting, [&] {
    return str("bad batch: expected at least one sequence of at least one token, found ", s.batch, " of ", s.seq_len);
  });
  const double bytes = as_double(s.bytes_per_element), wide = std::max(4.0, bytes);  // wide: masters, sums, statistics
  double per_token = 0;                                                              // bytes that a block keeps
  for (const ActivationTerm& term : saved_activations()) {
    if (s.keeps_all() || !term.recomputed || !term.recomputed(c))
      per_token += term.elements(c) * (term.statistics ? wide : bytes);
  }
  const double D = as_double(c.dim), L = as_double(c.n_layer), V = as_double(c.vocab_size);
  const double B = as_double(s.batch), T = as_double(s.seq_len), tokens = B * T;
  const double parameters = as_double(count_parameters(c).total);
  const double block = tokens * per_token;
  // Recomputing needs the input of every block and, in turn, everything of one block. The end keeps the input of the
  // final norm and the gradient of its result.
  const double kept = s.recompute ? tokens * L * D * bytes + block : L * block;
  // In the backward pass of attention: gradients of q, k, v and of its result; keys (twice), values and the gradients
  // of both in the kernels' layout; gradients of the dynamic weights, whose key side also is in that layout, twice.
  // That layout is f32 for inputs of 16 bits too. Beside it every thread needs workspace, up to some 80 MiB where
  // sequences are long. In the FFN: gradients of its hidden vectors.
  // At the end: logits in f32, and their gradient in 16 bits for its products.
  const int64_t C = c.dynamic_branches();
  const double R = as_double(C > 0 ? c.profile.rank : 0), d = as_double(c.head_dim);
  const double N = as_double(c.n_head), Nkv = as_double(c.n_kv_head);
  const double packed = (4 * std::ceil(R / 2) + 1) * (C > 0 && c.profile.key_side ? 2 : 1);
  const double factors = as_double(C) * (2 * R + 1);
  const double gradients = (N * (2 * d + factors) + Nkv * 2 * d) * bytes;
  const double layout = (N * stages(c) * packed + Nkv * 5 * d) * wide;
  const double scores = 3 * tokens * T * as_double(c.n_head) * bytes;  // with their gradients and the weights
  const double again = s.keeps_all() || !c.use_qk_norm ? 0 : (N + Nkv) * d * bytes;  // q and k
  const double attention = tokens * (gradients + layout + again) + std::min(as_double(s.attention_workspace), scores);
  const double results = s.keeps_all() || c.mgate || !ffn_is_recomputed(c) ? 0 : 1;  // of the gate, computed again
  const double hidden = (as_double(nn::ffn_inputs(c.ffn)) + results) * tokens * as_double(c.intermediate_size) * bytes;
  double logits = std::min(tokens, as_double(s.logit_rows)) * V * (wide + (bytes < wide ? bytes : 0));
  if (bytes < wide && c.tie_word_embeddings) logits += V * D * bytes;  // the embedding table in 16 bits

  TrainingMemory m;
  m.weights = m.gradients = parameters * wide;
  if (bytes < wide) m.weights += (parameters - V * D) * bytes;  // the embedding table has no copy
  m.optimizer = as_double(s.optimizer_moments) * parameters * wide;
  m.activations = kept + tokens * D * (bytes + wide);
  m.working = std::max({attention, hidden, logits});
  return m;
}

CacheSize cache_bytes(DcformerConfig c, int64_t batch, int64_t seq_len, int64_t bytes_per_element) {
  resolve(c);
  check(batch >= 1 && seq_len >= 1, ErrorKind::setting, [&] {
    return str("bad cache: expected at least one sequence of at least one token, found ", batch, " of ", seq_len);
  });
  const double N = as_double(c.n_head), R = as_double(c.profile.rank);
  const double factors = c.profile.key_side ? stages(c) * (2 * R * N + N) : 0;
  const double position = (2 * as_double(c.n_kv_head * c.head_dim) + factors) * as_double(bytes_per_element);
  double positions = 0;  // summed over layers
  for (int64_t i = 0; i < c.n_layer; ++i) {
    const int64_t window = std::max(c.keys_of_layer(i, false), c.keys_of_layer(i, true));
    positions += as_double(window == 0 ? seq_len : std::min(window, seq_len));
  }
  return {.per_token = position * as_double(c.n_layer), .full = as_double(batch) * positions * position};
}

}  // namespace braid::models
