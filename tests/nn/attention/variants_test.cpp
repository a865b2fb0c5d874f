// Attention variants: what holds of every row of the list, and each one's formula in loops, in f64.
#include "braid/nn/attention/variant.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "braid/autograd.h"
#include "tests/nn/attention/variants_support.h"
#include "tests/nn/support.h"
#include "tests/support/gradcheck_model.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(attention_variants)

BOOST_AUTO_TEST_CASE(every_variant_is_differentiable_alone_and_with_compose) {
  for (const nn::AttentionVariantRule& rule : nn::attention_variants()) {
    for (const bool compose : {false, true}) {
      if (compose && rule.composed) continue;
      BOOST_TEST_CONTEXT(rule.name << (compose ? ", with compose" : "")) {
        nn::AttentionOptions o = with({rule.name});
        o.compose = compose;
        o.kv_heads = compose ? N : 2;
        o.qk_norm = true;
        nn::Attention attention(o, {1, 1});
        draw_identity(attention, rule);
        nn::to(attention, DType::f64);
        check_gradient_flow(attention, attention(input(), {.rope = rope(), .ids = tokens()}), 1e-10);
        nn::zero_grad(attention);
        const Tensor weights = randn({B, T, D}, {11, 2}, DType::f64);
        const GradcheckResult checked =
            gradcheck_model(attention,
                            [&](const std::vector<Tensor>& in) {
                              return sum(mul(attention(in[0], {.rope = rope(), .ids = tokens()}), weights));
                            },
                            {input()});
        BOOST_TEST(checked.error < 1e-6, checked.where);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(an_identity_start_is_one_to_the_bit) {
  for (const nn::AttentionVariantRule& rule : nn::attention_variants()) {
    nn::AttentionOptions plain = with({});
    if (rule.composed) plain.compose_scores = [](const Tensor& s) { return s; };  // as ops, whose rounding is another
    const Tensor x = randn({B, T, D}, {11, 1});
    const bool equal = bool(is_close(nn::Attention(with({rule.name}), {1, 1})(x, {.ids = tokens()}),
                                     nn::Attention(plain, {1, 1})(x, {.ids = tokens()}), 0));
    BOOST_TEST(equal == rule.identity_start, rule.name);
  }
}

BOOST_AUTO_TEST_CASE(every_variant_computes_with_16_bit_weights) {
  for (const nn::AttentionVariantRule& rule : nn::attention_variants()) {
    BOOST_TEST_CONTEXT(rule.name) {
      BOOST_TEST_CHECKPOINT(rule.name);  // what an exception is reported with
      nn::Attention attention(with({rule.name}), {1, 1});
      draw_identity(attention, rule);
      const Tensor x = randn({B, T, D}, {11, 1}), want = attention(x, {.ids = tokens()}).detach();
      nn::to(attention, DType::bf16);
      BOOST_TEST(is_close(attention(cast(x, DType::bf16), {.ids = tokens()}).detach(), want, 0.05));
    }
  }
}

// As of any layer: it shares the parameters until one of the two is converted.
BOOST_AUTO_TEST_CASE(a_copy_can_be_converted_by_itself) {
  const nn::Attention original(with({"knocking", "gated"}), {1, 1});
  nn::Attention copy = original;
  const std::vector<nn::NamedTensor> all = nn::parameters(original), shared = nn::parameters(copy);
  for (size_t i = 0; i < all.size(); ++i) BOOST_TEST(all[i].value.shares_storage(shared[i].value), all[i].name);
  nn::to(copy, DType::f64);
  for (const nn::NamedTensor& p : nn::parameters(original)) BOOST_TEST((p.value.dtype() == DType::f32), p.name);
  for (const nn::NamedTensor& p : nn::parameters(copy)) BOOST_TEST((p.value.dtype() == DType::f64), p.name);
}

// compose_scores with a matrix over heads is DCMHA with its static term before the softmax alone.
BOOST_AUTO_TEST_CASE(a_composition_of_ones_own) {
  nn::AttentionOptions o = with({});
  o.compose = true;
  nn::CompositionOptions& c = o.composition_options;
  c.static_term = c.pre = true;
  c.post = c.query_side = c.key_side = c.gates = false;
  nn::Attention talking = make(o);
  Tensor mix;
  for (const nn::NamedTensor& p : nn::parameters(talking))
    if (p.name.ends_with("_proj.w")) mix = p.value.detach().reshaped({N, N}).clone();
  BOOST_REQUIRE(bool(mix));
  require_grad(mix);
  nn::AttentionOptions own = with({});
  own.compose_scores = [mix](const Tensor& s) { return add(s, einsum("bmts,mn->bnts", {s, mix})); };
  nn::Attention attention = make(own);
  for (nn::NamedTensor& p : nn::parameters(attention)) p.value.copy_(parameter(talking, p.name));
  const Tensor y = attention(input());
  BOOST_TEST(is_close(y.detach(), talking(input()), 1e-12));
  backward(sum(mul(y, randn(y.shape(), {11, 2}, DType::f64))));
  BOOST_TEST(!is_close(grad(mix), zeros({N, N}, DType::f64), 1e-3));
  own.compose = true;
  BOOST_TEST(throws_with([&] { make(own); }, "DCMHA cannot be beside compose_scores; set compose = false"));
}

BOOST_AUTO_TEST_CASE(gates_multiply_the_output_of_a_head) {
  for (const bool by_head : {false, true}) {
    const std::string name = by_head ? "gated-head" : "gated";
    nn::Attention gated = make(with({name})), plain = make(with({}));
    const Tensor x = input(), y = heads_of(plain, x), got = heads_of(gated, x);
    const Tensor gate = parameter(gated, name + ".gate.weight");  // (N d, D) or (N, D)
    BOOST_TEST(gate.dim(0) == (by_head ? N : N * d));
    for (int64_t b = 0; b < B; ++b)
      for (int64_t t = 0; t < T; ++t)
        for (int64_t n = 0; n < N; ++n)
          for (int64_t i = 0; i < d; ++i) {
            double logit = 0;
            for (int64_t c = 0; c < D; ++c)
              logit += x.data<double>()[(b * T + t) * D + c] * gate.data<double>()[(by_head ? n : n * d + i) * D + c];
            BOOST_TEST(std::fabs(at(got, b, t, n, i) - at(y, b, t, n, i) / (1 + std::exp(-logit))) < 1e-12);
          }
  }
}

// The first and the second query heads of the pairs are two plain layers over the same keys and values.
BOOST_AUTO_TEST_CASE(diff_v2_subtracts_the_second_head_of_each_pair) {
  for (const int64_t kv_heads : {N, int64_t{2}}) {
    nn::AttentionOptions o = with({"diff-v2"}), p = with({});
    o.kv_heads = p.kv_heads = kv_heads;
    nn::Attention diff = make(o), first = make(p), second = make(p);
    for (auto& [layer, of_pair] : {std::pair{&first, 0}, {&second, 1}}) {
      for (int64_t n = 0; n < N; ++n) rows_of(*layer, n, 1).copy_(rows_of(diff, 2 * n + of_pair, 1));
      rows_of(*layer, N, 2 * kv_heads).copy_(rows_of(diff, 2 * N, 2 * kv_heads));
    }
    const Tensor x = input(), y1 = heads_of(first, x), y2 = heads_of(second, x);
    const Tensor lambda = parameter(diff, "diff-v2.lambda.weight");  // (N, D)
    const Tensor want = sub(y1, mul(unsqueeze(sigmoid(linear(x, lambda)), -1), y2));
    BOOST_TEST(is_close(heads_of(diff, x), want, 1e-12));
  }
}

// A matrix on every head is the same matrix on the rows of wqkv that make the head.
BOOST_AUTO_TEST_CASE(knocking_changes_the_projections_of_all_heads_alike) {
  nn::AttentionOptions o = with({"knocking"}), p = with({});
  o.kv_heads = p.kv_heads = 2;
  nn::Attention knocking = make(o), plain = make(p);
  for (const auto& [part, first, count] :
       {std::tuple{"q", int64_t{0}, N}, {"k", N, int64_t{2}}, {"v", N + 2, int64_t{2}}}) {
    fill(knocking, str("knocking.", part), static_cast<uint64_t>(part[0]));
    const Tensor map = add(eye(d, DType::f64), parameter(knocking, str("knocking.", part)));
    for (int64_t n = first; n < first + count; ++n)
      rows_of(plain, n, 1).copy_(matmul(transpose(map), rows_of(knocking, n, 1).clone()));
  }
  BOOST_TEST(is_close(heads_of(knocking, input()), heads_of(plain, input()), 1e-12));
}

BOOST_AUTO_TEST_CASE(a_value_embedding_is_added_to_the_values) {
  nn::AttentionOptions o = with({"value-embedding"});
  o.kv_heads = 2;
  nn::Attention attention = make(o);
  fill(attention, "value-embedding.gate.weight", 3);
  parameter(attention, "wo.weight").copy_(eye(D, DType::f64));
  const Tensor x = input(), all = reshape(linear(x, parameter(attention, "wqkv.weight")), {B, T, N + 4, d});
  const Tensor gate = sigmoid(linear(x, parameter(attention, "value-embedding.gate.weight"))) * 2.0;  // (B, T, Nkv)
  const Tensor table = reshape(embedding(parameter(attention, "value-embedding.table"), tokens()), {B, T, 2, d});
  const Tensor v = add(slice(all, 2, N + 2, N + 4), mul(unsqueeze(gate, -1), table));
  const Tensor want = scaled_dot_product_attention(slice(all, 2, 0, N), slice(all, 2, N, N + 2), v, {});
  BOOST_TEST(is_close(reshape(attention(x, {.ids = tokens()}), {B, T, N, d}), want, 1e-12));
}

// Two layers of one pass: the second reads the values of the first, before the factors of the first.
BOOST_AUTO_TEST_CASE(a_value_residual_adds_the_values_of_the_first_layer) {
  nn::AttentionOptions o = with({"value-residual"});
  o.kv_heads = 2;
  nn::Attention first = make(o), second = make(o);
  nn::Pass pass;
  pass.shared = std::make_shared<std::map<std::string, Tensor>>();
  Tensor v_1;
  for (nn::Attention* layer : {&first, &second}) {
    const uint64_t seed = layer == &first ? 3 : 4;
    for (const char* name : {"wqkv.weight", "value-residual.own", "value-residual.first"}) fill(*layer, name, seed);
    parameter(*layer, "wo.weight").copy_(eye(D, DType::f64));
    const Tensor x = randn({B, T, D}, {11, seed}, DType::f64);
    const Tensor all = reshape(linear(x, parameter(*layer, "wqkv.weight")), {B, T, N + 4, d}).detach();
    const Tensor v = slice(all, 2, N + 2, N + 4);
    if (layer == &first) v_1 = v;
    const double own = parameter(*layer, "value-residual.own").item(),
                 of_first = parameter(*layer, "value-residual.first").item();
    const Tensor want =
        scaled_dot_product_attention(slice(all, 2, 0, N), slice(all, 2, N, N + 2), add(v * own, v_1 * of_first), {});
    BOOST_TEST(layer->gives(pass) == (layer == &first));
    BOOST_TEST(is_close(reshape((*layer)(x, pass), {B, T, N, d}), want, 1e-12));
  }
}

BOOST_AUTO_TEST_CASE(xsa_leaves_nothing_along_the_own_value) {
  for (const int64_t kv_heads : {N, int64_t{2}}) {
    nn::AttentionOptions o = with({"xsa"}), p = with({});
    o.kv_heads = p.kv_heads = kv_heads;
    nn::Attention xsa = make(o), plain = make(p);
    Tensor x = input();
    x.sliced(1, 2, 3).fill(0);  // a token whose value is 0
    const Tensor y = heads_of(plain, x), got = heads_of(xsa, x);
    const Tensor v = reshape(linear(x, rows_of(plain, N + kv_heads, kv_heads).clone()), {B, T, kv_heads, d});
    for (int64_t b = 0; b < B; ++b)
      for (int64_t t = 0; t < T; ++t)
        for (int64_t n = 0; n < N; ++n) {
          const int64_t group = n / (N / kv_heads);
          double length = 0, along = 0;
          for (int64_t i = 0; i < d; ++i) {
            length += at(v, b, t, group, i) * at(v, b, t, group, i);
            along += at(y, b, t, n, i) * at(v, b, t, group, i);
          }
          BOOST_TEST((t == 2) == (length == 0));
          for (int64_t i = 0; i < d; ++i) {
            const double part = length == 0 ? 0 : along / length * at(v, b, t, group, i);
            BOOST_TEST(std::fabs(at(got, b, t, n, i) - (at(y, b, t, n, i) - part)) < 1e-12);
          }
        }
  }
}

BOOST_AUTO_TEST_CASE(what_a_variant_computes_can_be_observed) {
  std::map<std::string, Shape> seen;
  const nn::ActivationObserver observer{[&](const std::string& name, const Tensor& x) { seen[name] = x.shape(); }};
  make(with({"mta"}))(input(), {.observer = &observer, .part = "layers.0."});
  make(with({"diff-v2", "gated", "gated-head"}))(input(), {.observer = &observer, .part = "layers.0."});
  BOOST_TEST((seen.at("layers.0.lambda") == Shape{B, T, N}));
  BOOST_TEST((seen.at("layers.0.gate") == Shape{B, T, N, d}));
  BOOST_TEST((seen.at("layers.0.head_gate") == Shape{B, T, N}));
  BOOST_TEST((seen.at("layers.0.mta_gate") == Shape{B, T, N}));
}

BOOST_AUTO_TEST_CASE(wrong_lists_are_errors) {
  const auto rejected = [](const std::vector<std::string>& names, bool compose, const std::string& message) {
    nn::AttentionOptions o = with(names);
    o.compose = compose;
    BOOST_TEST(throws_with([&] { nn::Attention(o, {1, 1}); }, message));
  };
  rejected({"gatet"}, false, "unknown attention variant 'gatet'; did you mean 'gated'?: expected some of ");
  rejected({"gated", "diff-v2"}, false,
           "bad attention: expected diff-v2 first, which makes heads of several query heads, found gated,diff-v2");
  rejected({"sink", "off-by-one"}, false,
           "bad attention: expected one variant in the place of the softmax, found sink and off-by-one");
  rejected({"mta", "iha"}, false,
           "bad attention: expected one variant whose scores are those of several tokens, found mta and iha");
  nn::AttentionOptions odd = with({"mta"});
  odd.heads = 1;
  BOOST_TEST(throws_with([&] { nn::Attention(odd, {1, 1}); }, "expected an even number of them, found 1"));
  rejected({"sink"}, true, "DCMHA cannot be beside a composed attention variant, found sink");
  nn::AttentionOptions no_tokens = with({"value-embedding"});
  no_tokens.vocabulary = 0;
  BOOST_TEST(throws_with(
      [&] {
        nn::Attention(no_tokens, {1, 1});
      },
      "attention value-embedding needs a model that reads tokens"));
  BOOST_TEST(
      throws_with([] { nn::register_attention_variant({.name = "xsa"}); }, "two attention variants are called xsa"));
}

BOOST_AUTO_TEST_SUITE_END()
