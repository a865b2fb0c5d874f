// Connections over depth: what holds of every row of the list, and each one's formula in loops, in f64.
#include "braid/nn/transformer/depth.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <map>

#include "braid/autograd.h"
#include "tests/models/randomise.h"
#include "tests/nn/attention/support.h"
#include "tests/nn/support.h"
#include "tests/support/gradcheck_model.h"
#include "tests/support/sanitizer.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(depth)

namespace {

constexpr int64_t L = 3, T = 5;

using Numbers = std::vector<double>;

// The blocks and their connections as one module.
struct Stack final : nn::Module {
  Stack(const std::string& name, bool parallel = false, DType dtype = DType::f64, nn::DepthSizes sizes = {}) {
    nn::BlockOptions o{.attention = options_of(AttentionImpl::automatic)};
    o.mlp.hidden = 24;
    o.parallel_residual = parallel;
    for (int64_t i = 0; i < L; ++i) {
      o.separate_inputs = i > 0 && name != "plain" && nn::depth_rule_named(name).separate_inputs;
      blocks.emplace_back(o, child(RandomKey{1, 1}, i));
    }
    sizes.width = D, sizes.layers = L, sizes.parallel_residual = parallel;
    if (name != "plain") connections = nn::depth_rule_named(name).make(sizes, {2, 2});
    nn::to(*this, dtype);
  }
  Tensor operator()(const Tensor& x, bool again = false) const {
    nn::Pass pass{.rope = rope()};
    if (x.dtype() == DType::f32) pass.rope = nn::Rope(d, 64, 10000, nn::Rope::Precision::exact);
    pass.recompute = again;
    if (connections) return nn::through(*connections, blocks, x, pass);
    nn::ResidualStream stream = x;
    for (const nn::Block& block : blocks) stream = block(stream, pass);
    return stream.total();
  }
  void visit(nn::Visitor& v) const override {
    for (size_t i = 0; i < blocks.size(); ++i) v(str("layers.", i), blocks[i]);
    if (connections) connections->visit(v);
  }
  Numbers numbers(const std::string& name) const {
    for (const nn::NamedTensor& p : nn::parameters(*this))
      if (p.name == name) return p.value.detach().to_vector<double>();
    BOOST_FAIL("there is no parameter " + name);
    return {};
  }

  std::vector<nn::Block> blocks;
  nn::Depth connections;
};

Tensor input(DType dtype = DType::f64) { return randn({B, T, D}, {11, 1}, dtype); }

// The layers themselves, of rows (B T, D).
Tensor rows(const Numbers& x) { return from_vector(x, {B, T, D}); }
Numbers attend(const Stack& stack, size_t i, const Numbers& q, const Numbers& k, const Numbers& v) {
  const NoGrad off;
  const nn::AttentionInputs in = i > 0 && !k.empty() ? nn::AttentionInputs(rows(q), rows(k), rows(v)) : rows(q);
  return stack.blocks[i].attend(in, {.rope = rope()}).to_vector<double>();
}
Numbers feed(const Stack& stack, size_t i, const Numbers& x) {
  const NoGrad off;
  return stack.blocks[i].feed_forward(rows(x), {.rope = rope()}).to_vector<double>();
}
Numbers plus(Numbers a, const Numbers& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}
// Row p of x, divided by its root mean square.
Numbers normed(const Numbers& x, int64_t p, int64_t width, double eps = 1e-5) {
  Numbers row(x.begin() + p * width, x.begin() + (p + 1) * width);
  double squares = 0;
  for (const double e : row) squares += e * e;
  for (double& e : row) e /= std::sqrt(squares / static_cast<double>(width) + eps);
  return row;
}
double dot(const Numbers& a, const double* b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}
double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

bool near(const Tensor& got, const Numbers& want) { return bool(is_close(got.detach(), rows(want), 1e-11)); }

}  // namespace

BOOST_AUTO_TEST_CASE(every_row_is_differentiable_and_recomputes) {
  for (const nn::DepthRule& rule : nn::depth_rules()) {
    BOOST_TEST_CONTEXT(rule.name) {
      Stack stack(rule.name);
      randomise(stack, {3, 3}, 0.15);
      const Tensor x = input(), weights = randn({B, T, D}, {11, 2}, DType::f64);
      check_gradient_flow(stack, stack(x));
      nn::zero_grad(stack);
      if (less_under_tsan(true, false)) {
        const GradcheckResult checked =
            gradcheck_model(stack, [&](const std::vector<Tensor>& in) { return sum(mul(stack(in[0]), weights)); }, {x});
        BOOST_TEST(checked.error < 1e-6, checked.where);
      }
      nn::require_grad(stack);
      std::vector<std::vector<Tensor>> runs;
      for (const bool again : {false, true}) {
        nn::zero_grad(stack);
        const Tensor y = stack(x, again);
        backward(sum(mul(y, weights)));
        runs.push_back({y.detach()});
        for (const nn::NamedTensor& p : nn::parameters(stack)) runs.back().push_back(grad(p.value).clone());
      }
      for (size_t i = 0; i < runs[0].size(); ++i) BOOST_TEST(is_close(runs[1][i], runs[0][i], 1e-14));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_start_equals_plain_residuals_where_the_row_says_so) {
  int found = 0;
  for (const nn::DepthRule& rule : nn::depth_rules()) {
    for (const bool parallel : {false, true}) {
      if (parallel && !rule.parallel) continue;
      const Tensor x = input(DType::f32);
      const Stack plain("plain", parallel, DType::f32), stack(rule.name, parallel, DType::f32);
      BOOST_TEST(bool(is_close(stack(x), plain(x), 0)) == rule.identity_start, rule.name);
      found += rule.identity_start;
    }
  }
  BOOST_TEST(found > 0);
  // Hyper-connections start near them.
  BOOST_TEST(is_close(Stack("mhc")(input()), Stack("plain")(input()), 3e-3));
}

BOOST_AUTO_TEST_CASE(mudd_sums_all_blocks_with_weights_of_the_token) {
  for (const bool parallel : {false, true}) {
    for (const bool wide : {false, true}) {
      Stack stack("mudd", parallel, DType::f64, {.expand_last = wide, .round64 = wide});
      randomise(stack, {3, 3}, 0.3);
      const Tensor embedding = input();
      std::vector<Numbers> X = {embedding.to_vector<double>()}, streams = {X[0]};
      for (int64_t i = 0; i < L; ++i) {
        const auto at = static_cast<size_t>(i);
        const Numbers& r = streams.back();
        const Numbers h =
            plus(r, i == 0 ? attend(stack, at, r, {}, {}) : attend(stack, at, streams[0], streams[1], streams[2]));
        X.push_back(plus(h, feed(stack, at, parallel ? r : h)));
        const int64_t C = i + 1 == L ? 1 : 4, J = i + 2;
        int64_t H = wide && i + 1 == L ? 4 * C * J : C * J;
        if (wide) H = (H / 64 + 1) * 64;
        const std::string name = str("dynamic_dense.", i);
        const Numbers w1 = stack.numbers(name + ".w1.weight"), w2 = stack.numbers(name + ".w2.weight"),
                      bias = stack.numbers(str("dense_bs.", i));
        BOOST_REQUIRE(std::ssize(w1) == H * D);
        BOOST_REQUIRE(std::ssize(w2) == H * C * J);
        streams.assign(static_cast<size_t>(C), Numbers(X[0].size(), 0));
        for (int64_t p = 0; p < B * T; ++p) {
          const Numbers x = normed(X.back(), p, D);
          Numbers hidden;
          for (int64_t k = 0; k < H; ++k) {
            const double z = dot(x, &w1[static_cast<size_t>(k * D)]);
            hidden.push_back(z / 2 * (1 + std::erf(z / std::sqrt(2))));
          }
          for (int64_t c = 0; c < C; ++c)
            for (int64_t j = 0; j < J; ++j) {
              const auto cj = static_cast<size_t>(c * J + j);
              const double weight = dot(hidden, &w2[cj * static_cast<size_t>(H)]) + bias[cj];
              for (int64_t e = p * D; e < (p + 1) * D; ++e)
                streams[static_cast<size_t>(c)][static_cast<size_t>(e)] +=
                    weight * X[static_cast<size_t>(j)][static_cast<size_t>(e)];
            }
        }
      }
      BOOST_TEST(near(stack(embedding), streams[0]));
    }
  }
}

BOOST_AUTO_TEST_CASE(attnres_attends_to_the_outputs_of_all_layers) {
  Stack stack("attnres");
  randomise(stack, {3, 3}, 0.3);
  const Tensor embedding = input();
  const Numbers queries = stack.numbers("depth.queries");
  BOOST_REQUIRE(std::ssize(queries) == 2 * L * D);
  std::vector<Numbers> values = {embedding.to_vector<double>()};
  Numbers read = values[0];
  std::map<std::string, Numbers> weights;  // (B T, J)
  for (int64_t l = 0; l < 2 * L; ++l) {
    const auto block = static_cast<size_t>(l / 2);
    Numbers& of_layer = weights[str("layers.", block, l % 2 == 0 ? ".depth_weights_ffn" : ".depth_weights")];
    values.push_back(l % 2 == 0 ? attend(stack, block, read, {}, {}) : feed(stack, block, read));
    read.assign(read.size(), 0);
    for (int64_t p = 0; p < B * T; ++p) {
      Numbers a;
      double total = 0;
      for (const Numbers& v : values) {
        a.push_back(std::exp(dot(normed(v, p, D), &queries[static_cast<size_t>(l * D)])));
        total += a.back();
      }
      for (size_t j = 0; j < values.size(); ++j) {
        of_layer.push_back(a[j] / total);
        for (int64_t e = p * D; e < (p + 1) * D; ++e)
          read[static_cast<size_t>(e)] += a[j] / total * values[j][static_cast<size_t>(e)];
      }
    }
  }
  BOOST_TEST(near(stack(embedding), read));
  std::map<std::string, Numbers> seen;
  const nn::ActivationObserver observer{
      .receive = [&](const std::string& name, const Tensor& x) { seen[name] = x.detach().to_vector<double>(); }};
  nn::Pass pass{.rope = rope()};
  pass.observer = &observer;
  BOOST_TEST(near(nn::through(*stack.connections, stack.blocks, embedding, pass), read));
  for (const auto& [name, value] : weights) BOOST_TEST(is_close(seen.at(name), value, 1e-12), name);
}

BOOST_AUTO_TEST_CASE(mhc_mixes_streams_by_doubly_stochastic_matrices) {
  constexpr size_t n = 4, width = D;
  Stack stack("mhc");
  randomise(stack, {3, 3}, 0.3);
  const Tensor embedding = input();
  const Numbers x0 = embedding.to_vector<double>();
  std::vector<Numbers> X(B * T);  // of each position (n, D)
  for (size_t p = 0; p < X.size(); ++p)
    for (size_t k = 0; k < n; ++k) X[p].insert(X[p].end(), &x0[p * width], &x0[p * width] + width);
  for (size_t l = 0; l < 2 * L; ++l) {
    const Numbers products = stack.numbers(str("depth.", l, ".products.weight")),
                  factors = stack.numbers(str("depth.", l, ".factors")),
                  bias = stack.numbers(str("depth.", l, ".bias"));
    Numbers read(x0.size(), 0);
    std::vector<Numbers> write(X.size(), Numbers(n)), mix(X.size(), Numbers(n * n));
    for (size_t p = 0; p < X.size(); ++p) {
      const Numbers x = normed(X[p], 0, n * D);
      const auto z = [&](size_t o) {
        return factors[o < n ? 0 : o < 2 * n ? 1 : 2] * dot(x, &products[o * n * width]) + bias[o];
      };
      for (size_t k = 0; k < n; ++k) {
        write[p][k] = 2 * sigmoid_of(z(n + k));
        for (size_t e = 0; e < width; ++e) read[p * width + e] += sigmoid_of(z(k)) * X[p][k * width + e];
      }
      Numbers& m = mix[p];
      for (size_t k = 0; k < n * n; ++k) m[k] = std::exp(z(2 * n + k));
      for (int turn = 0; turn < 40; ++turn)
        for (size_t a = 0; a < n; ++a) {
          double sum = 0;
          for (size_t b = 0; b < n; ++b) sum += turn % 2 == 0 ? m[a * n + b] : m[b * n + a];
          for (size_t b = 0; b < n; ++b) (turn % 2 == 0 ? m[a * n + b] : m[b * n + a]) /= sum;
        }
      for (size_t a = 0; a < n; ++a) BOOST_TEST(std::abs(m[a] + m[n + a] + m[2 * n + a] + m[3 * n + a] - 1) < 1e-12);
    }
    const Numbers y = l % 2 == 0 ? attend(stack, l / 2, read, {}, {}) : feed(stack, l / 2, read);
    for (size_t p = 0; p < X.size(); ++p) {
      Numbers next(n * width, 0);
      for (size_t a = 0; a < n; ++a)
        for (size_t e = 0; e < width; ++e) {
          for (size_t b = 0; b < n; ++b) next[a * width + e] += mix[p][a * n + b] * X[p][b * width + e];
          next[a * width + e] += write[p][a] * y[p * width + e];
        }
      X[p] = next;
    }
  }
  Numbers want;
  for (const Numbers& x : X)
    for (size_t e = 0; e < width; ++e) want.push_back((x[e] + x[width + e] + x[2 * width + e] + x[3 * width + e]) / 4);
  BOOST_TEST(near(stack(embedding), want));
}

// As of any layer: it shares the parameters until one of the two is converted.
BOOST_AUTO_TEST_CASE(a_copy_can_be_converted_by_itself) {
  for (const nn::DepthRule& rule : nn::depth_rules()) {
    const Stack original(rule.name);
    Stack copy = original;
    const std::vector<nn::NamedTensor> all = nn::parameters(original), shared = nn::parameters(copy);
    for (size_t i = 0; i < all.size(); ++i) BOOST_TEST(all[i].value.shares_storage(shared[i].value), all[i].name);
    nn::to(copy, DType::f32);
    for (const nn::NamedTensor& p : nn::parameters(original)) BOOST_TEST((p.value.dtype() == DType::f64), p.name);
    for (const nn::NamedTensor& p : nn::parameters(copy)) BOOST_TEST((p.value.dtype() == DType::f32), p.name);
  }
}

BOOST_AUTO_TEST_CASE(names) {
  BOOST_TEST(throws_with([] { nn::depth_rule_named("mud"); },
                         "unknown connections over depth 'mud'; did you mean 'mudd'?: expected plain, or one of"));
  BOOST_TEST(
      throws_with([] { nn::register_depth_rule({.name = "mhc"}); }, "two connections over depth are called mhc"));
}

BOOST_AUTO_TEST_SUITE_END()
