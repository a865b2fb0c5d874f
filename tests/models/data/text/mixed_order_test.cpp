// Runs that read several data folders: each in its own order, whatever the others are.
#include "braid/models/data/text/mixed_order.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <climits>
#include <map>

#include "braid/models/data/local_samples.h"
#include "braid/models/data/text/batches.h"
#include "tests/models/data/text/counted_data.h"
#include "tests/support/throws.h"
using namespace braid;
using namespace braid::models::text;
using models::EarlierLength;
using test::make_counted;

BOOST_AUTO_TEST_SUITE(mixed_order)

namespace {

constexpr uint64_t kSeed = 9;

Dataset read(const TempFolder& folder, int64_t T, DocumentAttention documents = DocumentAttention::joined) {
  return Dataset(folder.path.string(), Split::train, T, {.documents = documents});
}

// Two sources without a common token: 60 and 180 of them.
struct Two {
  TempFolder a, b;
  Two() {
    make_counted(a, 0, 61);
    make_counted(b, 70, 251);
  }
  MixedOrder order(int64_t T, const std::vector<EarlierLength>& earlier = {},
                   std::vector<std::vector<WeightChange>> weights = {{{0, 1}, {900, 3}}, {{0, 3}, {900, 1}}}) const {
    std::vector<Dataset> data;
    data.push_back(read(a, T));
    data.push_back(read(b, T));
    MixedOrder order(std::move(data), std::move(weights), kSeed);
    if (!earlier.empty()) order.continue_after(earlier);
    return order;
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(one_data_set_is_read_in_its_own_order) {
  TempFolder folder;
  make_counted(folder, 0, 101);
  const MixedOrder order(read(folder, 10), kSeed);
  const TrainingOrder alone(read(folder, 10), kSeed);
  const auto places = order.places(0, 35);
  for (int64_t n = 0; n < 35; ++n) BOOST_TEST(places[static_cast<size_t>(n)].index == alone.at(n).second);
  BOOST_TEST(order.fingerprint() == order.data(0).fingerprint());
  BOOST_TEST(order.tokens(35) == 350);
  BOOST_TEST(order.epochs(35)[0] == 3.5);
  BOOST_TEST(order.count_of_epochs(2) == 20);
}

BOOST_AUTO_TEST_CASE(sources_are_read_in_their_own_orders_and_phases_begin_at_tokens) {
  const Two two;
  const MixedOrder order = two.order(10);  // 6 and 18 sequences; the phase changes at sequence 90
  BOOST_TEST(order.size() == 24);
  const TrainingOrder a(read(two.a, 10), kSeed), b(read(two.b, 10), kSeed);
  int64_t of_a = 0, of_b = 0;
  const auto places = order.places(0, 300);
  for (int64_t n = 0; n < 300; ++n) {
    const auto& [data, index, source] = places[static_cast<size_t>(n)];
    BOOST_REQUIRE(data == &order.data(source));
    BOOST_REQUIRE_EQUAL(index, source == 0 ? a.at(of_a++).second : b.at(of_b++).second);
    if (n + 1 == 90) BOOST_TEST((of_a == 22 || of_a == 23));
  }
  BOOST_TEST((order.counts(300) == std::vector<int64_t>{of_a, of_b}));
  BOOST_TEST(order.epochs(300)[0] == static_cast<double>(of_a) / 6);
  BOOST_TEST(order.epochs(300)[1] == static_cast<double>(of_b) / 18);
  // The phase begins with the first sequence that begins at its token or later.
  for (const auto& [token, sequence] : {std::pair<int64_t, int64_t>{900, 90}, {891, 90}, {901, 91}}) {
    const MixedOrder only = two.order(10, {}, {{{0, 1}, {token, 0}}, {{0, 0}, {token, 1}}});
    BOOST_TEST(only.counts(200)[0] == sequence);
    BOOST_TEST(only.places(sequence - 1, 2)[0].source == 0);
    BOOST_TEST(only.places(sequence - 1, 2)[1].source == 1);
  }
  // Two changes within one sequence are one.
  const MixedOrder both = two.order(10, {}, {{{0, 1}, {895, 0}, {898, 2}}, {{0, 1}}});
  BOOST_TEST(both.last_weights()[0] == 2);
  BOOST_TEST(both.counts(90)[0] == 45);
}

BOOST_AUTO_TEST_CASE(weights_and_data_are_in_the_fingerprint) {
  const Two two;
  const std::string text = two.order(10).fingerprint();
  BOOST_TEST(text ==
             "mixture of " + read(two.a, 10).fingerprint() + " 1 3@900, " + read(two.b, 10).fingerprint() + " 3 1@900");
  BOOST_TEST(two.order(20).fingerprint() == text);
}

BOOST_AUTO_TEST_CASE(weights_may_change_behind_what_was_read) {
  const Two two;
  const MixedOrder::Weights before = {{{0, 1}}, {{0, 3}}}, after = {{{0, 1}, {4000, 3}}, {{0, 3}}};
  const MixedOrder then = two.order(10, {}, before), now = two.order(10, {}, after);  // from sequence 400 on
  const std::string print = then.fingerprint();
  BOOST_TEST(now.begins_as(before, print, {}, 400));
  BOOST_TEST(!now.begins_as(before, print, {}, 401));
  BOOST_TEST(!now.begins_as(before, print + " ", {}, 100));  // other data
  BOOST_TEST(!now.begins_as({{{0, 1}}}, print, {}, 100));
  // Behind 2000 tokens in sequences of 20 blocks begin anew, and the change is 200 sequences of 10 away.
  BOOST_TEST(now.begins_as(before, print, {{20, 100}}, 300));
  BOOST_TEST(!now.begins_as(before, print, {{20, 100}}, 301));
  BOOST_TEST(!now.begins_as(before, print, {{20, 201}}, 201));
  BOOST_TEST(two.order(10, {{20, 100}}, before).counts(300) == two.order(10, {{20, 100}}, after).counts(300),
             boost::test_tools::per_element());
}

// Every token of each source is read once per epoch, whatever lengths the run had and wherever they changed.
BOOST_AUTO_TEST_CASE(a_changed_length_neither_repeats_nor_skips_a_token_of_a_source) {
  const Two two;
  const std::vector<std::vector<std::pair<int64_t, int64_t>>> cases = {
      {{20, 3}, {10, 7}}, {{10, 95}}, {{20, 50}, {10, 1}}, {{10, 7}}, {{20, 1}}};  // shorter ones leave no remainder
  for (const auto& lengths : cases) {
    std::vector<std::map<int32_t, int>> times(2);
    std::vector<EarlierLength> earlier;
    int64_t n = 0, tokens = 0;
    const auto read_some = [&](const MixedOrder& order, int64_t count) {
      for (const auto& [data, index, source] : order.places(n, count))
        for (const int32_t target : data->sequence(index).targets) ++times[static_cast<size_t>(source)][target];
      n += count, tokens += count * order.seq_len();
      BOOST_TEST(order.tokens(n) == tokens);
    };
    for (const auto& [T, count] : lengths) {
      read_some(two.order(T, earlier), count);
      earlier.push_back({T, count});
    }
    read_some(two.order(5, earlier), 900);
    for (const auto& [source, all] : {std::pair<size_t, int64_t>{0, 60}, {1, 180}}) {
      BOOST_TEST(std::ssize(times[source]) == all);
      int most = 0, least = INT_MAX;
      for (const auto& [target, count] : times[source]) most = std::max(most, count), least = std::min(least, count);
      BOOST_TEST(most - least <= 1);  // the last epoch is under way
    }
  }
}

BOOST_AUTO_TEST_CASE(a_phase_stays_at_its_token_when_the_length_changes) {
  const Two two;
  const std::vector<std::vector<WeightChange>> weights = {{{0, 1}, {900, 0}}, {{0, 0}, {900, 1}}};
  BOOST_TEST(two.order(20, {{10, 40}}, weights).counts(200)[0] == 40 + 25);  // 400 tokens, then 500
  BOOST_TEST(two.order(20, {{10, 90}}, weights).counts(200)[0] == 90);
  BOOST_TEST(two.order(20, {{10, 95}}, weights).counts(200)[0] == 90);
}

// Whatever the batches are: micro-batches that are read across the end of the rest, by one data rank.
BOOST_AUTO_TEST_CASE(batches_follow_the_order) {
  TempFolder folder;
  make_counted(folder, 0, 101);
  MixedOrder order(read(folder, 20), kSeed);
  order.continue_after({{10, 4}});  // three of the rest, then the next epoch
  const auto one = step_batches(order, 4, 6, 1, {}), two = step_batches(order, 4, 3, 2, {}, RandomKey{1, 2});
  BOOST_TEST(!one[0].has(models::kSampleKeys));
  BOOST_TEST(!one[0].has(models::kSources));
  for (int64_t b = 0; b < 6; ++b) {
    const models::Batch& part = two[static_cast<size_t>(b / 3)];
    const auto ids = one[0].at("input_ids").sliced(0, b, b + 1).to_vector<int32_t>();
    BOOST_TEST(ids == part.at("input_ids").sliced(0, b % 3, b % 3 + 1).to_vector<int32_t>());
    const auto [data, index, source] = order.places(4 + b, 1)[0];
    BOOST_TEST(ids == data->sequence(index).ids);
    const int64_t key = part.at(models::kSampleKeys).to_vector<int64_t>()[static_cast<size_t>(b % 3)];
    BOOST_TEST(key == sample_keys({1, 2}, {4 + b}).to_vector<int64_t>()[0]);
    BOOST_TEST(key != sample_keys({1, 2}, {5 + b}).to_vector<int64_t>()[0]);
  }
}

BOOST_AUTO_TEST_CASE(batches_of_a_mixture_name_the_source_of_each_sample) {
  const Two two;
  std::vector<Dataset> data;
  data.push_back(read(two.a, 10, DocumentAttention::separate));
  data.push_back(read(two.b, 10));
  const MixedOrder order(std::move(data), {{{0, 1}}, {{0, 1}}}, kSeed);
  BOOST_TEST(order.separates_documents());
  const models::Batch batch = step_batches(order, 0, 40, 1, {})[0];
  const auto sources = batch.at(models::kSources).to_vector<int64_t>();
  const auto ids = batch.at("input_ids").to_vector<int32_t>(),
             positions = batch.at(models::kPositions).to_vector<int32_t>();
  BOOST_TEST(std::ranges::count(sources, 0) > 5);
  BOOST_TEST(std::ranges::count(sources, 1) > 5);
  for (size_t i = 0; i < ids.size(); ++i) {
    BOOST_TEST(sources[i / 10] == (ids[i] >= 70 ? 1 : 0));
    BOOST_TEST(positions[i] == static_cast<int32_t>(i % 10));  // also of the source whose documents are joined
  }
}

BOOST_AUTO_TEST_CASE(sources_of_different_lengths_are_no_mixture) {
  const Two two;
  std::vector<Dataset> data;
  data.push_back(read(two.a, 10));
  data.push_back(read(two.b, 20));
  BRAID_CHECK_FAILS(MixedOrder(std::move(data), {{{0, 1}}, {{0, 1}}}, kSeed), ErrorKind::misuse,
                    "source 1 has sequences of 20, the first one of 10");
}

BOOST_AUTO_TEST_SUITE_END()
