#include "braid/nn/batches.h"

#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <limits>
#include <numeric>
#include <thread>

#include "braid/autograd/ops.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(batches)

namespace {
using Lists = std::vector<std::vector<double>>;
Lists read(const nn::Batches& batches, int64_t epoch) {
  Lists all;
  for (const std::vector<Tensor>& batch : batches.epoch(epoch)) all.push_back(batch[0].to_vector<double>());
  return all;
}
}  // namespace

BOOST_AUTO_TEST_CASE(rows_of_tensors_in_order) {
  const Tensor x = arange(7), y = arange(14, DType::f32).reshaped({7, 2});
  const nn::Batches all({x, y}, {.size = 3}), full({x, y}, {.size = 3, .drop_last = true});
  BOOST_TEST(all.size() == 3);
  BOOST_TEST((read(all, 0) == Lists{{0, 1, 2}, {3, 4, 5}, {6}}));
  BOOST_TEST((read(full, 5) == Lists{{0, 1, 2}, {3, 4, 5}}));
  nn::Batches::Epoch epoch = all.epoch(0);
  std::vector<Tensor> batch;
  BOOST_REQUIRE(epoch.next(batch));
  BOOST_TEST(is_close(batch[1], y.sliced(0, 0, 3), 0));
  BOOST_TEST(read(nn::Batches({zeros({0, 2})}, {}), 0).empty());
  const nn::Batches whole({x}, {.size = std::numeric_limits<int64_t>::max()});
  BOOST_TEST(whole.size() == 1);
  BOOST_TEST((read(whole, 0) == Lists{{0, 1, 2, 3, 4, 5, 6}}));
}

BOOST_AUTO_TEST_CASE(the_order_is_a_function_of_seed_and_epoch) {
  const auto make = [](uint64_t seed, int64_t workers) {
    return nn::Batches({arange(101)}, {.size = 10, .shuffle = true, .seed = seed, .workers = workers});
  };
  const Lists first = read(make(1, 0), 0);
  for (const int64_t workers : {1, 3}) BOOST_TEST((read(make(1, workers), 0) == first));
  BOOST_TEST((read(make(1, 0), 1) != first));
  BOOST_TEST((read(make(2, 0), 0) != first));
  std::vector<int64_t> order = make(1, 0).order(4);
  std::sort(order.begin(), order.end());
  std::vector<int64_t> every(101);
  std::iota(every.begin(), every.end(), int64_t{0});
  BOOST_TEST(order == every, boost::test_tools::per_element());
}

// Over many epochs every sample comes first about equally often.
BOOST_AUTO_TEST_CASE(the_shuffle_is_even) {
  const nn::Batches all({arange(5)}, {.shuffle = true, .seed = 3});
  std::vector<int> first(5), last(5);
  for (int64_t epoch = 0; epoch < 5000; ++epoch) {
    const std::vector<int64_t> order = all.order(epoch);
    ++first[static_cast<size_t>(order[0])];
    ++last[static_cast<size_t>(order[4])];
  }
  for (size_t i = 0; i < 5; ++i) {
    BOOST_TEST(std::abs(first[i] - 1000) < 150);
    BOOST_TEST(std::abs(last[i] - 1000) < 150);
  }
}

BOOST_AUTO_TEST_CASE(workers_hold_a_bounded_number_of_batches) {
  std::atomic<int64_t> made{0};
  const auto sample = [&](int64_t i) {
    ++made;
    return std::vector<Tensor>{full({2}, static_cast<double>(i))};
  };
  const nn::Batches all(100, sample, {.size = 1, .workers = 2});
  nn::Batches::Epoch epoch = all.epoch(0);
  std::vector<Tensor> batch;
  for (int64_t taken = 1; taken <= 5; ++taken) {
    BOOST_REQUIRE(epoch.next(batch));
    BOOST_TEST(batch[0].to_vector<double>()[1] == static_cast<double>(taken - 1));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    BOOST_TEST(made <= taken + 2);
  }
}

BOOST_AUTO_TEST_CASE(what_a_worker_throws_arrives_in_its_place) {
  const auto sample = [](int64_t i) {
    check(i != 5, "sample", "the file of sample 5 is damaged");
    return std::vector<Tensor>{full({}, static_cast<double>(i))};
  };
  for (const int64_t workers : {0, 1, 3}) {
    const nn::Batches all(9, sample, {.size = 2, .workers = workers});
    nn::Batches::Epoch epoch = all.epoch(0);
    std::vector<Tensor> batch;
    BOOST_REQUIRE(epoch.next(batch));
    BOOST_REQUIRE(epoch.next(batch));
    BOOST_TEST(throws_with([&] { epoch.next(batch); }, "sample 5 is damaged"));
    BOOST_REQUIRE(epoch.next(batch));  // the one after it
    BOOST_TEST(batch[0].to_vector<double>()[0] == 6);
  }
}

BOOST_AUTO_TEST_CASE(errors_say_what_is_expected) {
  BOOST_TEST(throws_with([] { nn::Batches({arange(3), arange(4)}, {}); }, "one first size"));
  BOOST_TEST(throws_with([] { nn::Batches({arange(3)}, {.size = 0}); }, "size of at least 1"));
  BOOST_TEST(throws_with([] { nn::Batches(std::vector<Tensor>{}, {}); }, "at least one tensor"));
  nn::Batches ragged(2, [](int64_t i) { return std::vector<Tensor>{zeros({i + 1})}; }, {.size = 2});
  nn::Batches::Batch batch;
  BOOST_TEST(throws_with([&] { ragged.epoch(0).next(batch); }, "have the shapes (1) and (2); pad() them"));
}

BOOST_AUTO_TEST_SUITE_END()
