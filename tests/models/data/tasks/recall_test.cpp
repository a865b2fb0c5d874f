#include "braid/models/data/tasks/recall.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <map>
#include <set>
#include <sstream>

#include "tests/support/throws.h"
using namespace braid;

BOOST_AUTO_TEST_SUITE(recall_tasks)

using models::text::TaskSample;
using models::text::TaskSet;
using models::text::Vocabulary;

namespace {

using Words = std::vector<std::string>;

Words words_of(const std::string& text) {
  std::istringstream in(text);
  Words words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

// The lists of a sample and what is said after them: "< a. b. >" -> "a", "b"
Words lists_of(const std::string& text) {
  Words lists;
  std::istringstream in(text.substr(1, text.size() - 4));
  for (std::string list; std::getline(in, list, '.');)
    if (list.size() > 1) lists.push_back(list.substr(1));
  return lists;
}

Words answers_of(const TaskSample& sample) {
  Words answers;
  for (const auto& a : sample.answers) answers.push_back(sample.text.substr(size_t(a.begin), size_t(a.end - a.begin)));
  return answers;
}

TaskSample recall(Vocabulary vocabulary, uint64_t seed, int64_t index) {
  return models::text::make_task_sample(vocabulary, seed, index, TaskSet::recall);
}

// The thing of each color in the list of a sample of the family color, its first one.
std::map<std::string, std::string> colors_of(const std::string& list) {
  std::map<std::string, std::string> things;
  std::istringstream in(list);
  for (std::string pair; std::getline(in, pair, ',');) {
    const Words words = words_of(pair);
    BOOST_REQUIRE_EQUAL(words.size(), 2u);
    things[words[0]] = words[1];
  }
  return things;
}

constexpr int64_t samples = 4000;

}  // namespace

BOOST_AUTO_TEST_CASE(each_answer_follows_from_its_list_and_differs_from_the_others_of_it) {
  std::map<std::string, std::map<std::string, std::string>> related;  // of a word: the same over all samples
  for (const Vocabulary vocabulary : {Vocabulary::train, Vocabulary::held_out}) {
    for (int64_t i = 0; i < samples; ++i) {
      const TaskSample sample = recall(vocabulary, 5, i);
      const Words all = lists_of(sample.text), answers = answers_of(sample);
      BOOST_REQUIRE_EQUAL(answers.size(), 12u);
      if (sample.task == "color") {
        const auto things = colors_of(all[0]);
        BOOST_REQUIRE_EQUAL(things.size(), 4u);
        for (size_t q = 0; q < 12; ++q) {
          const Words question = words_of(all[1 + q]);
          BOOST_REQUIRE_EQUAL(question[0], "The");
          BOOST_REQUIRE_EQUAL(things.at(question[1]), question[2]);
          BOOST_REQUIRE_EQUAL(answers[q], question[2]);
        }
        continue;
      }
      for (size_t k = 0; k < 3; ++k) {
        Words said = words_of(all[2 * k]);
        const Words told(answers.begin() + int64_t(4 * k), answers.begin() + int64_t(4 * k + 4));
        Words answer = words_of(all[2 * k + 1]);
        BOOST_REQUIRE_EQUAL(answer.size(), 5u);
        const std::string lead = answer[0];
        answer.erase(answer.begin());
        BOOST_REQUIRE(answer == told);
        BOOST_REQUIRE_EQUAL(std::set<std::string>(told.begin(), told.end()).size(), 4u);
        if (sample.task == "back") std::ranges::reverse(said);
        BOOST_REQUIRE_EQUAL(lead, sample.task == "again"   ? "Again:"
                                  : sample.task == "back"  ? "Back:"
                                  : sample.task == "kinds" ? "Kinds:"
                                                           : "Opposites:");
        if (sample.task == "again" || sample.task == "back") {
          BOOST_REQUIRE_MESSAGE(said == told, sample.text);
          continue;
        }
        for (size_t w = 0; w < 4; ++w) {
          const auto [at, first] = related[sample.task].emplace(said[w], told[w]);
          BOOST_REQUIRE_MESSAGE(at->second == told[w], said[w] << ": " << told[w] << ", earlier " << at->second);
        }
      }
    }
  }
  BOOST_TEST(related["kinds"].size() == 48u);
  BOOST_TEST(related["opposites"].size() == 24u);
  for (const auto& [a, b] : related["opposites"]) BOOST_TEST(related["opposites"][b] == a);
}

BOOST_AUTO_TEST_CASE(held_out_samples_are_not_among_those_of_training) {
  std::set<std::string> trained;
  for (int64_t i = 0; i < samples; ++i) trained.insert(recall(Vocabulary::train, 1, i).text);
  BOOST_TEST(trained.size() == size_t(samples));
  for (int64_t i = 0; i < samples; ++i) BOOST_TEST(!trained.contains(recall(Vocabulary::held_out, 1, i).text));
}

BOOST_AUTO_TEST_CASE(a_guess_among_the_answers_of_a_list_is_right_once_in_four) {
  // A guesser that always says what belongs to the first word of the list.
  int64_t right = 0, answers = 0;
  for (int64_t i = 0; i < samples; ++i) {
    const TaskSample sample = recall(Vocabulary::held_out, 2, i);
    const Words told = answers_of(sample);
    const std::string thing = sample.task == "color" ? words_of(sample.text)[2] : "";  // "< red fox, ..."
    for (size_t q = 0; q < 12; ++q, ++answers)
      right += sample.task == "color" ? told[q] + "," == thing : told[q] == told[4 * (q / 4)];
  }
  // 9600 of 48000 are drawn with probability 1/4, the others are 1 in 4: a standard deviation is 0.0009.
  BOOST_TEST(std::abs(double(right) / double(answers) - models::text::task_chance(TaskSet::recall)) < 0.005);
}

BOOST_AUTO_TEST_CASE(a_sample_is_a_function_of_seed_and_index_and_sets_have_names) {
  BOOST_TEST(recall(Vocabulary::train, 1, 9).text == recall(Vocabulary::train, 1, 9).text);
  BOOST_TEST(recall(Vocabulary::train, 1, 9).text != recall(Vocabulary::train, 2, 9).text);
  BOOST_TEST(models::text::task_count(TaskSet::recall) == 5);
  for (int i = 0; i < 5; ++i)
    BOOST_TEST(recall(Vocabulary::train, 1, i).task == models::text::task_name(i, TaskSet::recall));
  BOOST_TEST((models::text::parse_task_set("recall") == TaskSet::recall));
  BRAID_CHECK_FAILS(models::text::parse_task_set("recal"), ErrorKind::setting, "did you mean 'recall'");
}

BOOST_AUTO_TEST_SUITE_END()
