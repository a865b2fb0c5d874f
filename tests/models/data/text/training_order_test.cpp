// A run whose sequence length changes: every token and every sample of an epoch is read once.
#include "braid/models/data/text/training_order.h"

#include <boost/test/unit_test.hpp>
#include <map>

#include "braid/models/data/prepare/samples.h"
#include "tests/models/data/text/counted_data.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"
using namespace braid;
using namespace braid::models::text;
using models::EarlierLength;

BOOST_AUTO_TEST_SUITE(training_order)

namespace {

constexpr uint64_t kSeed = 9;

void make_counted(const TempFolder& folder, int32_t n) { test::make_counted(folder, 0, n); }

TrainingOrder order_of(const TempFolder& folder, int64_t T, const std::vector<EarlierLength>& earlier,
                       DocumentAttention documents = DocumentAttention::joined) {
  TrainingOrder order(Dataset(folder.path.string(), Split::train, T, {.documents = documents}), kSeed);
  if (!earlier.empty()) order.continue_after(earlier);
  return order;
}

Sequence read_one(const TrainingOrder& order, int64_t count) {
  const auto [data, index] = order.at(count);
  return data->sequence(index);
}

// Reads the sequences [first, last) and counts their targets.
void read_into(std::map<int32_t, int>& times, const TrainingOrder& order, int64_t first, int64_t last) {
  for (; first < last; ++first) {
    const Sequence s = read_one(order, first);
    BOOST_REQUIRE_EQUAL(std::ssize(s.ids), order.data().seq_len());
    for (size_t t = 0; t < s.ids.size(); ++t) {
      BOOST_REQUIRE_EQUAL(s.targets[t], s.ids[t] + 1);  // the last one of a stretch too
      ++times[s.targets[t]];
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(changes_within_an_epoch_neither_repeat_nor_skip_a_token) {
  TempFolder folder;
  constexpr int32_t kTokens = 251;
  make_counted(folder, kTokens);
  struct Case {
    std::vector<std::pair<int64_t, int64_t>> lengths;  // and sequences read at each
    int64_t last;
  };
  for (const Case& c : {Case{{{7, 11}}, 20}, Case{{{7, 11}, {20, 3}}, 5}, Case{{{20, 2}, {3, 17}, {40, 1}}, 9},
                        Case{{{8, 1}}, 16}, Case{{{16, 3}}, 8}}) {
    std::map<int32_t, int> times;
    std::vector<EarlierLength> earlier;
    int64_t count = 0, tokens = 0;
    for (const auto& [T, n] : c.lengths) {
      read_into(times, order_of(folder, T, earlier), count, count + n);
      earlier.push_back({T, n});
      count += n, tokens += n * T;
    }
    const TrainingOrder order = order_of(folder, c.last, earlier);
    const auto end = static_cast<int64_t>(order.count_of_epochs(1));
    BOOST_TEST(order.tokens(end) == tokens + (end - count) * c.last);
    read_into(times, order, count, end);
    for (const auto& [target, n] : times) BOOST_TEST(n == 1, "target " << target);
    BOOST_TEST(std::ssize(times) > kTokens - 1 - c.last);  // but for a remainder
    BOOST_TEST(order.tokens(end) == std::ssize(times));
    // The next epochs are those of a run that always had this length.
    const int64_t size = order.data().size();
    for (int64_t i = 0; i < 2 * size; ++i) {
      BOOST_REQUIRE(order.at(end + i).first == &order.data());
      BOOST_REQUIRE_EQUAL(order.at(end + i).second, Sampler(size, kSeed).index(1 + i / size, i % size));
    }
    BOOST_TEST(order.count_of_epochs(2.5) == static_cast<double>(end) + 1.5 * static_cast<double>(size));
    BRAID_CHECK_FAILS(order.at(count - 1), ErrorKind::misuse, "was read before the length changed");
  }
}

BOOST_AUTO_TEST_CASE(a_change_in_a_later_epoch_or_between_two) {
  TempFolder folder;
  make_counted(folder, 101);  // 10 sequences of 10
  const TrainingOrder between = order_of(folder, 25, {{10, 20}});
  BOOST_TEST(between.at(20).first == &between.data());
  BOOST_TEST(between.at(20).second == Sampler(4, kSeed).index(2, 0));
  BOOST_TEST(between.count_of_epochs(3) == 24);
  std::map<int32_t, int> times;
  read_into(times, order_of(folder, 10, {}), 30, 34);
  const TrainingOrder later = order_of(folder, 20, {{10, 34}});
  BOOST_TEST(later.count_of_epochs(4) == 37);
  read_into(times, later, 34, 37);
  BOOST_TEST(times.size() == 100u);
  BOOST_TEST(later.at(37).second == Sampler(5, kSeed).index(4, 0));
  // What is left is shorter than a sequence: the next epoch begins.
  const TrainingOrder none = order_of(folder, 50, {{10, 39}});
  BOOST_TEST(none.count_of_epochs(4) == 39);
  BOOST_TEST(none.at(39).second == Sampler(2, kSeed).index(4, 0));
}

BOOST_AUTO_TEST_CASE(a_document_begins_where_two_stretches_meet) {
  TempFolder folder;
  make_counted(folder, 251);
  const TrainingOrder order = order_of(folder, 20, {{7, 17}}, DocumentAttention::separate);
  int64_t meetings = 0;
  for (int64_t count = 17; count < static_cast<int64_t>(order.count_of_epochs(1)); ++count) {
    const Sequence s = read_one(order, count);
    for (size_t t = 0; t < s.ids.size(); ++t) {
      const bool begins = t == 0 || s.ids[t] != s.ids[t - 1] + 1;
      meetings += begins && t > 0;
      BOOST_REQUIRE_EQUAL(s.positions[t], begins ? 0 : s.positions[t - 1] + 1);
    }
  }
  BOOST_TEST(meetings > 0);
}

BOOST_AUTO_TEST_CASE(samples_that_were_read_are_not_packed_again) {
  TempFolder folder;
  std::string lines;
  for (int i = 0; i < 60; ++i)
    lines += "{\"prompt\": \"" + std::string(static_cast<size_t>(i % 9), 'p') + "?\", \"answer\": \"" +
             std::string(static_cast<size_t>(1 + i % 5), 'a') + "\"}\n";
  folder.write("in.jsonl", lines);
  PrepareOptions o{.inputs = {folder / "in.jsonl"}, .output = folder / "out", .val_fraction = 0};
  prepare_samples(o, {});
  for (const auto& [before, now] : {std::pair<int64_t, int64_t>{12, 30}, {30, 12}}) {  // 12: some samples are longer
    const TrainingOrder first(Dataset(folder / "out", Split::train, before), kSeed);
    const int64_t read = first.data().size() / 3;
    std::map<int64_t, int> times;
    for (int64_t i = 0; i < read; ++i)
      for (const int64_t sample : first.at(i).first->samples_of(first.at(i).second)) ++times[sample];
    const size_t samples_read = times.size();
    TrainingOrder order(Dataset(folder / "out", Split::train, now), kSeed);
    order.continue_after({{before, read}});
    const auto end = static_cast<int64_t>(order.count_of_epochs(1));
    for (int64_t i = read; i < end; ++i)
      for (const int64_t sample : order.at(i).first->samples_of(order.at(i).second)) ++times[sample];
    for (const auto& [sample, n] : times) BOOST_TEST(n == 1, "sample " << sample);
    BOOST_TEST(times.size() > samples_read);
    BOOST_TEST(std::ssize(times) >= 60 - (now == 12 ? order.data().sample_counts().too_long : 0));
    BOOST_TEST(order.data().fingerprint() == first.data().fingerprint());
  }
}

BOOST_AUTO_TEST_SUITE_END()
