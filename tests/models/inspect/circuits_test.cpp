// Circuits of heads against products of the whole D x D matrices.
#include "braid/models/inspect/circuits.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "braid/models/families/dcformer/model.h"
#include "braid/models/inspect/parameter_named.h"
#include "braid/models/inspect/spectrum.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;
using namespace braid::models;

BOOST_AUTO_TEST_SUITE(circuits)

namespace {

using Numbers = std::vector<double>;

HeadWeights some_head(int salt) {
  HeadWeights head{6, 2, {}, {}, {}, {}};
  for (Numbers* w : {&head.q, &head.k, &head.v, &head.o_t})
    for (int e = 0; e < 12; ++e) w->push_back(std::sin(1.3 * e + 2.9 * salt++));
  return head;
}

// a (d, D)^T b (d, D) -> (D, D)
Numbers transposed_product(const Numbers& a, const Numbers& b, int D) {
  Numbers c(static_cast<size_t>(D * D));
  for (int i = 0; i < D; ++i)
    for (int j = 0; j < D; ++j)
      for (size_t r = 0; r < a.size() / static_cast<size_t>(D); ++r)
        c[static_cast<size_t>(i * D + j)] += a[r * static_cast<size_t>(D) + static_cast<size_t>(i)] *
                                             b[r * static_cast<size_t>(D) + static_cast<size_t>(j)];
  return c;
}
Numbers product(const Numbers& a, const Numbers& b, int D, bool transposed) {
  Numbers c(static_cast<size_t>(D * D));
  for (int i = 0; i < D; ++i)
    for (int j = 0; j < D; ++j)
      for (int k = 0; k < D; ++k)
        c[static_cast<size_t>(i * D + j)] +=
            a[static_cast<size_t>(transposed ? k * D + i : i * D + k)] * b[static_cast<size_t>(k * D + j)];
  return c;
}
double norm(const Numbers& a) {
  double sum = 0;
  for (const double x : a) sum += x * x;
  return std::sqrt(sum);
}

}  // namespace

BOOST_AUTO_TEST_CASE(against_the_whole_matrices) {
  const HeadWeights a = some_head(1), b = some_head(50);
  const Numbers qk = transposed_product(b.q, b.k, 6), ov = transposed_product(a.o_t, a.v, 6),
                later = transposed_product(b.o_t, b.v, 6);
  const CompositionScores c = composition_scores(a, b);
  BOOST_TEST(std::fabs(c.q - norm(product(qk, ov, 6, true)) / norm(qk) / norm(ov)) < 1e-13);
  BOOST_TEST(std::fabs(c.k - norm(product(qk, ov, 6, false)) / norm(qk) / norm(ov)) < 1e-13);
  BOOST_TEST(std::fabs(c.v - norm(product(later, ov, 6, false)) / norm(later) / norm(ov)) < 1e-13);
  Numbers s = singular_values(qk, 6, 6), t = singular_values(ov, 6, 6);
  s.resize(2), t.resize(2);
  BOOST_TEST(is_close(qk_singular_values(b), s, 1e-12));
  BOOST_TEST(is_close(ov_singular_values(a), t, 1e-12));
  Numbers x(6), y(6);
  x[1] = 1, y[4] = 1;
  BOOST_TEST(std::fabs(qk_value(b, x, y) - qk[1 * 6 + 4]) < 1e-14);
  BOOST_TEST(std::fabs(ov_value(a, x, y) - ov[4 * 6 + 1]) < 1e-14);
}

// With one token, no rotation of position 0 and no QK-norm, the score of a head is x^T W_QK x of the normalised x.
BOOST_AUTO_TEST_CASE(weights_of_a_model) {
  for (const std::string other : {"", "offset", "diff-v2"}) {
    DcformerConfig config =
        configure("transformer-tiny",
                  {{"dim", "16"}, {"n_layer", "1"}, {"n_head", "4"}, {"vocab_size", "31"}, {"initializer_std", "0.3"}});
    if (other == "offset") config = configure(config, {{"norm_offset", "true"}, {"score_dim", "9"}});
    if (other == "diff-v2") config = configure(config, {{"attention", other}});
    const size_t head = other == "diff-v2" ? 5 : 2;  // of 8, of 4
    Dcformer model(config, {3, 0});
    nn::freeze(model);
    model.to(DType::f64);
    double score = 0;
    Numbers x;
    const nn::ActivationObserver observer{[&](const std::string& name, const Tensor& value) {
                                            if (name == "hidden.0") x = value.to_vector<double>();
                                            if (name == "layers.0.attn_scores") score = value.to_vector<double>()[head];
                                          },
                                          [](const std::string&) { return true; }};
    model.hidden(from_vector(std::vector<int32_t>{7}, {1, 1}), nullptr, &observer);
    double squares = 0;
    for (const double e : x) squares += e * e;
    for (double& e : x) e /= std::sqrt(squares / 16 + model.config().norm_eps);
    const std::vector<HeadWeights> heads = head_weights(model, 0);
    BOOST_REQUIRE(heads.size() == (other == "diff-v2" ? 8u : 4u));
    BOOST_TEST(std::fabs(qk_value(heads[head], x, x) - score) < 1e-12);
    BOOST_TEST(std::fabs(score) > 1e-6);
    // Two query heads of diff-v2 share a value head and become one head of the output. Both are number 2 here.
    const Numbers w = parameter_named(model, "layers.0.attention.wqkv.weight").to_vector<double>(),
                  o = parameter_named(model, "layers.0.attention.wo.weight").to_vector<double>();
    const double gain =
        parameter_named(model, "layers.0.attention_norm.weight").to_vector<double>()[0] + (other == "offset" ? 1 : 0);
    BOOST_TEST(heads[head].v[0] == w[(heads.size() + 4 + 2) * 4 * 16] * gain);
    BOOST_TEST(heads[head].o_t[1] == o[16 + 2 * 4]);
  }
  // A norm behind attention divides by what all heads write.
  BOOST_TEST(head_weights(Dcformer(configure("gemma2-tiny", {{"n_layer", "1"}}), {3, 0}), 0).empty());
  // These variants project again what wqkv projects.
  for (const std::string variant : {"iha", "knocking", "value-residual"}) {
    const DcformerConfig config = configure("transformer-tiny", {{"n_layer", "1"}, {"attention", variant}});
    BOOST_TEST(head_weights(Dcformer(config, {3, 0}), 0).empty(), variant);
  }
}

BOOST_AUTO_TEST_SUITE_END()
