#include "braid/models/inference/sampling.h"

#include <boost/test/unit_test.hpp>
#include <limits>
#include <numeric>

#include "braid/tensor/base/float_mode.h"
#include "braid/tensor/error.h"
#include "braid/tensor/random.h"
#include "tests/support/compare.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(sampling)

using models::SamplingOptions;

namespace {
// How often each token is drawn in 4000 draws.
std::vector<double> shares(const std::vector<float>& logits, SamplingOptions o, std::vector<int32_t> seen = {}) {
  std::vector<double> n(logits.size());
  for (int i = 0; i < 4000; ++i) {
    o.seed = static_cast<uint64_t>(i);
    n[static_cast<size_t>(models::sample_token(logits, seen, o))] += 1.0 / 4000;
  }
  return n;
}
const std::vector<float> kLogits{std::log(0.5f), std::log(0.3f), std::log(0.15f), std::log(0.05f)};
// The definition: every candidate sorted, filters applied one after another.
int64_t drawn_by_sorting(const std::vector<float>& logits, const SamplingOptions& o, uint64_t position) {
  std::vector<size_t> order(logits.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return logits[a] > logits[b]; });
  if (o.top_k > 0) order.resize(std::min(order.size(), static_cast<size_t>(o.top_k)));
  std::vector<double> p;
  for (const size_t id : order)
    p.push_back(std::exp((static_cast<double>(logits[id]) - logits[order[0]]) / o.temperature));
  const double total = std::accumulate(p.begin(), p.end(), 0.0);
  double mass = 0;
  size_t keep = 0;
  while (keep < p.size() && (o.top_p == 1 || mass < o.top_p * total)) mass += p[keep++];
  while (keep > 1 && p[keep - 1] < o.min_p * p[0]) mass -= p[--keep];
  double u = unit(random_bits(position, child({o.seed, 0}, "sample"))) * mass;
  size_t i = 0;
  while (i + 1 < keep && (u -= p[i]) >= 0) ++i;
  return static_cast<int64_t>(order[i]);
}

}  // namespace

BOOST_AUTO_TEST_CASE(draws_follow_the_probabilities) {
  BOOST_TEST(is_close(shares(kLogits, {}), {0.5, 0.3, 0.15, 0.05}, 0.06));
  BOOST_TEST(shares(kLogits, {.temperature = 0})[0] == 1.0, boost::test_tools::tolerance(1e-9));
  std::vector<double> hot = shares(kLogits, {.temperature = 100});
  BOOST_TEST(hot[3] > 0.2);
}

BOOST_AUTO_TEST_CASE(filters_cut_where_they_say) {
  BOOST_TEST(is_close(shares(kLogits, {.top_k = 2}), {0.625, 0.375, 0, 0}, 0.06));
  BOOST_TEST(is_close(shares(kLogits, {.top_p = 0.6}), {0.625, 0.375, 0, 0}, 0.06));
  BOOST_TEST(is_close(shares(kLogits, {.min_p = 0.25}), {0.526, 0.316, 0.158, 0}, 0.06));
  // Token 0 was seen: its logit log(0.5) is negative, so it is multiplied by 4: 0.5^4.
  std::vector<double> p{0.0625, 0.3, 0.15, 0.05};
  double total = 0.5625;
  for (double& x : p) x /= total;
  BOOST_TEST(is_close(shares(kLogits, {.repetition_penalty = 4}, {0}), p, 0.06));
}

// mu - c frequency - (c > 0) presence, c how often the token was drawn; what was given does not count.
BOOST_AUTO_TEST_CASE(drawn_tokens_are_penalised_and_biases_added) {
  const std::vector<float> logits{3, 2, 1, 0};
  const auto token = [&](SamplingOptions o, std::vector<int32_t> seen, size_t given) {
    o.temperature = 0;
    return models::sample_token(logits, seen, o, given);
  };
  BOOST_TEST(token({}, {0, 0}, 0) == 0);
  BOOST_TEST(token({.frequency_penalty = 0.6}, {0}, 0) == 0);
  BOOST_TEST(token({.frequency_penalty = 0.6}, {0, 0}, 0) == 1);
  BOOST_TEST(token({.frequency_penalty = 0.6}, {0, 0}, 1) == 0);
  BOOST_TEST(token({.frequency_penalty = 0.6, .presence_penalty = 0.6}, {0}, 0) == 1);
  BOOST_TEST(token({.presence_penalty = 1.5}, {0, 0, 0, 9, -1}, 0) == 1);
  BOOST_TEST(token({.presence_penalty = 0.9}, {0, 0, 0}, 0) == 0);
  BOOST_TEST(token({.presence_penalty = -2}, {3, 1}, 0) == 1);
  BOOST_TEST(token({.logit_bias = {{2, 5}, {9, 100}}}, {}, 0) == 2);
  BOOST_TEST(token({.logit_bias = {{0, -100}, {1, -100}}}, {}, 0) == 2);
  BOOST_TEST(models::sample_token({3, -INFINITY}, {}, {.temperature = 0, .logit_bias = {{1, 100}}}) == 0);
  for (uint64_t seed = 0; seed < 50; ++seed)
    BOOST_TEST(models::sample_token(logits, {}, {.temperature = 5, .top_p = 0, .seed = seed}) == 0);
  BRAID_CHECK_FAILS(models::check_options({.frequency_penalty = 2.1}), ErrorKind::setting, "frequency-penalty");
  BRAID_CHECK_FAILS(models::check_options({.presence_penalty = -2.1}), ErrorKind::setting, "presence-penalty");
  BRAID_CHECK_FAILS(models::check_options({.logit_bias = {{1, 101}}}), ErrorKind::setting, "logit-bias");
}

BOOST_AUTO_TEST_CASE(only_ids_of_the_vocabulary_are_drawn) {
  const std::vector<float> padded{0, 1, 2, 30, 40};  // the tokenizer has three ids
  for (double temperature : {0.0, 1.0, 100.0}) {
    std::vector<double> n = shares(padded, {.temperature = temperature, .vocabulary = 3});
    BOOST_TEST(n[3] + n[4] == 0.0);
    BOOST_TEST(n[2] > 0.3);
  }
  BOOST_TEST(models::sample_token(padded, {}, {.temperature = 0}) == 4);
  BOOST_TEST(models::sample_token(padded, {}, {.temperature = 0, .vocabulary = 9}) == 4);
}

BOOST_AUTO_TEST_CASE(the_first_of_the_largest_is_the_most_likely) {
  for (size_t V = 1; V < 70; ++V) {
    for (size_t best = 0; best < V; ++best) {
      std::vector<float> logits(V, -INFINITY);
      for (size_t i = 0; i < V; i += 3) logits[i] = -100 - static_cast<float>(i);
      logits[best] = logits[V - 1] = logits[(best + V) / 2] = -2;
      BOOST_TEST(models::sample_token(logits, {}, {.temperature = 0}) == static_cast<int64_t>(best));
    }
  }
}

BOOST_AUTO_TEST_CASE(logits_without_a_distribution_are_an_error) {
  const float nan = std::nanf(""), inf = INFINITY;
  for (double temperature : {0.0, 1.0}) {
    const auto fails = [&](const std::vector<float>& logits, const std::string& words) {
      const std::vector<int32_t> seen{0, 1, 2, 3, 4, 5, 6};
      BOOST_CHECK_EXCEPTION(
          models::sample_token(logits, seen, {.temperature = temperature}), Error, [&](const Error& e) {
            return e.kind() == ErrorKind::numerical && std::string(e.what()).find(words) != std::string::npos;
          });
    };
    fails({1, nan, 3}, "for position 7: the logit of token id 1 is NaN, 1 of 3 are not finite; ");
    fails({1, inf, -inf}, "for position 7: the logit of token id 1 is infinite, 2 of 3 are not finite; ");
    fails({-inf, -inf}, "for position 7: all 2 logits are -inf; ");
    BOOST_TEST(models::sample_token({-inf, std::numeric_limits<float>::max()}, {}, {.temperature = temperature}) == 1);
    BOOST_TEST(models::sample_token({-inf, 2, -inf}, {}, {.temperature = temperature}) == 1);  // excluded by the caller
  }
  BOOST_TEST(models::sample_token({3e38f, 1}, std::vector<int32_t>{0}, {.repetition_penalty = 0.01}) == 0);
}

BOOST_AUTO_TEST_CASE(options_out_of_range_are_named) {
  BOOST_TEST(throws_with([] { models::check_options({.temperature = -1}); },
                         "temperature is out of range: expected 0 or more"));
  for (const double p : {-0.1, 1.1}) {
    BOOST_TEST(
        throws_with([&] { models::check_options({.top_p = p}); }, "top-p is out of range: expected a value in [0, 1]"));
    BOOST_TEST(
        throws_with([&] { models::check_options({.min_p = p}); }, "min-p is out of range: expected a value in [0, 1]"));
  }
}

// A vocabulary that is sorted only in part gives the draws of one that is sorted.
BOOST_AUTO_TEST_CASE(draws_are_those_of_a_full_sort) {
  constexpr size_t kVocabulary = 3000;
  for (const double spread : {0.0, 0.5, 4.0, 30.0}) {
    std::vector<float> logits;
    for (uint64_t i = 0; i < kVocabulary; ++i) {
      const float l = static_cast<float>(spread) * unit(random_bits(i, {11, 1}));
      logits.push_back(i % 7 == 0 ? std::round(l) : i % 11 == 0 ? -INFINITY : l);  // some are equal, some excluded
    }
    for (uint64_t seed = 0; seed < 40; ++seed) {
      for (SamplingOptions o : {SamplingOptions{},
                                {.top_k = 70},
                                {.top_p = 0.7},
                                {.min_p = 0.3},
                                {.temperature = 0.2},
                                {.temperature = 1e-30},
                                {.temperature = 1e-320, .top_k = 3},
                                {.temperature = 1e30, .top_p = 0.5},
                                {.temperature = 3, .top_k = 2000, .top_p = 0.95, .min_p = 0.01}}) {
        o.seed = seed;
        const std::vector<int32_t> seen(seed % 5, 1);
        BOOST_TEST(models::sample_token(logits, seen, o) == drawn_by_sorting(logits, o, seen.size()),
                   "spread " << spread << ", seed " << seed << ", top_k " << o.top_k << ", top_p " << o.top_p);
      }
    }
  }
}

#if defined(__x86_64__)
// 1 / temperature is then such a number.
BOOST_AUTO_TEST_CASE(the_highest_temperature_where_numbers_below_the_normal_ones_count_as_zero) {
  constexpr uint64_t kFlushToZero = 0x8000, kOperandsToo = 0x40;
  const uint64_t before = detail::float_mode();
  detail::set_float_mode(before | kFlushToZero | kOperandsToo);
  const std::vector<double> p = shares({1, -INFINITY, 2, -INFINITY}, {.temperature = 1.7e308});
  detail::set_float_mode(before);
  BOOST_TEST(is_close(p, {0.5, 0, 0.5, 0}, 0.06));
}
#endif

BOOST_AUTO_TEST_SUITE_END()
