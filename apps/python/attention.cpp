// braid.nn: attention and the layers of Transformers.
#include "apps/python/bindings.h"
#include "braid/nn.h"

namespace braid::python {

namespace {

void bind_rope(nb::module_& m) {
  nb::class_<nn::Rope>(m, "Rope", "Rotary position embedding: the pair (e, e + rotary/2) of each head turns by p f_e.")
      .def(
          "__init__",
          [](nn::Rope* self, int64_t rotary, int64_t positions, double base, DType dtype) {
            new (self) nn::Rope(rotary, positions, base, nn::Rope::Precision::exact, dtype);
          },
          "rotary"_a, "positions"_a, "base"_a = 10000.0, "dtype"_a = DType::f32)
      .def(
          "__call__", [](const nn::Rope& rope, const Tensor& x, int64_t first) { return rope(x, first); }, "x"_a,
          "first"_a = 0, nb::call_guard<Unlocked>(), "x (B, T, N, d), whose row t is at position first + t.");
}

nn::CompositionOptions composition(int64_t rank, int64_t groups, bool pre, bool post, bool query_side, bool key_side,
                                   bool gates, bool static_term, bool identity_start) {
  return {.groups = groups,
          .rank = rank,
          .pre = pre,
          .post = post,
          .query_side = query_side,
          .key_side = key_side,
          .gates = gates,
          .static_term = static_term,
          .identity_start = identity_start};
}

nn::Pass pass_of(const std::optional<nn::Rope>& rope) {
  nn::Pass pass;
  if (rope) pass.rope = *rope;
  return pass;
}

// What the layer tells of itself, by name, with the maps.
std::vector<NamedTensor> observed(const nn::Attention& layer, const Tensor& x, const std::optional<nn::Rope>& rope) {
  std::vector<NamedTensor> seen;
  const nn::ActivationObserver observer{
      .receive = [&](const std::string& name, const Tensor& value) { seen.emplace_back(name, value.detach()); },
      .requests = [](const std::string&) { return true; }};
  nn::Pass pass = pass_of(rope);
  pass.observer = &observer;
  const NoGrad off;
  layer(x, pass);
  return seen;
}

void bind_attention(nb::module_& m) {
  nb::class_<nn::Attention, nn::Module>(
      m, "Attention",
      "DCMHA, the dynamically composed attention of DCFormer, or with compose=False scaled dot-product attention.  "
      "(B, T, width) -> (B, T, width)")
      .def(
          "__init__",
          [](nn::Attention* self, int64_t width, int64_t heads, int64_t head_dim, int64_t kv_heads, bool qk_norm,
             bool compose, int64_t rank, int64_t groups, bool pre, bool post, bool query_side, bool key_side,
             bool gates, bool static_term, bool identity_start, bool causal, int64_t window, bool bias,
             const std::vector<std::string>& variants, std::function<Tensor(const Tensor&)> compose_scores,
             RandomKey key) {
            new (self) nn::Attention({.width = width,
                                      .heads = heads,
                                      .head_dim = head_dim,
                                      .kv_heads = kv_heads,
                                      .qk_norm = qk_norm,
                                      .compose = compose,
                                      .composition_options = composition(rank, groups, pre, post, query_side, key_side,
                                                                         gates, static_term, identity_start),
                                      .variants = variants,
                                      .compose_scores = std::move(compose_scores),
                                      .causal = causal,
                                      .window = window,
                                      .projection = {.bias = bias}},
                                     key);
          },
          "width"_a, "heads"_a, nb::kw_only(), "head_dim"_a = 0, "kv_heads"_a = 0, "qk_norm"_a = false,
          "compose"_a = true, "rank"_a = 2, "groups"_a = 1, "pre"_a = true, "post"_a = true, "query_side"_a = true,
          "key_side"_a = true, "gates"_a = true, "static_term"_a = false, "identity_start"_a = false, "causal"_a = true,
          "window"_a = 0, "bias"_a = false, "variants"_a = std::vector<std::string>{}, "compose_scores"_a = nb::none(),
          "key"_a = RandomKey{},
          "kv_heads: of grouped heads. variants: by name, such as gated. compose_scores: a composition of your own "
          "beside compose=False, by ops, scores (B, N, T, S) to the same.")
      .def(
          "__call__",
          [](const nn::Attention& layer, const Tensor& x, const std::optional<nn::Rope>& rope) {
            return layer(x, pass_of(rope));
          },
          "x"_a, "rope"_a = nb::none(), nb::call_guard<Unlocked>())
      .def(
          "maps",
          [](const nn::Attention& layer, const Tensor& x, const std::optional<nn::Rope>& rope) {
            std::vector<NamedTensor> seen;
            {
              const Unlocked unlocked;
              seen = observed(layer, x, rope);
            }
            return named(seen);
          },
          "x"_a, "rope"_a = nb::none(),
          "By name: q, k, v, attn_scores, attn_scores_composed, attn_probs, attn_probs_composed (B, N, T, S), and the "
          "weights of Compose, dyn.*.");
  nb::class_<nn::CrossAttention, nn::Module>(m, "CrossAttention",
                                             "Attention of x (B, T, width) to states (B, S, width), composed or plain.")
      .def(
          "__init__",
          [](nn::CrossAttention* self, int64_t width, int64_t heads, bool compose, int64_t rank, bool bias,
             RandomKey key) {
            new (self) nn::CrossAttention({.width = width,
                                           .heads = heads,
                                           .compose = compose,
                                           .composition_options = {.rank = rank},
                                           .projection = {.bias = bias}},
                                          key);
          },
          "width"_a, "heads"_a, "compose"_a = true, "rank"_a = 2, "bias"_a = false, "key"_a = RandomKey{})
      .def(
          "__call__",
          [](const nn::CrossAttention& layer, const Tensor& x, const Tensor& states, std::vector<int64_t> lengths) {
            return layer(x, layer.source(states, std::move(lengths)));
          },
          "x"_a, "states"_a, "lengths"_a = std::vector<int64_t>{}, nb::call_guard<Unlocked>(),
          "lengths: of each sample's states, the others are padding.");
  nb::class_<nn::MultiheadAttention, nn::Module>(m, "MultiheadAttention",
                                                 "Self-attention, or of q to k and v.  (B, T, width)")
      .def(
          "__init__",
          [](nn::MultiheadAttention* self, int64_t width, int64_t heads, bool bias, double dropout, RandomKey key) {
            new (self) nn::MultiheadAttention({.width = width, .heads = heads, .bias = bias, .dropout = dropout}, key);
          },
          "width"_a, "heads"_a, "bias"_a = true, "dropout"_a = 0.0, "key"_a = RandomKey{})
      .def(
          "__call__", [](const nn::MultiheadAttention& l, const Tensor& x) { return l(x); }, "x"_a,
          nb::call_guard<Unlocked>())
      .def(
          "__call__",
          [](const nn::MultiheadAttention& l, const Tensor& q, const Tensor& k, const Tensor& v, bool causal,
             bool train, RandomKey key) { return l(q, k, v, {.causal = causal}, mode_of(train), key); },
          "q"_a, "k"_a, "v"_a, "causal"_a = false, "train"_a = false, "key"_a = RandomKey{},
          nb::call_guard<Unlocked>());
}

void bind_transformers(nb::module_& m) {
  nb::class_<nn::Mlp, nn::Module>(m, "MLP", "w2 (act(w1 x) * w3 x), or without gate w2 act(w1 x).  (B, T, width)")
      .def(
          "__init__",
          [](nn::Mlp* self, int64_t width, int64_t hidden, bool gated, bool bias, RandomKey key) {
            new (self) nn::Mlp({.width = width,
                                .hidden = hidden,
                                .kind = gated ? nn::FfnKind::swiglu : nn::FfnKind::gelu,
                                .projection = {.bias = bias}},
                               key);
          },
          "width"_a, "hidden"_a, "gated"_a = true, "bias"_a = false, "key"_a = RandomKey{}, "gated: SwiGLU, else GELU.")
      .def(
          "__call__", [](const nn::Mlp& layer, const Tensor& x) { return layer(x); }, "x"_a,
          nb::call_guard<Unlocked>());
  const auto transformer = [&]<class Layer>(const char* name, const char* doc, Layer*) {
    return nb::class_<Layer, nn::Module>(m, name, doc)
        .def(
            "__init__",
            [](Layer* self, int64_t width, int64_t heads, int64_t hidden, double dropout, bool norm_first,
               RandomKey key) {
              new (self) Layer(
                  {.width = width, .heads = heads, .hidden = hidden, .dropout = dropout, .norm_first = norm_first},
                  key);
            },
            "width"_a, "heads"_a, "hidden"_a = 0, "dropout"_a = 0.0, "norm_first"_a = true, "key"_a = RandomKey{});
  };
  transformer("TransformerEncoderLayer", "(B, T, width) -> (B, T, width)", (nn::TransformerEncoderLayer*)nullptr)
      .def(
          "__call__",
          [](const nn::TransformerEncoderLayer& layer, const Tensor& x, bool causal, bool train, RandomKey key) {
            return layer(x, {.causal = causal}, mode_of(train), key);
          },
          "x"_a, "causal"_a = false, "train"_a = false, "key"_a = RandomKey{}, nb::call_guard<Unlocked>());
  transformer("TransformerDecoderLayer", "x (B, T, width), the encoder's states (B, S, width) -> (B, T, width)",
              (nn::TransformerDecoderLayer*)nullptr)
      .def(
          "__call__",
          [](const nn::TransformerDecoderLayer& layer, const Tensor& x, const Tensor& states, bool causal, bool train,
             RandomKey key) { return layer(x, states, {.causal = causal}, {}, mode_of(train), key); },
          "x"_a, "states"_a, "causal"_a = true, "train"_a = false, "key"_a = RandomKey{}, nb::call_guard<Unlocked>());
  nb::class_<nn::LearnedPositions, nn::Module>(m, "LearnedPositions", "x (B, T, width) + weight[:T]")
      .def(
          "__init__",
          [](nn::LearnedPositions* self, int64_t length, int64_t width, RandomKey key) {
            new (self) nn::LearnedPositions(length, width, key);
          },
          "length"_a, "width"_a, "key"_a = RandomKey{})
      .def(
          "__call__", [](const nn::LearnedPositions& layer, const Tensor& x) { return layer(x); }, "x"_a,
          nb::call_guard<Unlocked>());
  m.def(
      "sinusoidal_positions",
      [](int64_t length, int64_t width, DType dtype) { return nn::sinusoidal_positions(length, width, dtype); },
      "length"_a, "width"_a, "dtype"_a = DType::f32,
      "(length, width): sin(t / 10000^(2 i / width)) at 2 i, cosine behind.");
}

}  // namespace

void bind_attention_layers(nb::module_& m) {
  bind_rope(m);
  bind_attention(m);
  bind_transformers(m);
}

}  // namespace braid::python
