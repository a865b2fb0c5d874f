// inspect() against hidden() and its observer, against the formula composed by hand in f64, and terms scaled to 0
// against models that were configured without them.
#include "braid/models/inspect/inspection.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <map>

#include "braid/autograd.h"
#include "braid/models/families/dcformer/model.h"
#include "braid/models/inspect/capture.h"
#include "tests/models/made_models.h"
#include "tests/support/compare.h"
#include "tests/support/random.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;
using namespace braid::models;

BOOST_AUTO_TEST_SUITE(inspection)

namespace {

using Stage = nn::CompositionScale::Stage;

const std::vector<int32_t> kTokens = {3, 1, 4, 1, 5, 9, 2, 6, 5};
constexpr int64_t T = 9, N = 4;

DcformerConfig config(const Keys& more = {}) {
  Keys keys = {{"dim", "16"},        {"n_layer", "2"},     {"n_head", "4"},      {"intermediate_size", "12"},
               {"vocab_size", "31"}, {"window_size", "5"}, {"block_size", "24"}, {"initializer_std", "0.2"}};
  keys.insert(keys.end(), more.begin(), more.end());
  return configure("dcformer-tiny", keys);
}

const Keys kStatic = {{"profile.static_proj", "true"}, {"profile.num_groups", "2"}};

Tensor ids() { return from_vector(kTokens, {1, T}); }

std::map<std::string, Tensor> observed(const LanguageModel& model) {
  const NoGrad off;
  std::map<std::string, Tensor> all;
  const nn::ActivationObserver observer{[&](const std::string& name, const Tensor& x) { all[name] = x.detach(); },
                                        [](const std::string&) { return true; }};
  all["logits"] = model.logits(model.hidden(ids(), nullptr, &observer));
  return all;
}

std::map<std::string, Tensor> by_name(const Inspection& inspection) {
  std::map<std::string, Tensor> tensors;
  for (const NamedTensor& t : inspection.tensors) BOOST_TEST(tensors.emplace(t.name, t.value).second, t.name);
  return tensors;
}

Stage stage(double every) { return {every, every, every, every, every}; }

// The model with `factors` in every layer.
Tensor logits_scaled(const LanguageModel& model, const nn::CompositionScale& factors) {
  const NoGrad off;
  return model.logits(scaled_hidden(model, ids(), {factors, factors}));
}

}  // namespace

BOOST_AUTO_TEST_CASE(tensors_are_those_of_the_pass) {
  for (const Keys& keys : {Keys{}, kStatic, Keys{{"use_dcmha", "false"}}, Keys{{"profile.rank", "0"}}}) {
    const Dcformer model = frozen_model(config(keys));
    const auto want = observed(model);
    for (const int64_t layer : {0, 1}) {
      const Inspection got = inspect(model, {.tokens = kTokens, .layer = layer});
      BOOST_TEST(got.layers == 2);
      BOOST_TEST(got.heads == N);
      BOOST_TEST(got.groups == (keys == kStatic ? 2 : 1));
      BOOST_TEST(got.rank == (keys.empty() || keys == kStatic ? 2 : 0));
      BOOST_TEST(!got.scaled);
      const std::string prefix = "layers." + std::to_string(layer) + ".";
      const auto tensors = by_name(got);
      size_t expected = 0;
      for (const auto& [name, value] : want) {
        const bool of_layer = name.starts_with(prefix + "dyn.") || name.starts_with(prefix + "attn_scores") ||
                              name.starts_with(prefix + "attn_probs");
        if (!of_layer) continue;
        ++expected;
        BOOST_REQUIRE(tensors.contains(name));
        BOOST_TEST(is_close(tensors.at(name), value, 0), name);
      }
      BOOST_TEST(tensors.size() == expected);
      BOOST_TEST(expected >= 4u);
    }
  }
}

BOOST_AUTO_TEST_CASE(some_heads_and_queries) {
  const Dcformer model = frozen_model(config());
  const auto all = by_name(inspect(model, {.tokens = kTokens, .layer = 1}));
  const Inspection got =
      inspect(model, {.tokens = kTokens, .layer = 1, .heads = {1, 3}, .queries = {0, 4, 8}, .weights = false});
  const auto some = by_name(got);
  BOOST_TEST(some.size() == 4u);
  for (const auto& [name, value] : some) {
    BOOST_TEST((value.shape() == Shape{1, 2, 3, T}), name);
    for (int64_t n = 0; n < 2; ++n)
      for (int64_t i = 0; i < 3; ++i) {
        const int64_t head = 1 + 2 * n, query = 4 * i;
        const auto row = [](const Tensor& x, int64_t a, int64_t b) {
          return x.sliced(1, a, a + 1).sliced(2, b, b + 1).contiguous();
        };
        BOOST_TEST(is_close(row(value, n, i), row(all.at(name), head, query), 0), name);
      }
  }
}

// The matrix of a pair takes the scores before Compose to those after it, in both stages; the parts add up.
BOOST_AUTO_TEST_CASE(the_matrix_of_a_pair_composes_the_heads) {
  for (const Keys& keys : {Keys{}, kStatic, Keys{{"profile.key_side", "false"}}, Keys{{"profile.rank", "0"}},
                           Keys{{"use_dcmha", "false"}}}) {
    const Dcformer model = frozen_model(config(keys));
    for (const auto& [i, j] : {std::pair<int64_t, int64_t>{8, 6}, {5, 5}, {4, 1}}) {
      const Inspection got = inspect(model, {.tokens = kTokens, .layer = 0, .pair = std::pair{i, j}});
      auto tensors = by_name(got);
      const auto heads_of = [&](const std::string& name) {  // (N) at the pair
        const Tensor map = tensors.at("layers.0." + name);
        return map.sliced(2, i, i + 1).sliced(3, j, j + 1).contiguous().to_vector<double>();
      };
      for (const auto& [stage, before, after] :
           {std::tuple{"pre", "attn_scores", "attn_scores_composed"}, {"post", "attn_probs", "attn_probs_composed"}}) {
        const auto part = [&](const std::string& name) {
          const Tensor x = tensors.at("layers.0.mix." + std::string(stage) + "." + name);
          BOOST_TEST((x.shape() == Shape{N, N}));
          return x.to_vector<double>();
        };
        const std::vector<double> a = heads_of(before), total = part("total");
        std::vector<double> sum(N * N), o(N);
        for (const char* name : {"identity", "base", "query", "key", "query_gate", "key_gate"}) {
          const std::vector<double> values = part(name);
          for (size_t e = 0; e < sum.size(); ++e) sum[e] += values[e];
        }
        for (size_t m = 0; m < N; ++m)
          for (size_t n = 0; n < N; ++n) o[n] += a[m] * total[m * N + n];
        BOOST_TEST(is_close(sum, total, 1e-15));
        BOOST_TEST(is_close(o, heads_of(after), 1e-12));
        if (keys == kStatic) BOOST_TEST(total[0 * N + 2] == 0);  // heads of two groups
        if (keys.empty()) BOOST_TEST(part("query_gate")[0] != 0);
        if (keys.empty()) BOOST_TEST(part("key")[1] != part("query")[1]);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(next_tokens_by_the_logits) {
  const Dcformer model = frozen_model(config());
  const Tensor logits = observed(model).at("logits");
  const Inspection got = inspect(model, {.tokens = kTokens, .candidates = 3});
  BOOST_TEST(got.tensors.empty());
  BOOST_REQUIRE(got.next.size() == static_cast<size_t>(T));
  const std::vector<double> all = logits.to_vector<double>();
  for (size_t t = 0; t < T; ++t) {
    const std::vector<double> x(all.begin() + static_cast<int64_t>(t) * 31,
                                all.begin() + static_cast<int64_t>(t + 1) * 31);
    double sum = 0, entropy = 0;
    for (const double v : x) sum += std::exp(v);
    for (const double v : x) entropy -= std::exp(v) / sum * (v - std::log(sum));
    const NextToken& next = got.next[t];
    BOOST_TEST(next.plain.entropy == entropy, boost::test_tools::tolerance(1e-12));
    BOOST_TEST(next.plain.next.has_value() == (t + 1 < T));
    if (t + 1 < T)
      BOOST_TEST(*next.plain.next == x[static_cast<size_t>(kTokens[t + 1])] - std::log(sum),
                 boost::test_tools::tolerance(1e-12));
    BOOST_TEST((next.scaled == next.plain));
    BOOST_TEST(next.kl == 0);
    BOOST_REQUIRE(next.candidates.size() == 3u);
    const auto best = std::ranges::max_element(x) - x.begin();
    BOOST_TEST(next.candidates[0].token == best);
    BOOST_TEST(next.candidates[0].plain >= next.candidates[1].plain);
    BOOST_TEST(next.candidates[1].plain >= next.candidates[2].plain);
    BOOST_TEST(next.candidates[0].plain == x[static_cast<size_t>(best)] - std::log(sum),
               boost::test_tools::tolerance(1e-12));
  }
}

BOOST_AUTO_TEST_CASE(factors_of_one_change_no_bit) {
  const NoGrad off;
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Dcformer model = frozen_model(config(kStatic), dtype);
    const Tensor as_it_is = model.logits(model.hidden(ids()));
    BOOST_TEST(is_close(logits_scaled(model, {}), as_it_is, 0));
    const Inspection got = inspect(model, {.tokens = kTokens, .layer = 0, .scales = {{std::nullopt, {}}}});
    BOOST_TEST(!got.scaled);
    // A later entry replaces an earlier one.
    BOOST_TEST(!inspect(model, {.tokens = kTokens, .scales = {{1, {stage(0), stage(0)}}, {1, {}}}}).scaled);
    // Nothing stays behind.
    logits_scaled(model, {stage(0), stage(0.5)});
    BOOST_TEST(is_close(model.logits(model.hidden(ids())), as_it_is, 0));
  }
}

// Against the complete model with parameters of the term set to zero, or multiplied.
BOOST_AUTO_TEST_CASE(each_factor_scales_its_term) {
  const NoGrad off;
  const DcformerConfig c = config(kStatic);
  const int64_t M = c.group_heads(), R = c.profile.rank;
  for (const double factor : {0.0, 0.25}) {
    for (const bool post : {false, true}) {
      for (const char* term : {"base", "query", "key", "query_gate", "key_gate"}) {
        const std::string name = term;
        const Dcformer model = frozen_model(c);
        Dcformer changed = frozen_model(c);
        for (nn::NamedTensor& p : nn::parameters(changed)) {
          const int64_t branch = (post ? 2 : 0) + (name.starts_with("key") ? 1 : 0);
          const auto multiply = [&](Tensor x) { x.copy_(scale(contiguous(x), factor)); };
          if (name == "base" && p.name.ends_with(post ? "post_proj.w" : "pre_proj.w")) multiply(p.value);
          if (!name.ends_with("gate") && name != "base" && p.name.ends_with(".qkw"))
            multiply(p.value.sliced(1, branch, branch + 1).sliced(3, R, 2 * R));
          // tanh is not linear: gates can only be compared at 0
          if (name.ends_with("gate") && p.name.ends_with(".dd") && factor == 0)
            multiply(p.value.sliced(2, branch * M, (branch + 1) * M));
        }
        if (name.ends_with("gate") && factor != 0) continue;
        nn::CompositionScale factors;
        Stage& s = post ? factors.post : factors.pre;
        (name == "base"         ? s.base
         : name == "query"      ? s.query
         : name == "key"        ? s.key
         : name == "query_gate" ? s.query_gate
                                : s.key_gate) = factor;
        const Tensor got = logits_scaled(model, factors), want = changed.logits(changed.hidden(ids()));
        BOOST_TEST(is_close(got, want, 1e-12), name << " x " << factor);
        BOOST_TEST(!is_close(got, model.logits(model.hidden(ids())), 1e-6), name << " has an effect");
      }
    }
  }
}

// Gates between 0 and 1, by the matrices of a pair.
BOOST_AUTO_TEST_CASE(a_gate_is_scaled_where_it_is_added) {
  const Dcformer model = frozen_model(config());
  nn::CompositionScale factors;
  factors.post.key_gate = 0.25;
  const auto request = [&](bool scaled) {
    InspectionRequest r{.tokens = kTokens, .layer = 0, .pair = std::pair<int64_t, int64_t>{7, 5}};
    if (scaled) r.scales = {{0, factors}};
    return by_name(inspect(model, r));
  };
  const auto plain = request(false), scaled = request(true);
  const std::string gate = "layers.0.mix.post.key_gate";
  BOOST_TEST(is_close(scaled.at(gate), scale(plain.at(gate), 0.25), 1e-15));
  BOOST_TEST(is_close(scaled.at("layers.0.mix.post.query"), plain.at("layers.0.mix.post.query"), 0));
}

// Zero in one side equals a model that was configured without that side, its weights those that are left.
BOOST_AUTO_TEST_CASE(zero_is_the_switch_of_the_configuration) {
  const NoGrad off;
  const Dcformer all = frozen_model(config(kStatic));
  std::map<std::string, Tensor> have;
  for (const nn::NamedTensor& p : nn::parameters(all)) have[p.name] = p.value.detach();
  Keys keys = kStatic;
  keys.emplace_back("profile.key_side", "false");
  Dcformer reduced = frozen_model(config(keys));
  const int64_t M = reduced.config().group_heads();
  for (nn::NamedTensor& p : nn::parameters(reduced)) {
    const Tensor x = have.at(p.name);
    const bool gates = p.name.ends_with(".dd"),
               branches = gates || p.name.ends_with(".dw1") || p.name.ends_with(".qkw");
    const int axis = p.name.ends_with(".qkw") ? 1 : 2;
    const int64_t size = gates ? M : 1;
    p.value.copy_(!branches ? x : concat({x.sliced(axis, 0, size), x.sliced(axis, 2 * size, 3 * size)}, axis));
  }
  nn::CompositionScale factors;
  factors.pre.key = factors.pre.key_gate = factors.post.key = factors.post.key_gate = 0;
  BOOST_TEST(is_close(logits_scaled(all, factors), reduced.logits(reduced.hidden(ids())), 1e-13));
  BOOST_TEST(!is_close(logits_scaled(all, factors), all.logits(all.hidden(ids())), 1e-3));

  // Nothing left: plain attention.
  Dcformer plain = frozen_model(config({{"use_dcmha", "false"}}));
  for (nn::NamedTensor& p : nn::parameters(plain)) p.value.copy_(have.at(p.name));
  BOOST_TEST(is_close(logits_scaled(all, {stage(0), stage(0)}), plain.logits(plain.hidden(ids())), 1e-13));
}

BOOST_AUTO_TEST_CASE(scaled_and_plain_side_by_side) {
  const NoGrad off;
  const Dcformer model = frozen_model(config());
  const nn::CompositionScale none{stage(0), stage(0)};
  const Inspection got = inspect(model, {.tokens = kTokens, .layer = 1, .candidates = 2, .scales = {{1, none}}});
  BOOST_TEST(got.scaled);
  const Tensor as_it_is = model.hidden(ids()), changed = scaled_hidden(model, ids(), {{}, none});
  const auto row = [&](const Tensor& hidden, int64_t t) {
    return log_softmax(model.logits(hidden).sliced(1, t, t + 1).contiguous()).to_vector<double>();
  };
  for (int64_t t = 0; t < T; ++t) {
    const std::vector<double> p = row(as_it_is, t), q = row(changed, t);
    double kl = 0;
    for (size_t v = 0; v < p.size(); ++v) kl += std::exp(p[v]) * (p[v] - q[v]);
    const NextToken& next = got.next[static_cast<size_t>(t)];
    BOOST_TEST(next.kl == kl, boost::test_tools::tolerance(1e-9));
    BOOST_TEST(next.kl > 1e-6);
    BOOST_TEST((next.candidates.size() >= 2u && next.candidates.size() <= 4u));
    for (const NextToken::Candidate& c : next.candidates) {
      BOOST_TEST(c.plain == p[static_cast<size_t>(c.token)], boost::test_tools::tolerance(1e-10));
      BOOST_TEST(c.scaled == q[static_cast<size_t>(c.token)], boost::test_tools::tolerance(1e-10));
    }
  }
  // The maps are those of the scaled model: without terms, those after Compose are those before.
  const auto tensors = by_name(got);
  BOOST_TEST(tensors.size() == 4u);
  BOOST_TEST(is_close(tensors.at("layers.1.attn_probs_composed"), tensors.at("layers.1.attn_probs"), 0));
}

BOOST_AUTO_TEST_CASE(requests_out_of_range_are_rejected) {
  const Dcformer model = frozen_model(config());
  const auto rejected = [&](const InspectionRequest& r, std::initializer_list<std::string> parts,
                            const InspectionLimits& limits = {}) {
    BOOST_CHECK_EXCEPTION(inspect(model, r, limits), Error,
                          [&](const Error& e) { return says(e, ErrorKind::input, parts); });
  };
  nn::CompositionScale twice;
  twice.post.query = 2;
  rejected({}, {"tokens: expected 1 to 24 of them, found 0"});
  rejected({.tokens = std::vector<int32_t>(25)}, {"tokens: expected 1 to 24 of them, found 25"});
  rejected({.tokens = kTokens}, {"tokens: expected 1 to 8 of them, found 9"}, {.tokens = 8});
  rejected({.tokens = {31}}, {"tokens: expected a number from 0 to 30, found 31"});
  rejected({.tokens = kTokens, .layer = 2}, {"layer: expected a number from 0 to 1, found 2"});
  rejected({.tokens = kTokens, .layer = 0, .heads = {4}}, {"heads: expected a number from 0 to 3, found 4"});
  rejected({.tokens = kTokens, .layer = 0, .heads = {1, 1}}, {"heads: expected ascending numbers"});
  rejected({.tokens = kTokens, .layer = 0, .queries = {9}}, {"queries: expected a number from 0 to 8, found 9"});
  rejected({.tokens = kTokens, .pair = std::pair<int64_t, int64_t>{1, 1}}, {"pair: expected a layer beside it"});
  rejected({.tokens = kTokens, .layer = 0, .pair = std::pair<int64_t, int64_t>{1, 9}}, {"pair: ", "found 9"});
  rejected({.tokens = kTokens, .candidates = 65}, {"candidates: expected a number from 0 to 64, found 65"});
  rejected({.tokens = kTokens, .scales = {{0, twice}}}, {"scales: expected factors from 0 to 1, found 2"});
  rejected({.tokens = kTokens, .scales = {{2, {}}}}, {"scales: layer: expected a number from 0 to 1, found 2"});
  rejected({.tokens = kTokens, .layer = 0}, {"maps: expected at most 300 scores of a layer", "found 4 heads of 9 x 9"},
           {.elements = 300});
  rejected({.tokens = kTokens, .layer = 0}, {"maps and weights: expected at most 1000 elements", "found 2016"},
           {.elements = 1000});
  BOOST_TEST(inspect(model, {.tokens = kTokens, .layer = 0, .queries = {8}, .weights = false}, {.elements = 400})
                 .tensors.size() == 4u);
}

BOOST_AUTO_TEST_CASE(logits_without_a_distribution_are_rejected) {
  Dcformer model = frozen_model(config());
  for (nn::NamedTensor& p : nn::parameters(model))
    if (p.name == "norm.weight") p.value.fill(std::nan(""));
  BOOST_CHECK_EXCEPTION(inspect(model, {.tokens = kTokens}), Error, [](const Error& e) {
    return says(e, ErrorKind::numerical, {"the logits at position 0 give no distribution"});
  });
}

BOOST_AUTO_TEST_SUITE_END()
