#include "braid/models/exact_sum.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <random>

#include "braid/autograd/record.h"
#include "braid/distributed/comm/thread_transport.h"
#include "braid/tensor/parallel.h"

using namespace braid;

BOOST_AUTO_TEST_SUITE(exact_sum)

namespace {

// Magnitudes over 24 powers of ten.
std::vector<double> values(int64_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> mantissa(-1, 1), power(-12, 12);
  std::vector<double> all;
  for (int64_t i = 0; i < n; ++i) all.push_back(mantissa(random) * std::pow(10.0, power(random)));
  return all;
}

nn::NamedTensor with_gradient(const std::vector<double>& g, DType type) {
  Tensor x = zeros({std::ssize(g)}, type);
  require_grad(x);
  set_grad(x, from_vector(g, {std::ssize(g)}).to(type));
  return {"x", x};
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_order_changes_no_bit) {
  std::mt19937 random(3);
  for (const int64_t n : {1, 5, 8, 511, 513, 5000}) {
    std::vector<double> x = values(n, uint32_t(n));
    long double reference = 0;
    for (const double v : x) reference += v;
    const double want = models::exact_sum(x, {});
    double largest = 0, in_order = 0;
    for (const double v : x) largest = std::max(largest, std::abs(v)), in_order += v;
    BOOST_TEST(std::abs(double(want - reference)) <= 1e-16 * largest + std::abs(want) * 1e-16);
    for (int trial = 0; trial < 20; ++trial) {
      std::shuffle(x.begin(), x.end(), random);
      BOOST_TEST(models::exact_sum(x, {}) == want);
    }
  }
}

BOOST_AUTO_TEST_CASE(pieces_of_ranks_give_the_whole) {
  for (const DType type : {DType::f32, DType::f64}) {
    const std::vector<double> all = values(20000, 7);
    const double want = models::exact_sum_of_squares({with_gradient(all, type)}, {});
    double plain = 0;
    for (const double v : all) plain += (type == DType::f32 ? double(float(v)) * float(v) : v * v);
    BOOST_TEST(want == plain, boost::test_tools::tolerance(1e-12));
    for (const int ranks : {2, 3, 8}) {
      dist::run_thread_ranks(ranks, [&](const dist::Communicator& world) {
        const auto begin = all.begin() + 20000 * world.rank() / ranks,
                   end = all.begin() + 20000 * (world.rank() + 1) / ranks;
        const std::vector<double> mine(begin, end), left(mine.begin(), mine.begin() + 99),
            rest(mine.begin() + 99, mine.end());
        const double got = models::exact_sum_of_squares({with_gradient(rest, type), with_gradient(left, type)}, world);
        check(got == want, "exact_sum", "ranks have other bits");
      });
    }
    const int before = threads();
    set_threads(3);
    BOOST_TEST(models::exact_sum_of_squares({with_gradient(all, type)}, {}) == want);
    set_threads(before);
  }
}

BOOST_AUTO_TEST_CASE(what_is_no_number_stays_none) {
  BOOST_TEST(std::isnan(models::exact_sum({1, NAN, 2}, {})));
  BOOST_TEST(!std::isfinite(models::exact_sum({1, INFINITY, 2}, {})));
  BOOST_TEST(models::exact_sum({}, {}) == 0);
  BOOST_TEST(models::exact_sum({0, -0.0}, {}) == 0);
  BOOST_TEST(models::exact_sum({1e-300, 1e-300}, {}) == 2e-300);
}

BOOST_AUTO_TEST_SUITE_END()
