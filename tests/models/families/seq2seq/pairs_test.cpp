// Pairs of sequences that the program makes: right answers, disjoint splits, the same at every call.
#include "braid/models/families/seq2seq/pairs.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <set>

#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(pairs)

using models::Pair, models::PairTask, models::text::Split;

namespace {

// Days from the first of January 1950, counted month by month.
int day_number(const std::string& date) {
  const int y = std::stoi(date.substr(0, 4)), m = std::stoi(date.substr(5, 2)), d = std::stoi(date.substr(8, 2));
  const auto leap = [](int year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); };
  const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  int n = d - 1;
  for (int year = 1950; year < y; ++year) n += leap(year) ? 366 : 365;
  for (int month = 1; month < m; ++month) n += lengths[month - 1] + (month == 2 && leap(y));
  return n;
}

}  // namespace

BOOST_AUTO_TEST_CASE(answers_are_right) {
  int days_of_year = 0, weekdays = 0, short_years = 0;
  for (int64_t i = 0; i < 3000; ++i) {
    const Pair date = PairTask("dates").pair(Split::train, i);
    BOOST_TEST_CONTEXT(date.source << " -> " << date.target) {
      BOOST_TEST(date.target.size() == 10u);
      const int n = day_number(date.target);
      if (date.source.starts_with("day ")) {
        ++days_of_year;
        const std::string year = date.source.substr(date.source.size() - 4);
        BOOST_TEST(year == date.target.substr(0, 4));
        BOOST_TEST(std::stoi(date.source.substr(4)) == n - day_number(year + "-01-01") + 1);
      } else if (const size_t comma = date.source.find(", the "); comma != std::string::npos) {
        ++weekdays;
        const char* names[] = {"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"};
        BOOST_TEST(date.source.substr(0, comma) == names[n % 7]);  // the first day of 1950 was a sunday
        BOOST_TEST(std::stoi(date.source.substr(comma + 6)) == std::stoi(date.target.substr(8)));
      } else if (std::count(date.source.begin(), date.source.end(), '.') == 2) {
        ++short_years;
        const size_t dot = date.source.find('.');
        BOOST_TEST(std::stoi(date.source) == std::stoi(date.target.substr(8)));
        BOOST_TEST(std::stoi(date.source.substr(dot + 1)) == std::stoi(date.target.substr(5)));
        BOOST_TEST(date.source.substr(date.source.size() - 2) == date.target.substr(2, 2));
      }
    }
    const Pair sorted = PairTask("sort").pair(Split::train, i), backwards = PairTask("reverse").pair(Split::train, i);
    std::string expected = sorted.source;
    std::sort(expected.begin(), expected.end());
    BOOST_TEST(sorted.target == expected);
    BOOST_TEST(backwards.target == std::string(backwards.source.rbegin(), backwards.source.rend()));
    BOOST_TEST((backwards.source.size() >= 8 && backwards.source.size() <= 16));
  }
  BOOST_TEST(days_of_year > 600);
  BOOST_TEST(weekdays > 250);
  BOOST_TEST(short_years > 250);
}

BOOST_AUTO_TEST_CASE(validation_has_answers_of_its_own) {
  for (const std::string& name : models::pair_task_names()) {
    const PairTask task(name);
    std::set<std::string> answers, sources;
    for (int64_t i = 0; i < task.size(Split::val); ++i) {
      const Pair p = task.pair(Split::val, i);
      answers.insert(p.target), sources.insert(p.source);
      BOOST_TEST(std::ssize(p.source) < task.source_length());
      BOOST_TEST(std::ssize(p.target) < task.target_length());
    }
    BOOST_TEST(sources.size() > 1500u);
    for (int64_t i = 0; i < 20'000; ++i)
      if (answers.contains(task.pair(Split::train, i).target)) BOOST_ERROR("an answer of both splits in " << name);
    const Pair again = PairTask(name).pair(Split::train, 77);
    BOOST_TEST(again.source == task.pair(Split::train, 77).source);
  }
}

// A run resumes on the same samples only.
BOOST_AUTO_TEST_CASE(pairs_stay_what_they_are) {
  BOOST_TEST(PairTask("dates").fingerprint() == "06305fb2ab88881a");
  BOOST_TEST(PairTask("sort").fingerprint() == "d3f61964658bb402");
  BOOST_TEST(PairTask("reverse").fingerprint() == "229c3eda234ae59d");
}

BOOST_AUTO_TEST_CASE(batches_teach_the_next_symbol) {
  const PairTask task("dates");
  const models::Batch batch = pair_batch(task, Split::val, {3, 4});
  const std::vector<int32_t> source = batch.at("source_ids").to_vector<int32_t>();
  const std::vector<int32_t> input = batch.at("input_ids").to_vector<int32_t>();
  const std::vector<int32_t> target = batch.at("targets").to_vector<int32_t>();
  BOOST_TEST((batch.at("source_ids").shape() == Shape{2, task.source_length()}));
  const int64_t T = task.target_length();
  for (int64_t b = 0; b < 2; ++b) {
    const Pair pair = task.pair(Split::val, 3 + b);
    const std::vector<int32_t> row(source.begin() + b * task.source_length(),
                                   source.begin() + (b + 1) * task.source_length());
    BOOST_TEST((row == models::encode_source(pair.source, task.source_length())));
    BOOST_TEST(models::decode_symbols(row) == pair.source);
    BOOST_TEST(models::decode_symbols({target.begin() + b * T, target.begin() + (b + 1) * T}) == pair.target);
    BOOST_TEST(input[static_cast<size_t>(b * T)] == models::kPairBegin);
    for (int64_t t = 1; t < T; ++t)
      BOOST_TEST(input[static_cast<size_t>(b * T + t)] == target[static_cast<size_t>(b * T + t - 1)]);
    BOOST_TEST(target[static_cast<size_t>((b + 1) * T - 1)] == models::kPairEnd);
  }
  const std::vector<int64_t> lengths = models::source_lengths_of(batch.at("source_ids")).to_vector<int64_t>();
  for (int64_t b = 0; b < 2; ++b)
    BOOST_TEST(lengths[static_cast<size_t>(b)] == std::ssize(task.pair(Split::val, 3 + b).source) + 1);
  BOOST_TEST((models::source_lengths_of(batch.at("source_ids").sliced(1, 0, 3)).to_vector<int64_t>() ==
              std::vector<int64_t>{3, 3}));  // no end
  // Behind the end of a shorter target nothing is counted.
  const PairTask sort("sort");
  int64_t index = 0;
  while (sort.pair(Split::val, index).target.size() != 8) ++index;
  const models::Batch one = pair_batch(sort, Split::val, {index});
  const std::vector<int32_t> counted = one.at("targets").to_vector<int32_t>();
  BOOST_TEST(counted[8] == models::kPairEnd);
  BOOST_TEST(counted[9] == -1);
  BOOST_TEST(one.at("input_ids").to_vector<int32_t>()[9] == models::kPairFill);
}

BOOST_AUTO_TEST_CASE(bad_names_and_sources) {
  BOOST_TEST(!PairTask::of_path("out/pairs"));
  BOOST_TEST(PairTask::of_path("pairs:sort")->name() == "sort");
  BOOST_TEST(throws_with([] { PairTask::of_path("pairs:sorted"); }, "did you mean 'sort'?"));
  BOOST_TEST(throws_with([] { models::encode_source("March", 10); }, "the character 'M'"));
  BOOST_TEST(throws_with([] { models::encode_source("march", 5); }, "at most 4 characters, found 5"));
}

BOOST_AUTO_TEST_SUITE_END()
