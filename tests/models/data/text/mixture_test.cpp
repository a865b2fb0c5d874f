// The draws of a mixture: shares, order and purity, over random weights and phases.
#include "braid/models/data/text/mixture.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <numeric>
#include <random>

#include "tests/support/throws.h"
using namespace braid;
using namespace braid::models::text;

BOOST_AUTO_TEST_SUITE(mixture)

namespace {

std::vector<double> shares_of(const MixturePhase& phase) {
  const double sum = std::accumulate(phase.weights.begin(), phase.weights.end(), 0.0);
  std::vector<double> shares;
  for (const double w : phase.weights) shares.push_back(w / sum);
  return shares;
}

// Weights of random sizes, some of them 0, over phases of random lengths.
std::vector<MixturePhase> random_phases(std::mt19937& random) {
  const size_t sources = 2 + random() % 6;
  std::vector<MixturePhase> phases;
  int64_t first = 0;
  for (size_t p = 1 + random() % 4; p > 0; --p) {
    MixturePhase phase{.first = first, .weights = {}};
    for (size_t i = 0; i < sources; ++i)
      phase.weights.push_back(random() % 4 == 0 ? 0 : std::exp2(-static_cast<double>(random() % 1100) / 100));
    phase.weights[random() % sources] = 1;
    phases.push_back(phase);
    first += random() % 3 == 0 ? 1 + random() % 50 : 1000 + random() % 5000;
  }
  return phases;
}

}  // namespace

BOOST_AUTO_TEST_CASE(counts_are_those_of_the_weights_and_each_sequence_of_a_source_is_read_once_in_order) {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    const std::vector<MixturePhase> phases = random_phases(random);
    const Mixture mixture(phases, round);
    const int64_t total = phases.back().first + 4 * Mixture::block_size;
    const std::vector<Mixture::Draw> draws = mixture.draws(0, total);
    BOOST_REQUIRE_EQUAL(std::ssize(draws), total);
    std::vector<int64_t> counts(phases[0].weights.size());
    std::vector<double> expected(counts.size());
    size_t p = 0;
    for (int64_t n = 0; n < total; ++n) {
      const bool begins = p + 1 < phases.size() && phases[p + 1].first == n;
      // Whole blocks of a phase, and its end. A smaller share has larger blocks.
      const auto shares_now = shares_of(phases[p]);
      const bool usual = std::ranges::all_of(
          shares_now, [](double share) { return share == 0 || share > 1.001 / Mixture::block_size; });
      const bool last_block = p + 1 < phases.size() && phases[p + 1].first - n < Mixture::block_size;
      if (begins || (usual && !last_block && (n - phases[p].first) % Mixture::block_size == 0))
        for (size_t i = 0; i < counts.size(); ++i)
          BOOST_TEST(std::abs(static_cast<double>(counts[i]) - expected[i]) < 1.001 * static_cast<double>(p + 1));
      if (begins) ++p;
      const auto [source, index] = draws[static_cast<size_t>(n)];
      BOOST_REQUIRE_EQUAL(index, counts[static_cast<size_t>(source)]++);
      BOOST_REQUIRE(phases[p].weights[static_cast<size_t>(source)] > 0);
      const std::vector<double> shares = shares_of(phases[p]);
      for (size_t i = 0; i < shares.size(); ++i) expected[i] += shares[i];
    }
    BOOST_TEST(mixture.counts(total) == counts, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(a_draw_is_a_function_of_its_number_alone) {
  std::mt19937 random(8);
  for (int round = 0; round < 20; ++round) {
    const std::vector<MixturePhase> phases = random_phases(random);
    const Mixture mixture(phases, 3), again(phases, 3);
    const int64_t total = phases.back().first + 2500;
    const std::vector<Mixture::Draw> all = mixture.draws(0, total);
    for (int part = 0; part < 20; ++part) {
      const auto first = static_cast<int64_t>(random() % static_cast<unsigned>(total)),
                 n = std::min(total - first, int64_t{300});
      const std::vector<Mixture::Draw> some = again.draws(first, n);
      std::vector<int64_t> counts(phases[0].weights.size());
      for (int64_t i = 0; i < first; ++i) ++counts[static_cast<size_t>(all[static_cast<size_t>(i)].source)];
      BOOST_TEST(again.counts(first) == counts, boost::test_tools::per_element());
      for (int64_t i = 0; i < n; ++i) {
        const Mixture::Draw &a = all[static_cast<size_t>(first + i)], &b = some[static_cast<size_t>(i)];
        BOOST_REQUIRE(a.source == b.source && a.index == b.index);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(the_seed_changes_the_order_and_not_the_counts) {
  const std::vector<MixturePhase> phases = {{0, {3, 1}}};
  const Mixture a(phases, 1), b(phases, 2);
  const auto x = a.draws(0, 1000);
  for (const auto& other : {b.draws(0, 1000), a.draws(1000, 1000)}) {  // so does the block
    int64_t same = 0;
    for (size_t i = 0; i < x.size(); ++i) same += x[i].source == other[i].source;
    BOOST_TEST(same < 800);  // of independent orders 625
  }
  BOOST_TEST(a.counts(1000) == (std::vector<int64_t>{750, 250}), boost::test_tools::per_element());
  BOOST_TEST(b.counts(1000) == (std::vector<int64_t>{750, 250}), boost::test_tools::per_element());
  // No source is long away: of 100 in a row about 25 are of the second one.
  for (size_t begin = 0; begin + 100 <= x.size(); begin += 100) {
    const auto second =
        std::count_if(x.begin() + static_cast<int64_t>(begin), x.begin() + static_cast<int64_t>(begin) + 100,
                      [](const Mixture::Draw& d) { return d.source == 1; });
    BOOST_TEST(second > 5);
    BOOST_TEST(second < 50);
  }
}

// Against the draws themselves: it may say no where they are equal by chance, and must not say yes where they differ.
BOOST_AUTO_TEST_CASE(a_mixture_begins_as_another_up_to_the_block_in_which_they_part) {
  std::mt19937 random(10);
  int same = 0, different = 0;
  for (int round = 0; round < 200; ++round) {
    const std::vector<MixturePhase> phases = random_phases(random);
    std::vector<MixturePhase> changed = phases;
    MixturePhase& phase = changed[random() % changed.size()];
    if (random() % 2 == 0) {
      for (double& w : phase.weights) w *= round % 4 == 0 ? 2 : 1 + static_cast<double>(random() % 2);
    } else {
      MixturePhase later = changed.back();
      later.first += 1 + static_cast<int64_t>(random() % 400);
      std::ranges::reverse(later.weights);
      changed.push_back(later);
    }
    const Mixture a(phases, 3), b(changed, 3);
    const int64_t total = phases.back().first + 500;
    const std::vector<Mixture::Draw> of_a = a.draws(0, total), of_b = b.draws(0, total);
    const auto parted = std::ranges::mismatch(of_a, of_b, [](const Mixture::Draw& x, const Mixture::Draw& y) {
      return x.source == y.source && x.index == y.index;
    });
    const int64_t equal = parted.in1 - of_a.begin();
    for (const int64_t count : {int64_t{0}, int64_t{1}, equal / 2, equal, equal + 1, total}) {
      const bool begins = a.begins_as(b, count);
      BOOST_TEST(begins == b.begins_as(a, count));
      BOOST_TEST((!begins || count <= equal || equal == total), "round " << round << ": " << count << " of " << equal);
      if (count > 0) ++(begins ? same : different);
    }
    BOOST_TEST(a.begins_as(a, total));
    BOOST_TEST(a.begins_as(b, 0));
  }
  BOOST_TEST(same > 300);
  BOOST_TEST(different > 200);
  // Two more blocks make a phase: the first of them is as before.
  const Mixture one({{0, {3, 1}}}, 3), two({{0, {3, 1}}, {200, {1, 3}}}, 3);
  BOOST_TEST(one.begins_as(two, 200));
  BOOST_TEST(!one.begins_as(two, 201));
  const Mixture inside({{0, {3, 1}}, {199, {1, 3}}}, 3);
  BOOST_TEST(!one.begins_as(inside, 50));
  const Mixture twice({{0, {6, 2}}}, 3), other({{0, {1, 3}}}, 3), three({{0, {3, 1, 0}}}, 3);
  BOOST_TEST(one.begins_as(twice, 1000));
  BOOST_TEST(!one.begins_as(other, 1));
  BOOST_TEST(!one.begins_as(three, 1));
}

BOOST_AUTO_TEST_CASE(small_shares_have_their_counts_too) {
  const Mixture mixture({{0, {1 - 3e-4, 1e-4, 2e-4}}}, 5);
  const std::vector<int64_t> counts = mixture.counts(1'000'000);
  BOOST_TEST(std::abs(counts[1] - 100) <= 1);
  BOOST_TEST(std::abs(counts[2] - 200) <= 1);
  // Far into a long run, where products of a count and a share would not fit 64 bits as they are.
  const int64_t far = int64_t{1} << 50;
  const std::vector<int64_t> later = mixture.counts(far);
  BOOST_TEST(std::accumulate(later.begin(), later.end(), int64_t{0}) == far);
  BOOST_TEST(std::abs(static_cast<double>(later[1]) / static_cast<double>(far) - 1e-4) < 1e-8);
  BOOST_TEST(std::ssize(mixture.draws(far, 10)) == 10);
}

BOOST_AUTO_TEST_CASE(one_source_gives_its_sequences_in_order) {
  const Mixture mixture({{0, {2}}, {7, {5}}}, 1);
  const std::vector<Mixture::Draw> draws = mixture.draws(3, 20);
  for (size_t i = 0; i < draws.size(); ++i) {
    BOOST_TEST(draws[i].source == 0);
    BOOST_TEST(draws[i].index == 3 + static_cast<int64_t>(i));
  }
  BOOST_TEST(mixture.counts(12)[0] == 12);
}

BOOST_AUTO_TEST_CASE(wrong_weights_are_rejected) {
  const auto rejected = [](const std::vector<double>& weights, const char* words) {
    BRAID_CHECK_FAILS(Mixture({{0, weights}}, 1), ErrorKind::setting, words);
  };
  rejected({0, 0}, "must have a sum above 0, found 0");
  rejected({1, -1}, "at least 0, found -1");
  rejected({1, NAN}, "at least 0, found nan");
  rejected({1, INFINITY}, "at least 0, found inf");
  rejected({1, 1e-5}, "0 or at least 1e-04 of the sum of all, found 1e-05 of 1.00001");
}

BOOST_AUTO_TEST_SUITE_END()
