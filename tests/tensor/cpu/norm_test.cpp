#include <boost/test/unit_test.hpp>

#include "braid/autograd/ops.h"
#include "braid/tensor/parallel.h"
#include "tests/support/compare.h"
#include "tests/support/random.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(norm)

namespace {

// Result and gradients of f for the dtype, the incoming gradient being fixed.
template <class F>
std::vector<std::vector<double>> run(F f, std::vector<Tensor> inputs) {
  for (Tensor& x : inputs) {
    x = x.detach();
    require_grad(x);
  }
  Tensor y = f(inputs);
  std::vector<std::vector<double>> out{y.to_vector<double>()};
  backward(y, random_tensor(y.shape(), 9, y.dtype()));
  for (const Tensor& x : inputs) out.push_back(grad(x).to_vector<double>());
  return out;
}

const auto kLayer = [](const std::vector<Tensor>& in) { return layer_norm(in[0], in[1], in[2], 1e-5); };
const auto kRms = [](const std::vector<Tensor>& in) { return rms_norm(in[0], in[1], 1e-6); };
}  // namespace

BOOST_AUTO_TEST_CASE(values_by_hand) {
  Tensor x = from_values({3, 4, 0, 0}, {1, 4}, DType::f64), w = from_values({1, 2, 3, 4}, {4}, DType::f64);
  double scale = 1 / std::sqrt(25.0 / 4 + 0.75);  // 1 / sqrt(7)
  BOOST_TEST(is_close(rms_norm(x, w, 0.75).to_vector<double>(), {3 * scale, 8 * scale, 0, 0}, 1e-15));
  Tensor u = from_values({1, 3}, {2}, DType::f64), b = from_values({10, 20}, {2}, DType::f64);
  // mean 2, variance 1 (biased), eps 3: divided by 2
  BOOST_TEST(is_close(layer_norm(u, from_values({1, 4}, {2}, DType::f64), b, 3).to_vector<double>(), {9.5, 22}, 1e-15));
}

BOOST_AUTO_TEST_CASE(gradients_of_many_rows_are_summed_accurately) {
  // 5000 rows fall into many blocks; f32 against f64 of the same numbers.
  Tensor x = random_tensor({5000, 24}, 1, DType::f32, -1.5, 2.5), w = random_tensor({24}, 2, DType::f32),
         b = random_tensor({24}, 3, DType::f32);
  auto in64 = [&](std::vector<Tensor> v) {
    for (Tensor& t : v) t = t.to(DType::f64);
    return v;
  };
  auto got = run(kLayer, {x, w, b}), want = run(kLayer, in64({x, w, b}));
  for (size_t k = 0; k < want.size(); ++k) BOOST_TEST(is_close(got[k], want[k], 3e-6));
  got = run(kRms, {x, w});
  want = run(kRms, in64({x, w}));
  for (size_t k = 0; k < want.size(); ++k) BOOST_TEST(is_close(got[k], want[k], 3e-6));
}

// The sum is rounded to its type before it is normed, so the results are those of two ops, bit for bit; derivatives
// too, but in 16 bits, where that of x is rounded once instead of twice.
BOOST_AUTO_TEST_CASE(with_a_residual_as_in_two_steps) {
  for (DType type : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    Tensor x = random_tensor({70, 37}, 1, type), r = random_tensor({70, 37}, 2, type), w = random_tensor({37}, 3, type),
           b = random_tensor({37}, 4, type), of_sum = random_tensor({70, 37}, 5, type);
    for (bool layer : {false, true}) {
      auto join = [&](const SumAndNorm& n) { return add(mul(n.sum, of_sum), n.y); };
      auto fused = [&](const std::vector<Tensor>& in) {
        return join(layer ? add_layer_norm(in[0], in[1], in[2], in[3], 1e-5) : add_rms_norm(in[0], in[1], in[2], 1e-5));
      };
      auto composed = [&](const std::vector<Tensor>& in) {
        Tensor h = add(in[0], in[1]);
        return join({h, layer ? layer_norm(h, in[2], in[3], 1e-5) : rms_norm(h, in[2], 1e-5)});
      };
      std::vector<Tensor> inputs{x, r, w, b};
      if (!layer) inputs.pop_back();
      auto got = run(fused, inputs), want = run(composed, inputs);
      const double rounding = type == DType::bf16 ? 0x1p-7 : type == DType::f16 ? 0x1p-10 : 0;
      for (size_t k = 0; k < want.size(); ++k) {
        const bool of_x = k == 1 || k == 2;
        BOOST_TEST_CONTEXT(str(type) << " " << k) BOOST_TEST(is_close(got[k], want[k], of_x ? rounding : 0));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(one_result_may_be_unused) {
  Tensor x = random_tensor({3, 5}, 1, DType::f64), r = random_tensor({3, 5}, 2, DType::f64),
         w = random_tensor({5}, 3, DType::f64);
  for (Tensor* t : {&x, &r, &w}) require_grad(*t);
  Tensor dy = random_tensor({3, 5}, 4, DType::f64);
  backward(add_rms_norm(x, r, w, 1e-5).sum, dy);
  BOOST_TEST((is_close(grad(x), dy, 0) && is_close(grad(r), dy, 0) && !grad(w)));
  BOOST_TEST(throws_with([&] { add_rms_norm(x, r.detach().sliced(0, 0, 1), w, 1e-5); },
                         "[add_rms_norm] the residual (1, 5) does not have the shape of x (3, 5)"));
}

BOOST_AUTO_TEST_CASE(same_bits_at_any_thread_count) {
  int before = threads();
  Tensor x = random_tensor({3000, 40}, 1, DType::f32), w = random_tensor({40}, 2, DType::f32),
         b = random_tensor({40}, 3, DType::f32);
  std::vector<std::vector<double>> layer, rms;
  for (int n : {1, 2, 5}) {
    set_threads(n);
    auto l = run(kLayer, {x, w, b}), r = run(kRms, {x, w});
    if (n == 1) {
      layer = l;
      rms = r;
    }
    for (size_t k = 0; k < layer.size(); ++k) BOOST_TEST(is_close(l[k], layer[k], 0));
    for (size_t k = 0; k < rms.size(); ++k) BOOST_TEST(is_close(r[k], rms[k], 0));
  }
  set_threads(before);
}

BOOST_AUTO_TEST_CASE(rows_of_zeros_and_a_large_mean) {
  Tensor zero = zeros({2, 8});
  BOOST_TEST(is_close(rms_norm(zero, {}, 1e-6).to_vector<double>(), std::vector<double>(16, 0), 0));
  BOOST_TEST(is_close(layer_norm(zero, {}, {}, 1e-6).to_vector<double>(), std::vector<double>(16, 0), 0));
  // Variance is taken around the mean: 1000 +- 1 must not cancel.
  Tensor x = from_values({999, 1001, 999, 1001}, {1, 4});
  BOOST_TEST(is_close(layer_norm(x, {}, {}, 0).to_vector<double>(), {-1, 1, -1, 1}, 1e-6));
}

BOOST_AUTO_TEST_CASE(nan_stays_in_its_row) {
  Tensor x = full({2, 3}, 1);
  x.sliced(0, 1, 2).fill(std::nan(""));
  std::vector<double> y = rms_norm(x, {}, 0).to_vector<double>();
  BOOST_TEST(y[0] == 1.0);
  BOOST_TEST(std::isnan(y[3]));
}

BOOST_AUTO_TEST_CASE(messages) {
  Tensor x = full({2, 3}, 1);
  BOOST_TEST(throws_with([&] { rms_norm(x, full({2}, 1), 1e-6); },
                         "[rms_norm] weight (2) does not fit the last axis of (2, 3)"));
  BOOST_TEST(throws_with([&] { layer_norm(x, {}, full({1, 3}, 1), 1e-6); }, "[layer_norm] bias (1, 3) does not fit"));
  BOOST_TEST(throws_with([&] { rms_norm(full({}, 1), {}, 1e-6); }, "[rms_norm] needs at least one axis"));
  BOOST_TEST(throws_with([&] { rms_norm(x, full({3}, 1, DType::bf16), 1e-6); }, "the inputs are f32 and bf16"));
}

BOOST_AUTO_TEST_SUITE_END()
