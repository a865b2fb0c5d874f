// analyze() against the tensors that an observer gets, against matrices of single pairs and against models in which
// parts are switched off by hand.
#include "braid/models/inspect/analysis.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <map>

#include "braid/autograd/ops.h"
#include "braid/autograd/record.h"
#include "braid/models/families/dcformer/model.h"
#include "braid/models/inspect/diversity.h"
#include "braid/models/inspect/parameter_named.h"
#include "braid/models/inspect/spectrum.h"
#include "tests/support/compare.h"
#include "tests/support/random.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;
using namespace braid::models;

BOOST_AUTO_TEST_SUITE(analysis)

namespace {

constexpr int64_t T = 8, N = 4;
const std::vector<int32_t> kTokens = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2};  // two windows and a rest

Dcformer make_model(const std::string& preset, const std::vector<std::pair<std::string, std::string>>& more = {}) {
  std::vector<std::pair<std::string, std::string>> keys = {
      {"dim", "16"},        {"n_layer", "2"},     {"n_head", "4"},           {"intermediate_size", "12"},
      {"vocab_size", "31"}, {"block_size", "24"}, {"initializer_std", "0.2"}};
  keys.insert(keys.end(), more.begin(), more.end());
  Dcformer model(configure(preset, keys), {5, 0});
  nn::freeze(model);
  model.to(DType::f64);
  for (nn::NamedTensor& p : nn::parameters(model))
    if (p.name.find("dyn_w_proj.") != std::string::npos && !p.name.ends_with("dw1"))
      p.value.copy_(normal_tensor(p.value.shape(), 0.3, child({9, 9}, p.name.c_str())));
  return model;
}
Dcformer composed_model() {
  return make_model("dcformer-tiny",
                    {{"window_size", "5"}, {"profile.static_proj", "true"}, {"profile.num_groups", "2"}});
}

std::map<std::string, Tensor> observed(const LanguageModel& model, int64_t window) {
  const NoGrad off;
  std::map<std::string, Tensor> all;
  const nn::ActivationObserver observer{[&](const std::string& name, const Tensor& x) { all[name] = x.detach(); },
                                        [](const std::string&) { return true; }};
  const std::vector<int32_t> tokens(kTokens.begin() + window * T, kTokens.begin() + (window + 1) * T);
  all["hidden"] = model.hidden(token_ids(model, tokens), nullptr, &observer);
  return all;
}

HeadMixing mixing(const std::map<std::string, Tensor>& all, const std::string& prefix) {
  return {all.at(prefix + ".w"),    all.at(prefix + "_q.w1"), all.at(prefix + "_q.w2"), all.at(prefix + "_k.w1"),
          all.at(prefix + "_k.w2"), all.at(prefix + "_q.dd"), all.at(prefix + "_k.dd")};
}

AnalysisRequest everything(bool composed) {
  AnalysisRequest r{.tokens = kTokens, .window = T, .shown = 6};
  for (const AnalysisSection s : kAnalysisSections)
    if (composed || s != AnalysisSection::mixing) r.sections.insert(s);
  return r;
}

double loss_of(const LanguageModel& model) {
  double sum = 0;
  for (int64_t w = 0; w < 2; ++w)
    for (const double x :
         token_losses(model, observed(model, w)["hidden"], std::span(kTokens).subspan(static_cast<size_t>(w * T), T)))
      sum += x;
  return sum / (2 * (T - 1));
}

}  // namespace

BOOST_AUTO_TEST_CASE(measures_of_the_maps) {
  Dcformer model = composed_model();
  const Analysis a = analyze(model, everything(true));
  BOOST_TEST(a.windows == 2);
  BOOST_TEST(a.composed);
  BOOST_TEST(a.layers == 2);
  BOOST_TEST(std::fabs(a.loss.mean - loss_of(model)) < 1e-12);
  for (int64_t layer = 0; layer < 2; ++layer) {
    const LayerMeasures& m = a.measures[static_cast<size_t>(layer)];
    BOOST_TEST(m.groups == 2);
    BOOST_TEST(m.rank == 2);
    const std::string prefix = "layers." + std::to_string(layer) + ".";
    double cosines = 0, divergence = 0, previous = 0, added = 0, read = 0, pairs = 0;
    std::vector<double> mean(N * N);
    for (int64_t w = 0; w < 2; ++w) {
      auto all = observed(model, w);
      const std::vector<double> s = all[prefix + "attn_scores"].to_vector<double>(),
                                after = all[prefix + "attn_scores_composed"].to_vector<double>(),
                                p = all[prefix + "attn_probs"].to_vector<double>();
      std::vector<double> x, y;
      const MixingTerms terms(mixing(all, prefix + "dyn.pre"), N);
      for (int64_t i = 0; i < T; ++i) {
        if (i > 0) {
          previous += p[static_cast<size_t>((1 * T + i) * T + i - 1)] / (2 * (T - 1));
          const auto row = [&](int64_t n) { return std::span(p).subspan(static_cast<size_t>((n * T + i) * T), T); };
          divergence += jensen_shannon(row(0), row(3)) / (2 * (T - 1));
        }
        for (int64_t j = 0; j < T; ++j) {
          const auto at = [&](int64_t n) { return static_cast<size_t>((n * T + i) * T + j); };
          if (!std::isfinite(s[at(0)])) continue;
          x.push_back(after[at(0)]), y.push_back(after[at(2)]);
          const std::vector<double> query = terms.matrix(MixingTerm::query, i, j),
                                    key = terms.matrix(MixingTerm::key, i, j);
          ++pairs;
          for (size_t e = 0; e < N * N; ++e) mean[e] += key[e];
          for (size_t n = 0; n < N; ++n) {
            double sum = 0;
            for (size_t k = 0; k < N; ++k) sum += s[at(static_cast<int64_t>(k))] * query[k * N + n];
            added += sum * sum;
            read += s[at(static_cast<int64_t>(n))] * s[at(static_cast<int64_t>(n))];
          }
        }
      }
      cosines += cosine(x, y) / 2;
    }
    for (double& e : mean) e /= pairs;
    BOOST_TEST(std::fabs(m.cosines[static_cast<size_t>(MapKind::scores_composed)][2] - cosines) < 1e-12);
    BOOST_TEST(std::fabs(m.divergences[static_cast<size_t>(RowKind::probs)][3] - divergence) < 1e-12);
    BOOST_TEST(std::fabs(m.previous[0][1] - previous) < 1e-12);
    BOOST_TEST(std::fabs(m.strength_pre.overall(MixingTerm::query) - std::sqrt(added / read)) < 1e-12);
    BOOST_TEST(is_close(m.mixing_pre.mean(MixingTerm::key), mean, 1e-12));
  }
}

// q k^T of heads of size 4 has rank 4 at most; heads mixed by weights of the pair exceed it.
BOOST_AUTO_TEST_CASE(compose_lifts_the_rank_of_scores) {
  Dcformer model = composed_model();
  const Analysis a = analyze(model, everything(true));
  for (const LayerMeasures& m : a.measures)
    for (size_t n = 0; n < N; ++n) {
      BOOST_TEST(m.effective_rank[0][n] <= 4);
      BOOST_TEST(m.effective_rank[1][n] > m.effective_rank[0][n]);
      BOOST_TEST(m.spectrum[0][5] < 1e-12);
      BOOST_TEST(m.spectrum[1][5] > 1e-6);
    }
}

// Scores of all pairs are c tanh(q k^T / sqrt(score_dim) / c), as in the model; their rank is not bounded by d.
BOOST_AUTO_TEST_CASE(rank_of_scores_with_a_softcap) {
  Dcformer model = make_model("dcformer-tiny", {{"attention_softcap", "0.5"}, {"score_dim", "9"}});
  AnalysisRequest r = everything(true);
  r.sections = {AnalysisSection::rank};
  const Analysis a = analyze(model, r);
  for (size_t layer = 0; layer < 2; ++layer) {
    const std::string prefix = "layers." + std::to_string(layer) + ".";
    std::vector<double> want(N);
    for (int64_t w = 0; w < 2; ++w) {
      auto all = observed(model, w);
      const Tensor keys = all[prefix + "k"];
      const int64_t d = keys.dim(3), Nkv = keys.dim(2);
      const std::vector<double> q = all[prefix + "q"].to_vector<double>(), k = keys.to_vector<double>();
      for (int64_t n = 0; n < N; ++n) {
        std::vector<double> s;
        for (int64_t i = 0; i < T; ++i)
          for (int64_t j = 0; j < T; ++j) {
            double sum = 0;
            for (int64_t e = 0; e < d; ++e)
              sum += q[static_cast<size_t>((i * N + n) * d + e)] *
                     k[static_cast<size_t>((j * Nkv + n / (N / Nkv)) * d + e)];
            s.push_back(0.5 * std::tanh(sum / 3 / 0.5));
          }
        want[static_cast<size_t>(n)] += effective_rank(singular_values(s, T, T)) / 2;
      }
    }
    BOOST_TEST(is_close(a.measures[layer].effective_rank[0], want, 1e-9));
    BOOST_TEST(a.measures[layer].spectrum[0][5] > 1e-6);
  }
}

BOOST_AUTO_TEST_CASE(ablations_equal_models_without_the_part) {
  Dcformer model = composed_model();
  const double whole = loss_of(model);
  const Analysis a = analyze(model, everything(true));
  BOOST_TEST(loss_of(model) == whole);  // as before
  const auto change = [&](const std::string& name, std::optional<int64_t> layer) {
    for (const AblationResult& r : a.ablations)
      if (r.ablation.name() == name && r.ablation.layer == layer) return r.change.mean;
    BOOST_FAIL("no ablation " + name);
    return 0.0;
  };
  // A head of layer 1, and the gates of the queries of all layers, by zeros in the weights.
  Tensor wo = parameter_named(model, "layers.1.attention.wo.weight");  // (16, 16)
  const Tensor kept = wo.clone();
  wo.sliced(1, 8, 12).fill(0);
  BOOST_TEST(std::fabs(change("head 2", 1) - (loss_of(model) - whole)) < 1e-12);
  wo.copy_(kept);
  for (nn::NamedTensor& p : nn::parameters(model)) {
    if (!p.name.ends_with("dd")) continue;  // (D, G, C M): the branches pre_q, pre_k, post_q, post_k of M = 2
    p.value.sliced(2, 0, 2).fill(0);
  }
  BOOST_TEST(std::fabs(change("pre query gate", std::nullopt) - (loss_of(model) - whole)) < 1e-12);
  BOOST_TEST(std::fabs(change("pre query gate", std::nullopt)) > 1e-9);
  BOOST_TEST(std::fabs(change("compose", std::nullopt)) > 1e-6);
  const std::vector<int32_t> two = {1, 2};
  BRAID_CHECK_FAILS(losses_without(model, {.layer = 2, .head = {}, .term = {}}, 2, two), ErrorKind::setting,
                    "no layer 2: expected one from 0 to 1");
  BRAID_CHECK_FAILS(losses_without(model, {.layer = 1, .head = -1, .term = {}}, 2, two), ErrorKind::setting,
                    "no head -1", "0 to 3");
}

BOOST_AUTO_TEST_CASE(lens_and_shown_tokens) {
  Dcformer model = composed_model();
  const Analysis a = analyze(model, everything(true));
  BOOST_REQUIRE(a.lens.size() == 3u);
  BOOST_TEST(std::fabs(a.lens[2].loss.mean - a.loss.mean) < 1e-12);  // the last layer is the model
  BOOST_TEST(a.lens[0].loss.mean != a.loss.mean);
  BOOST_REQUIRE(a.shown.size() == 6u);
  BOOST_REQUIRE(a.shown_layers.size() == 2u);
  const Tensor map = observed(model, 0)["layers.1.attn_probs_composed"];
  const std::vector<float> all = map.to_vector<float>();
  const std::vector<float>& triangle = a.shown_layers[1].maps[3];
  BOOST_REQUIRE(triangle.size() == N * 21u);
  BOOST_TEST(triangle[2 * 21 + 15 + 3] == all[(2 * T + 5) * T + 3]);  // head 2, query 5, key 3
  BOOST_TEST(a.shown_layers[1].pre.q_up.dim(1) == 6);
  BOOST_TEST(a.causal);
}

// A model that masks no keys keeps all keys of the shown tokens.
BOOST_AUTO_TEST_CASE(keys_behind_the_query_are_shown) {
  Dcformer model = make_model("dcformer-tiny", {{"profile.causal", "false"}});
  AnalysisRequest r = everything(true);
  r.sections = {AnalysisSection::maps};
  const Analysis a = analyze(model, r);
  BOOST_TEST(!a.causal);
  const std::vector<float> all = observed(model, 0)["layers.1.attn_probs_composed"].to_vector<float>();
  BOOST_REQUIRE(a.shown_layers.size() == 2u);
  const std::vector<float>& square = a.shown_layers[1].maps[3];
  BOOST_REQUIRE(square.size() == N * 36u);
  BOOST_TEST(square[(2 * 6 + 1) * 6 + 5] == all[(2 * T + 1) * T + 5]);  // head 2, query 1, key 5
}

// Why a model has no circuits is said once, also where only later layers have none.
BOOST_AUTO_TEST_CASE(circuits_that_cannot_be_told) {
  for (const std::string layers : {"all", "odd"}) {
    Dcformer model = make_model("transformer-tiny", {{"attention", "iha"}, {"attention_layers", layers}});
    AnalysisRequest r = everything(false);
    r.sections = {AnalysisSection::circuits};
    const Analysis a = analyze(model, r);
    BOOST_REQUIRE(a.left_out.size() == 1u);
    BOOST_TEST(a.left_out[0].starts_with(layers == "all" ? "circuits: " : "circuits from layer 1 on: "));
    BOOST_TEST(a.left_out[0].find("a variant that changes queries") != std::string::npos);
    BOOST_TEST(a.circuits.size() == (layers == "all" ? 0u : 1u));
  }
}

BOOST_AUTO_TEST_CASE(plain_attention) {
  Dcformer model = make_model("transformer-tiny");
  const Analysis a = analyze(model, everything(false));
  BOOST_TEST(!a.composed);
  BOOST_TEST(a.ablations.size() == 8u);  // the heads alone
  BOOST_TEST((a.measures[0].cosines[0] == a.measures[0].cosines[1]));
  BOOST_TEST((a.measures[1].entropies[0].size() == 4u));
  BOOST_TEST(std::fabs(a.measures[1].entropies[0][1] - a.measures[1].entropies[1][1]) < 1e-12);
  BOOST_TEST(a.circuits.size() == 2u);
  BOOST_TEST(a.composition.size() == 16u);
  // Diff-v2 makes 4 heads of 8 query heads; those 4 can be switched off.
  Dcformer pairs = make_model("transformer-tiny", {{"attention", "diff-v2"}});
  const Analysis b = analyze(pairs, everything(false));
  BOOST_TEST(b.heads == 8);
  BOOST_TEST(b.ablations.size() == 8u);
  BOOST_TEST(b.composition.size() == 64u);
  // Across layers that do not read a sum there is no composition.
  Dcformer mhc = make_model("transformer-tiny", {{"residual", "mhc"}});
  const Analysis c = analyze(mhc, everything(false));
  BOOST_TEST(c.circuits.size() == 2u);
  BOOST_TEST(c.composition.empty());
  BOOST_REQUIRE(!c.left_out.empty());
  BOOST_TEST(c.left_out.back().find("with residual = mhc") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_same_twice) {
  Dcformer model = composed_model();
  const Analysis a = analyze(model, everything(true)), b = analyze(model, everything(true));
  BOOST_TEST((a.measures[1].effective_rank[1] == b.measures[1].effective_rank[1]));
  BOOST_TEST((a.measures[1].induction[1] == b.measures[1].induction[1]));
  BOOST_TEST(a.ablations[3].change.mean == b.ablations[3].change.mean);
}

// Also for a part that the model lacks, here the static term.
BOOST_AUTO_TEST_CASE(progress_names_what_it_is_at) {
  Dcformer model = make_model("dcformer-tiny", {{"window_size", "5"}, {"profile.static_proj", "false"}});
  int calls = 0;
  double last = 0;
  analyze(model, everything(true), [&](double done, const std::string& words) {
    BOOST_TEST(!words.empty());
    BOOST_TEST(done >= last);
    last = done, ++calls;
  });
  BOOST_TEST(calls > 10);
  BOOST_TEST(std::fabs(last - 1) < 1e-12);
}

BOOST_AUTO_TEST_CASE(requests_that_do_not_fit) {
  Dcformer model = make_model("transformer-tiny");
  AnalysisRequest r = everything(true);
  BRAID_CHECK_FAILS(analyze(model, r), ErrorKind::setting, "mixing is of composed heads", "mixes no heads");
  r = everything(false);
  r.window = 25;
  BRAID_CHECK_FAILS(analyze(model, r), ErrorKind::setting, "2 to the model's longest sequence of 24", "found 25");
  r.window = 18;
  BRAID_CHECK_FAILS(analyze(model, r), ErrorKind::setting, "the text is shorter than the window", "at least 18", "17");
}

BOOST_AUTO_TEST_SUITE_END()
