#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <numeric>

#include "braid/autograd.h"
#include "tests/support/compare.h"
#include "tests/tensor/cpu/support.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(order)

namespace {

const double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

Tensor integers(std::vector<int64_t> values) {
  const auto n = std::ssize(values);
  return from_vector(values, {n});
}

// Sorted by std::stable_sort, NaN above every number.
std::vector<int64_t> stable_order(const std::vector<double>& x, bool descending) {
  std::vector<int64_t> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  const auto less = [](double a, double b) { return a < b || (std::isnan(b) && !std::isnan(a)); };
  std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
    const double a = x[static_cast<size_t>(i)], b = x[static_cast<size_t>(j)];
    return descending ? less(b, a) : less(a, b);
  });
  return order;
}

}  // namespace

BOOST_AUTO_TEST_CASE(rows_of_every_length_and_type) {
  // With many equal elements, both zeros, infinities and NaNs; lengths around where the way of sorting changes.
  for (int64_t n : {1, 2, 95, 96, 1000, 20000}) {
    std::vector<double> values(static_cast<size_t>(n));
    for (size_t i = 0; i < values.size(); ++i) {
      const size_t r = i * 7919 % 613;
      values[i] = r == 0 ? kNan : r == 1 ? kInf : r == 2 ? -kInf : r == 3 ? -0.0 : r == 4 ? 0.0 : double(r % 100) - 50;
    }
    for (DType type : {DType::f64, DType::f32, DType::bf16, DType::f16})
      for (bool descending : {false, true}) {
        const Tensor x = from_vector(values, {n}).to(type);
        const std::vector<int64_t> want = stable_order(values, descending);
        BOOST_TEST_CONTEXT(str(type) << " " << n << (descending ? " descending" : "")) {
          BOOST_TEST((argsort(x, descending).to_vector<int64_t>() == want));
          for (int64_t k : {n / 64, n / 3, n - 1}) {
            const std::vector<int64_t> found = topk(x, k, 0, descending).indices.to_vector<int64_t>();
            BOOST_TEST(std::equal(found.begin(), found.end(), want.begin()));
          }
        }
      }
    for (DType type : {DType::i64, DType::i32, DType::u8}) {
      std::vector<double> whole = values;
      for (double& v : whole) v = std::isfinite(v) ? (type == DType::u8 ? std::fabs(v) : v) : 77;
      const Tensor x = from_vector(whole, {n}).to(type);
      for (bool descending : {false, true})
        BOOST_TEST((argsort(x, descending).to_vector<int64_t>() == stable_order(whole, descending)));
    }
  }
}

BOOST_AUTO_TEST_CASE(integers_of_64_bits_are_told_apart) {
  const int64_t large = int64_t{1} << 60;
  const Tensor x = integers({large + 1, -large, large, std::numeric_limits<int64_t>::min(), large + 1});
  BOOST_TEST((argsort(x).to_vector<int64_t>() == std::vector<int64_t>{3, 1, 2, 0, 4}));
  BOOST_TEST((sort(x, true).values.to_vector<int64_t>()[1] == large + 1));
  BOOST_TEST((unique(x).counts.to_vector<int64_t>() == std::vector<int64_t>{1, 1, 1, 2}));
}

BOOST_AUTO_TEST_CASE(any_axis) {
  const Tensor x = from_values({3, 1, 2, 6, 5, 7}, {2, 3});
  BOOST_TEST(is_close(sort(x, 0, true).values.to_vector<double>(), {6, 5, 7, 3, 1, 2}, 0));
  BOOST_TEST(is_close(argsort(x, 1).to_vector<double>(), {1, 2, 0, 1, 0, 2}, 0));
  BOOST_TEST(is_close(topk(x, 2, 1, false).values.to_vector<double>(), {1, 2, 5, 6}, 0));
  const ValuesAndIndices second = kthvalue(x, 2, 1, true);
  BOOST_TEST(str(second.values.shape()) == "(2, 1)");
  BOOST_TEST(is_close(second.values.to_vector<double>(), {2, 6}, 0));
  BOOST_TEST(is_close(second.indices.to_vector<double>(), {2, 0}, 0));
  BOOST_TEST(throws_with([&] { topk(x, 3, 0); }, "[topk] needs k between 0 and the size of axis 0 of (2, 3), got 3"));
  BOOST_TEST(throws_with([&] { kthvalue(x, 0); }, "[kthvalue] needs k between 1 and the size of axis -1 of (2, 3)"));
}

BOOST_AUTO_TEST_CASE(quantiles_interpolate) {
  const Tensor x = from_values({4, 1, 3, 2}, {4});
  BOOST_TEST(median(x).item() == 2.5);
  BOOST_TEST(quantile(x, 0).item() == 1.0);
  BOOST_TEST(quantile(x, 1).item() == 4.0);
  BOOST_TEST(is_close(quantile(x, {0.25, 0.5}, 0).to_vector<double>(), {1.75, 2.5}, 1e-7));
  BOOST_TEST(std::isnan(median(from_values({1, kNan, 2}, {3})).item()));
  BOOST_TEST(median(from_values({kInf, kInf}, {2})).item() == kInf);
  BOOST_TEST(quantile(from_values({kInf, 1, 2}, {3}), 0.5).item() == 2.0);
  Tensor leaf = from_values({4, 1, 3, 2}, {4}, DType::f64);
  require_grad(leaf);
  backward(median(leaf));
  BOOST_TEST(is_close(grad(leaf).to_vector<double>(), {0, 0, 0.5, 0.5}, 0));
  BOOST_TEST(throws_with([&] { quantile(x, 1.5); }, "[quantile] needs quantiles from 0 to 1, got 1.5"));
  BOOST_TEST(throws_with([] { median(zeros({0})); }, "[median] needs at least one element, got none"));
  BOOST_TEST(throws_with([] { median(zeros({2}, DType::i64)); }, "[median] needs a floating-point tensor, got i64"));
}

BOOST_AUTO_TEST_CASE(positions_in_sorted_elements) {
  const Tensor edges = from_values({1, 3, 3, 5}, {4}), x = from_values({0, 3, 4, 5, kNan, 1}, {2, 3});
  BOOST_TEST(is_close(searchsorted(edges, x).to_vector<double>(), {0, 1, 3, 3, 4, 0}, 0));
  BOOST_TEST(is_close(bucketize(x, edges, true).to_vector<double>(), {0, 3, 3, 4, 4, 1}, 0));
  const Tensor rows = from_vector(std::vector<int64_t>{1, 2, 10, 20}, {2, 2});
  const Tensor values = from_vector(std::vector<int64_t>{2, 0, 15, 30}, {2, 2});
  BOOST_TEST(is_close(searchsorted(rows, values).to_vector<double>(), {1, 0, 1, 2}, 0));
  BOOST_TEST(searchsorted(zeros({0}), full({}, 3)).item() == 0.0);
  BOOST_TEST(throws_with(
      [&] {
        searchsorted(from_values({2, 1}, {2}), x);
      },
      "[searchsorted] needs edges that ascend, got (2) that do not; sort() them first"));
  BOOST_TEST(throws_with(
      [&] {
        searchsorted(from_values({kNan, 1}, {2}), x);
      },
      "[searchsorted] needs edges that ascend"));
  BOOST_TEST(throws_with([&] { searchsorted(rows, integers({1})); }, "[searchsorted] needs edges (n), or a row"));
  BOOST_TEST(throws_with([&] { bucketize(x, rows); }, "[bucketize] needs edges (n), got (2, 2)"));
}

BOOST_AUTO_TEST_CASE(different_elements) {
  const UniqueValues u = unique(from_values({3, 1, kNan, 3, kNan, -0.0, 0.0, 1}, {2, 4}));
  BOOST_TEST(u.values.numel() == 5);
  BOOST_TEST(is_close(u.values.sliced(0, 0, 3).to_vector<double>(), {0, 1, 3}, 0));
  BOOST_TEST(is_close(u.inverse, from_values({2, 1, 3, 2, 4, 0, 0, 1}, {2, 4}), 0));
  BOOST_TEST(is_close(u.counts.to_vector<double>(), {2, 2, 2, 1, 1}, 0));
  BOOST_TEST(unique(zeros({0}, DType::i32)).values.numel() == 0);
  const Tensor x = from_values({1, 2, kNan, 4}, {4}), among = from_values({4, kNan, 1}, {3});
  BOOST_TEST(is_close(isin(x, among).to_vector<double>(), {1, 0, 0, 1}, 0));
  BOOST_TEST(is_close(isin(integers({1, 2}), integers({})).to_vector<double>(), {0, 0}, 0));
}

BOOST_AUTO_TEST_CASE(counts) {
  BOOST_TEST(is_close(bincount(integers({1, 3, 1}), 2).to_vector<double>(), {0, 2, 0, 1}, 0));
  BOOST_TEST(is_close(bincount(full({2, 2}, 1, DType::u8), 4).to_vector<double>(), {0, 4, 0, 0}, 0));
  BOOST_TEST(bincount(integers({})).numel() == 0);
  BOOST_TEST(throws_with(
      [] {
        bincount(integers({1, -1}));
      },
      "[bincount] needs ids of at least 0, got -1; subtract the smallest"));
  BOOST_TEST(throws_with([] { bincount(zeros({2})); }, "[bincount] needs ids of i64, i32 or u8, got f32"));
  const Tensor x = from_values({-1, 0, 0.4, 0.5, 1, 1, 1.1, kNan, kInf, -kInf}, {10});
  const Histogram h = histogram(x, 2, 0, 1);
  BOOST_TEST(is_close(h.counts.to_vector<double>(), {2, 3}, 0));
  BOOST_TEST(is_close(h.edges.to_vector<double>(), {0, 0.5, 1}, 0));
  BOOST_TEST(is_close(histogram(x, from_values({-1, 0, 2}, {3})).counts.to_vector<double>(), {1, 6}, 0));
  BOOST_TEST(is_close(histogram(zeros({0}), 3, 0, 1).counts.to_vector<double>(), {0, 0, 0}, 0));
  BOOST_TEST(throws_with([&] { histogram(x, 2, 1, 1); }, "[histogram] needs low < high"));
  BOOST_TEST(throws_with([&] { histogram(x, 0, 0, 1); }, "[histogram] needs at least one bin, got 0"));
}

BOOST_AUTO_TEST_CASE(sorted_rows_are_the_same_at_any_thread_count) {
  const Tensor x = random_tensor({300, 257}, 5);
  BOOST_TEST(same_at_any_thread_count([&] { return sort(x).values; }));
}

BOOST_AUTO_TEST_SUITE_END()
