// LSTM and GRU against their formulas in double, one element at a time.
#include <boost/test/unit_test.hpp>

#include "braid/nn/layers/gru.h"
#include "braid/nn/layers/lstm.h"
#include "tests/nn/support.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(recurrent)

namespace {

using Values = std::vector<double>;
constexpr size_t kH = 3, kIn = 2, kT = 4;

double sigma(double x) { return 1 / (1 + std::exp(-x)); }

// W v + b, row r.
double product(const Values& w, const Values& b, const Values& v, size_t r) {
  double sum = b[r];
  for (size_t i = 0; i < v.size(); ++i) sum += w[r * v.size() + i] * v[i];
  return sum;
}

struct Reference {
  Values wi, wh, bi, bh;
  explicit Reference(const nn::Module& m, size_t first = 0) {
    const std::vector<nn::NamedTensor> p = nn::parameters(m);
    wi = p[first].value.to_vector<double>(), wh = p[first + 1].value.to_vector<double>();
    bi = p[first + 2].value.to_vector<double>(), bh = p[first + 3].value.to_vector<double>();
  }
  void lstm(const Values& x, Values& h, Values& c) const {
    const Values old = h;
    const auto gate = [&](size_t g, size_t i) {
      return product(wi, bi, x, g * kH + i) + product(wh, bh, old, g * kH + i);
    };
    for (size_t i = 0; i < kH; ++i) {
      c[i] = sigma(gate(1, i)) * c[i] + sigma(gate(0, i)) * std::tanh(gate(2, i));
      h[i] = sigma(gate(3, i)) * std::tanh(c[i]);
    }
  }
  void gru(const Values& x, Values& h) const {
    const Values old = h;
    const auto input = [&](size_t g, size_t i) { return product(wi, bi, x, g * kH + i); };
    const auto hidden = [&](size_t g, size_t i) { return product(wh, bh, old, g * kH + i); };
    for (size_t i = 0; i < kH; ++i) {
      const double r = sigma(input(0, i) + hidden(0, i)), z = sigma(input(1, i) + hidden(1, i));
      h[i] = (1 - z) * std::tanh(input(2, i) + r * hidden(2, i)) + z * old[i];
    }
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(lstm_of_both_directions_is_its_formula) {
  const nn::Lstm lstm(kIn, kH, {.bidirectional = true}, {1, 1});
  const NoGrad off;
  const Tensor x = randn({1, kT, kIn}, {2, 1});
  const nn::Lstm::Result found = lstm(x, {});
  const Values xs = x.to_vector<double>(), y = found.y.to_vector<double>();
  for (size_t d = 0; d < 2; ++d) {
    const Reference reference(lstm, 4 * d);
    Values h(kH), c(kH);
    for (size_t step = 0; step < kT; ++step) {
      const size_t t = d == 0 ? step : kT - 1 - step;
      reference.lstm({xs[2 * t], xs[2 * t + 1]}, h, c);
      for (size_t i = 0; i < kH; ++i) BOOST_TEST(std::fabs(y[t * 2 * kH + d * kH + i] - h[i]) < 1e-6);
    }
    for (size_t i = 0; i < kH; ++i) {
      BOOST_TEST(std::fabs(found.states.h.to_vector<double>()[d * kH + i] - h[i]) < 1e-6);
      BOOST_TEST(std::fabs(found.states.c.to_vector<double>()[d * kH + i] - c[i]) < 1e-6);
    }
  }
}

BOOST_AUTO_TEST_CASE(gru_is_its_formula) {
  const nn::Gru gru(kIn, kH, {}, {1, 1});
  const NoGrad off;
  const Tensor x = randn({1, kT, kIn}, {2, 1}), first = randn({1, 1, kH}, {2, 2});
  const nn::Gru::Result found = gru(x, first);
  const Values xs = x.to_vector<double>(), y = found.y.to_vector<double>();
  const Reference reference(gru);
  Values h = first.to_vector<double>();
  for (size_t t = 0; t < kT; ++t) {
    reference.gru({xs[2 * t], xs[2 * t + 1]}, h);
    for (size_t i = 0; i < kH; ++i) BOOST_TEST(std::fabs(y[t * kH + i] - h[i]) < 1e-6);
  }
  BOOST_TEST(is_close(found.h.to_vector<double>(), h, 1e-6));
}

BOOST_AUTO_TEST_CASE(a_sequence_can_be_continued) {
  const nn::Lstm lstm(kIn, kH, {.layers = 2}, {1, 1});
  const NoGrad off;
  const Tensor x = randn({3, 6, kIn}, {2, 1});
  const nn::Lstm::Result whole = lstm(x, {}), first = lstm(slice(x, 1, 0, 2), {}),
                         rest = lstm(slice(x, 1, 2, 6), first.states);
  BOOST_TEST(is_close(whole.y, concat({first.y, rest.y}, 1), 1e-6));
  BOOST_TEST(is_close(whole.states.c, rest.states.c, 1e-6));
}

BOOST_AUTO_TEST_CASE(names_gradients_and_dropout) {
  nn::Lstm lstm(kIn, kH, {.layers = 2, .bidirectional = true, .dropout = 0.5}, {1, 1});
  const std::vector<nn::NamedTensor> p = nn::parameters(lstm);
  BOOST_REQUIRE(p.size() == 16u);
  BOOST_TEST(p[0].name == "weight_ih_l0");
  BOOST_TEST(p[7].name == "bias_hh_l0_reverse");
  BOOST_TEST(str(p[8].value.shape()) == "(12, 6)");
  const Tensor x = randn({2, kT, kIn}, {2, 1});
  BOOST_TEST(!is_close(lstm(x, {}, nn::Mode::train, {3, 1}).y, lstm(x), 1e-3));
  check_gradient_flow(lstm, lstm(x));
  nn::Gru gru(kIn, kH, {.layers = 2}, {1, 1});
  check_gradient_flow(gru, gru(x));
  BOOST_TEST(throws_with([&] { lstm(zeros({2, kT, 5})); }, "(B, T, 2)"));
  BOOST_TEST(throws_with([&] { gru(x, zeros({1, 2, 3})); }, "(2, 2, 3)"));
}

BOOST_AUTO_TEST_SUITE_END()
