// What threads may share: leaves that collect gradients, models that are read.
#include <boost/test/unit_test.hpp>
#include <thread>

#include "braid/autograd.h"
#include "tests/support/compare.h"
#include "tests/support/sanitizer.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(threads_that_share)

namespace {
void in_threads(int n, const std::function<void(int)>& body) {
  std::vector<std::thread> all;
  for (int i = 0; i < n; ++i) all.emplace_back(body, i);
  for (std::thread& thread : all) thread.join();
}

// tanh(x w) w, of a small model
Tensor model(const Tensor& x, const Tensor& w) { return matmul(tanh(matmul(x, w)), w); }
}  // namespace

// A gradient of 1 from each pass: not one of them is lost.
BOOST_AUTO_TEST_CASE(gradients_of_a_shared_leaf_all_arrive) {
  const int passes = less_under_tsan(20000, 2000);
  for (int round = 0; round < 3; ++round) {
    Tensor w = full({3}, 1);
    require_grad(w);
    in_threads(2, [&](int) {
      for (int i = 0; i < passes; ++i) backward(sum(w));
    });
    BOOST_TEST(is_close(grad(w).to_vector<double>(), std::vector<double>(3, 2 * passes), 0));
  }
}

BOOST_AUTO_TEST_CASE(two_models_in_two_threads) {
  const Tensor x = randn({4, 8}, RandomKey(1), DType::f64);
  const auto gradient = [&](uint64_t seed) {
    Tensor w = randn({8, 8}, RandomKey(seed), DType::f64);
    require_grad(w);
    for (int i = 0; i < 20; ++i) {
      zero_grad(w);
      backward(sum(square(model(x, w))));
    }
    return grad(w).to_vector<double>();
  };
  const std::vector<std::vector<double>> alone = {gradient(1), gradient(2)};
  std::vector<std::vector<double>> found(2);
  in_threads(2, [&](int i) { found[static_cast<size_t>(i)] = gradient(static_cast<uint64_t>(i + 1)); });
  BOOST_TEST((found == alone));
}

BOOST_AUTO_TEST_CASE(many_threads_compute_with_one_model) {
  Tensor w = randn({8, 8}, RandomKey(3), DType::f64);
  require_grad(w);
  const auto result = [&](int i) {
    const NoGrad off;
    return model(randn({2, 8}, RandomKey(static_cast<uint64_t>(i)), DType::f64), w).to_vector<double>();
  };
  std::vector<std::vector<double>> found(32);
  in_threads(32, [&](int i) {
    for (int round = 0; round < 5; ++round) found[static_cast<size_t>(i)] = result(i);
  });
  for (int i = 0; i < 32; ++i) BOOST_TEST((found[static_cast<size_t>(i)] == result(i)));
  BOOST_TEST(!grad(w));
}

// Passes through graphs of their own that end in one model's leaves: the sum of all, in an order of the threads.
BOOST_AUTO_TEST_CASE(one_model_is_trained_by_two_threads) {
  const std::vector<Tensor> xs = {randn({4, 8}, RandomKey(5), DType::f64), randn({4, 8}, RandomKey(6), DType::f64)};
  Tensor w = randn({8, 8}, RandomKey(4), DType::f64);
  require_grad(w);
  for (const Tensor& x : xs) backward(sum(square(model(x, w))));
  const std::vector<double> alone = grad(w).to_vector<double>();
  zero_grad(w);
  in_threads(2, [&](int i) { backward(sum(square(model(xs[static_cast<size_t>(i)], w)))); });
  BOOST_TEST(is_close(grad(w).to_vector<double>(), alone, 1e-13));
}

BOOST_AUTO_TEST_SUITE_END()
