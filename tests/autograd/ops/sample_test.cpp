// autograd/sample.h: moments within five deviations of their estimates, with fixed keys; values that are pinned.
#include "braid/autograd/sample.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <numeric>

#include "braid/autograd/create.h"
#include "braid/tensor/parallel.h"
#include "braid/tensor/print.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(ops_sample)

namespace {

constexpr RandomKey kDrawKey{11, 12};
constexpr int64_t kDraws = 100000;

struct Moments {
  double mean, variance;
};
Moments moments(const Tensor& x) {
  const Tensor wide = x.to(DType::f64);
  return {mean(wide).item(), var(wide).item()};
}

// The mean of kDraws errs by less than five of its deviations, the variance by the relative amount given.
void check_moments(const Tensor& x, double expected, double variance, double relative = 0.05) {
  const Moments found = moments(x);
  BOOST_TEST(std::fabs(found.mean - expected) < 5 * std::sqrt(variance / double(x.numel())));
  BOOST_TEST(std::fabs(found.variance - variance) < relative * variance);
}

std::vector<double> shares_of(const Tensor& ids, size_t n) {
  std::vector<double> found(n, 0);
  for (const int64_t i : ids.to_vector<int64_t>()) found[static_cast<size_t>(i)] += 1 / double(ids.numel());
  return found;
}

}  // namespace

BOOST_AUTO_TEST_CASE(moments_of_numbers) {
  check_moments(uniform({kDraws}, -1, 3, kDrawKey), 1, 16. / 12);
  check_moments(normal({kDraws}, 2, 3, kDrawKey), 2, 9);
  check_moments(exponential({kDraws}, 2, kDrawKey), 0.5, 0.25);
  check_moments(gumbel({kDraws}, kDrawKey), 0.57721566, M_PI * M_PI / 6);
  check_moments(truncated_normal({kDraws}, {}, kDrawKey), 0, 0.7737413);  // 1 - 4 phi(2) / (2 Phi(2) - 1)
  // A half normal distribution: mean sqrt(2/pi), variance 1 - 2/pi.
  const double inf = std::numeric_limits<double>::infinity();
  check_moments(truncated_normal({kDraws}, {.low = 0, .high = inf}, kDrawKey), std::sqrt(2 / M_PI), 1 - 2 / M_PI);
  check_moments(truncated_normal({kDraws}, {.mean = 5, .deviation = 2, .low = -inf, .high = inf}, kDrawKey), 5, 4);
}

BOOST_AUTO_TEST_CASE(numbers_lie_within_their_bounds) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const std::vector<double> x = truncated_normal({1000}, {.low = 7, .high = 8}, kDrawKey, dtype).to_vector<double>();
    const auto [least, most] = std::minmax_element(x.begin(), x.end());
    BOOST_TEST(*least >= 7);
    BOOST_TEST(*most <= 8);
    BOOST_TEST(*most - *least > 0.3);  // most lie near 7, where the density is largest
    BOOST_TEST(std::accumulate(x.begin(), x.end(), 0.0) / 1000 < 7.2);
  }
  const std::vector<double> u = uniform({1000}, 2, 3, kDrawKey, DType::bf16).to_vector<double>();
  BOOST_TEST(*std::min_element(u.begin(), u.end()) >= 2);
  BOOST_TEST(*std::max_element(u.begin(), u.end()) < 3);
  for (const double x : exponential({1000}, 1, kDrawKey).to_vector<double>()) BOOST_TEST((x > 0 && x < 17));
}

BOOST_AUTO_TEST_CASE(integers_are_equally_likely) {
  const Tensor x = randint(0, 7, {kDraws}, kDrawKey);
  for (const double f : shares_of(x, 7)) BOOST_TEST(std::fabs(f - 1. / 7) < 0.006);
  const std::vector<int64_t> values = randint(-3, 4, {kDraws}, kDrawKey).to_vector<int64_t>();
  const std::vector<int64_t> shifted = x.to_vector<int64_t>();
  for (size_t i = 0; i < values.size(); i += 1000) BOOST_TEST(values[i] + 3 == shifted[i]);
  BOOST_TEST((randint(0, 256, {4}, kDrawKey, DType::u8).dtype() == DType::u8));
  const int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();
  const std::vector<int64_t> wide = randint(least, most, {64}, kDrawKey).to_vector<int64_t>();
  BOOST_TEST((std::count_if(wide.begin(), wide.end(), [](int64_t i) { return i < 0; }) > 16));
  BOOST_TEST(randint(0, 5, {0, 3}, kDrawKey).numel() == 0);
}

BOOST_AUTO_TEST_CASE(permutations_hold_every_entry_once) {
  std::vector<int64_t> x = randperm(1000, kDrawKey).to_vector<int64_t>(), sorted = x;
  std::sort(sorted.begin(), sorted.end());
  BOOST_TEST((sorted == arange(1000).to_vector<int64_t>()));
  BOOST_TEST((x != sorted));
  BOOST_TEST(randperm(0, kDrawKey).numel() == 0);
  BOOST_TEST(randperm(1, kDrawKey).item() == 0);
  // Each of the 6 orders of 3 about as often.
  std::vector<double> orders(27, 0);
  for (uint64_t i = 0; i < 6000; ++i) {
    const std::vector<int64_t> p = randperm(3, child(kDrawKey, i)).to_vector<int64_t>();
    orders[static_cast<size_t>(9 * p[0] + 3 * p[1] + p[2])] += 1. / 6000;
  }
  BOOST_TEST(std::count(orders.begin(), orders.end(), 0.0) == 21);
  for (const double f : orders)
    if (f > 0) BOOST_TEST(std::fabs(f - 1. / 6) < 0.025);
  const Tensor rows = arange(12).reshaped({4, 3}), shuffled = shuffle(rows, kDrawKey);
  const std::vector<int64_t> order = randperm(4, kDrawKey).to_vector<int64_t>();
  for (int64_t i = 0; i < 4; ++i)
    BOOST_TEST(shuffled.sliced(0, i, i + 1).to_vector<double>()[0] == 3.0 * double(order[size_t(i)]));
}

BOOST_AUTO_TEST_CASE(coins) {
  BOOST_TEST((bernoulli({3}, 0.5, kDrawKey).dtype() == DType::u8));
  check_moments(bernoulli({kDraws}, 0.2, kDrawKey), 0.2, 0.16);
  BOOST_TEST(moments(bernoulli({kDraws}, 0, kDrawKey)).mean == 0);
  BOOST_TEST(moments(bernoulli({kDraws}, 1, kDrawKey)).mean == 1);
  const Tensor each = bernoulli(tensor({0, 1, 0, 1}), kDrawKey);
  BOOST_TEST(is_close(each.to_vector<double>(), {0, 1, 0, 1}, 0));
  check_moments(bernoulli(full({kDraws}, 0.75, DType::bf16), kDrawKey), 0.75, 0.1875);
}

BOOST_AUTO_TEST_CASE(choices_have_their_probabilities) {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor logits = log(tensor({1, 2, 0, 5}));
  const std::vector<double> want{0.125, 0.25, 0, 0.625};
  const std::vector<double> found = shares_of(categorical(expand(logits, {kDraws, 4}), kDrawKey), 4);
  for (size_t i = 0; i < 4; ++i) BOOST_TEST(std::fabs(found[i] - want[i]) < 0.008);
  BOOST_TEST(found[2] == 0);
  const Tensor columns = categorical(expand(unsqueeze(logits, 1), {4, 50}), kDrawKey, 0);
  BOOST_TEST(str(columns.shape()) == "(50)");
  BOOST_TEST(categorical(tensor({-inf, 0, -inf}), kDrawKey).item() == 1);

  const std::vector<double> drawn = shares_of(multinomial(tensor({1, 2, 0, 5}), kDraws, kDrawKey, true), 4);
  for (size_t i = 0; i < 4; ++i) BOOST_TEST(std::fabs(drawn[i] - want[i]) < 0.008);
  // Without replacement: the first by the weights, the second by those that are left.
  const Tensor pairs = multinomial(expand(tensor({1, 2, 0, 5}), {kDraws, 4}), 2, kDrawKey);
  BOOST_TEST(str(pairs.shape()) == str(Shape{kDraws, 2}));
  const std::vector<double> first = shares_of(pairs.sliced(1, 0, 1).contiguous(), 4);
  const std::vector<double> second = shares_of(pairs.sliced(1, 1, 2).contiguous(), 4);
  for (size_t i = 0; i < 4; ++i) {
    double p = 0;
    for (size_t j = 0; j < 4; ++j)
      if (j != i && want[j] > 0) p += want[j] * want[i] / (1 - want[j]);
    BOOST_TEST(std::fabs(first[i] - want[i]) < 0.008);
    BOOST_TEST(std::fabs(second[i] - p) < 0.008);
  }
  std::vector<int64_t> all = multinomial(tensor({1, 1, 1}), 3, kDrawKey).to_vector<int64_t>();
  std::sort(all.begin(), all.end());
  BOOST_TEST((all == std::vector<int64_t>{0, 1, 2}));
  BOOST_TEST(str(multinomial(zeros({2, 3}), 0, kDrawKey).shape()) == "(2, 0)");
}

// Computed by another program from the definitions.
BOOST_AUTO_TEST_CASE(values_that_never_change) {
  BOOST_TEST(
      (randint(0, 1000, {6}, kDrawKey).to_vector<int64_t>() == std::vector<int64_t>{970, 367, 999, 682, 701, 546}));
  BOOST_TEST((randperm(8, kDrawKey).to_vector<int64_t>() == std::vector<int64_t>{1, 0, 4, 2, 5, 7, 3, 6}));
  BOOST_TEST(is_close(truncated_normal({4}, {}, kDrawKey, DType::f64).to_vector<double>(),
                      {1.636639370765331, -0.3232789855443437, 1.9930038070562988, 0.4514751893303781}, 1e-14));
  BOOST_TEST(is_close(gumbel({4}, kDrawKey, DType::f64).to_vector<double>(),
                      {3.5104154511182046, -1.241089347199162, -0.0018483256988088624, -0.6288073453465997}, 1e-14));
}

BOOST_AUTO_TEST_CASE(draws_depend_on_the_key_and_the_place_alone) {
  const int before = threads();
  const auto draws = [] {
    std::vector<double> all;
    for (const Tensor& x : {randint(0, 1000, {5000}, kDrawKey), truncated_normal({5000}, {}, kDrawKey, DType::f64),
                            gumbel({5000}, kDrawKey, DType::f64), randperm(500, kDrawKey)})
      for (const double v : x.to_vector<double>()) all.push_back(v);
    return all;
  };
  const std::vector<double> want = draws();
  set_threads(1);
  BOOST_TEST((draws() == want));
  set_threads(before);
  BOOST_TEST(
      (randint(0, 10, {3, 3}, kDrawKey).to_vector<int64_t>() == randint(0, 10, {9}, kDrawKey).to_vector<int64_t>()));
  BOOST_TEST(
      (randint(0, 10, {9}, kDrawKey).to_vector<int64_t>() != randint(0, 10, {9}, {11, 13}).to_vector<int64_t>()));
}

BOOST_AUTO_TEST_CASE(misuse_is_named) {
  const double nan = std::nan("");
  const std::pair<std::function<void()>, const char*> calls[] = {
      {[] { uniform({2}, 1, 1, kDrawKey); }, "[uniform] needs finite bounds, low below high, got 1 and 1"},
      {[] { normal({2}, 0, -1, kDrawKey); }, "[normal] needs a finite mean and a finite deviation of at least 0"},
      {[] { normal({2}, 0, 1, kDrawKey, DType::i64); }, "[normal] needs a floating-point tensor, got i64"},
      {[] { truncated_normal({2}, {.low = 1, .high = 0}, kDrawKey); },
       "[truncated_normal] needs bounds, low below high"},
      {[] { truncated_normal({2}, {.low = 60, .high = 61}, kDrawKey); },
       "that are not all but impossible, got 60 and 61"},
      {[] { truncated_normal({2}, {.deviation = 0}, kDrawKey); }, "a finite positive deviation, got 0 and 0"},
      {[] { exponential({2}, 0, kDrawKey); }, "[exponential] needs a finite positive rate, got 0"},
      {[] { gumbel({2}, kDrawKey, DType::u8); }, "[gumbel] needs a floating-point type, got u8"},
      {[] { randint(3, 3, {2}, kDrawKey); }, "[randint] needs low below high, both within i64, got 3 and 3"},
      {[] { randint(0, 257, {2}, kDrawKey, DType::u8); }, "both within u8, got 0 and 257"},
      {[] { randint(0, 2, {2}, kDrawKey, DType::f32); }, "[randint] needs an integer type, got f32"},
      {[] { randint(0, 2, {-2}, kDrawKey); }, "(-2)"},
      {[] { randperm(-1, kDrawKey); }, "at least 0 elements, got -1"},
      {[] { bernoulli({2}, 1.5, kDrawKey); }, "[bernoulli] needs a probability in [0, 1], got 1.5"},
      {[=] { bernoulli(full({2}, nan), kDrawKey); }, "[bernoulli] needs probabilities in [0, 1], got another number"},
      {[] {
         categorical(zeros({2, 0}), kDrawKey);
       },
       "[categorical] axis -1 of (2, 0) is empty"},
      {[] { randperm(-1, kDrawKey); }, "[randperm] needs at least 0 elements, got -1"},
      {[] { categorical(arange(3), kDrawKey); }, "[categorical] needs a floating-point tensor, got i64"},
      {[] {
         multinomial(tensor({1, 0}), 2, kDrawKey);
       },
       "[multinomial] needs at least 2 positive weights in each row of (2); draw fewer"},
      {[] {
         multinomial(tensor({1, -1}), 1, kDrawKey);
       },
       "[multinomial] needs finite weights of at least 0"},
      {[] {
         multinomial(tensor({1, std::numeric_limits<double>::infinity()}), 1, kDrawKey);
       },
       "[multinomial] needs finite weights of at least 0"},
      {[] {
         multinomial(zeros({2, 0}), 1, kDrawKey);
       },
       "[multinomial] needs at least 1 positive weights"},
  };
  for (const auto& [call, words] : calls) BOOST_TEST(throws_with(call, words));
}

BOOST_AUTO_TEST_SUITE_END()
