// Metrics of classes against counts by hand.
#include "braid/models/eval/classification.h"
#include "braid/autograd/ops.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "braid/distributed/comm/thread_transport.h"
#include "braid/tensor/strict.h"

using namespace braid;

BOOST_AUTO_TEST_SUITE(classification)

using models::eval::ClassificationCounts;

namespace {
// Logits of probabilities, so that confidences are round numbers.
Tensor logits_of(const std::vector<std::vector<double>>& p) {
  std::vector<double> all;
  for (const auto& row : p)
    for (const double x : row) all.push_back(std::log(x));
  return from_vector(all, {std::ssize(p), std::ssize(p[0])});
}
Tensor labels_of(const std::vector<int64_t>& labels) { return from_vector(labels, {std::ssize(labels)}); }
}  // namespace

BOOST_AUTO_TEST_CASE(counts_and_means_are_those_by_hand, *boost::unit_test::tolerance(1e-12)) {
  ClassificationCounts counts(3, 10);
  counts.add(logits_of({{0.55, 0.35, 0.1}, {0.2, 0.75, 0.05}}), labels_of({0, 0}));
  counts.add(logits_of({{0.56, 0.34, 0.1}, {0.1, 0.1, 0.8}}), labels_of({1, -1}));  // the last one is not counted
  BOOST_TEST(counts.images() == 3);
  BOOST_TEST(counts.top(1) == 1.0 / 3);
  BOOST_TEST(counts.top(5) == 1.0);
  BOOST_TEST(counts.loss() == -(std::log(0.55) + std::log(0.2) + std::log(0.34)) / 3);
  BOOST_TEST(counts.confusion(0, 0) == 1);
  BOOST_TEST(counts.confusion(0, 1) == 1);
  BOOST_TEST(counts.confusion(1, 0) == 1);
  BOOST_TEST(counts.confusion(2, 2) == 0);
  BOOST_TEST(counts.recall(0) == 0.5);
  BOOST_TEST(counts.recall(1) == 0.0);
  BOOST_TEST(counts.precision(0) == 0.5);
  BOOST_TEST(std::isnan(counts.recall(2)));
  // Bin 0.5..0.6: two images, one right, confidences 0.55 and 0.56; bin 0.7..0.8: one, wrong, 0.75.
  BOOST_TEST(counts.bins()[5].images == 2);
  BOOST_TEST(counts.bins()[7].images == 1);
  BOOST_TEST(counts.calibration_error() == (std::abs(1 - 1.11) + 0.75) / 3);
}

BOOST_AUTO_TEST_CASE(the_five_likeliest_and_ties) {
  ClassificationCounts counts(7);
  const Tensor equal = zeros({2, 7});
  counts.add(equal, labels_of({4, 5}));  // of equal classes the first are the likeliest
  BOOST_TEST(counts.top(5) == 0.5);
  BOOST_TEST(counts.top(1) == 0.0);
  BOOST_TEST(counts.confusion(4, 0) == 1);
  BOOST_CHECK_THROW(counts.top(2), Error);
}

BOOST_AUTO_TEST_CASE(nothing_counted_and_numbers_that_are_none) {
  ClassificationCounts counts(2);
  counts.add(zeros({1, 2}), labels_of({-1}));
  for (const double x : {counts.loss(), counts.top(1), counts.calibration_error()}) BOOST_TEST(std::isnan(x));
  counts.add(from_vector(std::vector<double>{NAN, 0}, {1, 2}), labels_of({1}));
  BOOST_TEST(std::isnan(counts.loss()));
  BOOST_CHECK_THROW(counts.add(zeros({2, 3}), labels_of({0})), Error);
}

BOOST_AUTO_TEST_CASE(ranks_together_count_all, *boost::unit_test::tolerance(1e-12)) {
  const Tensor logits = randn({9, 4}, {.seed = 3}, DType::f64);
  const std::vector<int64_t> labels = {0, 1, 2, 3, 0, 1, 2, 3, -1};
  ClassificationCounts whole(4);
  whole.add(logits, labels_of(labels));
  dist::run_thread_ranks(3, [&](const dist::Communicator& world) {
    const int64_t begin = 3 * world.rank();
    ClassificationCounts part(4);
    part.add(logits.sliced(0, begin, begin + 3), labels_of({labels.begin() + begin, labels.begin() + begin + 3}));
    part.sum_over(world);
    const bool same = part.images() == 8 && std::abs(part.loss() - whole.loss()) < 1e-12 &&
                      part.top(1) == whole.top(1) &&
                      std::abs(part.calibration_error() - whole.calibration_error()) < 1e-12;
    if (!same) throw std::runtime_error("the counts of ranks differ from those of one");
  });
}

// Under StrictBits every share of the images gives the same bits.
BOOST_AUTO_TEST_CASE(strict_sums_have_no_order) {
  constexpr int64_t n = 301;
  const Tensor logits = randn({n, 4}, {.seed = 4}, DType::f64) * 3;
  const auto counted = [&](int ranks) {
    std::vector<double> found;
    dist::run_thread_ranks(ranks, [&](const dist::Communicator& world) {
      const StrictBits scope;
      ClassificationCounts part(4);
      for (int64_t i = world.rank(); i < n; i += ranks) part.add(logits.sliced(0, i, i + 1), labels_of({i % 4}));
      part.sum_over(world);
      if (world.rank() == 0) found = {part.loss(), part.calibration_error()};
    });
    return found;
  };
  const std::vector<double> want = counted(1);
  for (const int ranks : {2, 3, 5}) BOOST_TEST(counted(ranks) == want, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
