#include "braid/models/eval/generate_task.h"

#include <bit>
#include <boost/test/unit_test.hpp>
#include <map>
#include <numeric>
#include <set>

#include "braid/models/eval/paired.h"
#include "braid/models/eval/score.h"
#include "braid/models/inference/generate.h"
#include "braid/models/inference/text_stream.h"
#include "braid/tensor/parallel.h"
#include "tests/models/eval/support.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;
using namespace braid::models::eval;

BOOST_AUTO_TEST_SUITE(eval_generate_task)

namespace {

const models::text::ByteTokenizer kByteIds;

std::vector<models::eval::Document> questions(int n) {
  std::vector<models::eval::Document> documents;
  for (int i = 0; i < n; ++i)
    documents.push_back({.contexts = {"Question " + std::string(static_cast<size_t>(3 * i % 11), 'a') + " is"},
                         .choices = {"12", "a dozen"},
                         .gold = 0,
                         .location = {"f.jsonl", i + 1}});
  return documents;
}

TaskTemplate generating(GenerateForm generate) {
  return {.name = "own.toml", .kind = TaskKind::generate, .generate = std::move(generate)};
}

std::unique_ptr<EvalTask> task_of(const GenerateForm& form, int n = 5, const Shots& shots = {}, int64_t longest = 64) {
  const PairEncoder encoder(kByteIds, longest, 258);
  return make_generate_task(generating(form), questions(n), shots, 0, encoder, {256});
}

ItemScores texts(const std::vector<std::string>& all) {
  ItemScores scores;
  for (const std::string& text : all) scores.push_back({.text = text});
  return scores;
}

std::map<int64_t, ItemScores> made(const models::LanguageModel& model, const EvalTask& task, int64_t sequences) {
  const auto engine = make_scoring_engine(model, sequences, 64);
  std::vector<int64_t> items(static_cast<size_t>(task.size()));
  std::iota(items.begin(), items.end(), 0);
  std::map<int64_t, ItemScores> scores;
  BOOST_TEST(score_items(*engine, task, items, 3 * sequences,
                         [&](int64_t item, const ItemScores& s) { BOOST_TEST(scores.emplace(item, s).second); }));
  return scores;
}

}  // namespace

BOOST_AUTO_TEST_CASE(answers_by_hand) {
  const auto task =
      task_of({.max_tokens = 8, .filter = Filters("first_match 'is ([0-9,]+)'", "x"), .rule = {.ignore_commas = true}});
  const auto verdict = task->verdict(0, texts({"it is 1,2 or 13"}));
  BOOST_REQUIRE(verdict.size() == 2u);
  BOOST_TEST(verdict[0].first == "exact_match");
  BOOST_TEST(verdict[0].second == 1.0);
  BOOST_TEST(verdict[1].first == "answered");
  BOOST_TEST(task->verdict(0, texts({"it is 13"}))[0].second == 0.0);
  BOOST_TEST(task->verdict(0, texts({"no idea"}))[1].second == 0.0);
  BOOST_TEST(task->answers(texts({"it is 1,2"}))[0].value() == "1,2");
  BOOST_TEST(!task->answers(texts({"?"}))[0].has_value());
  const std::vector<ItemScores> all = {texts({"is 12"}), texts({"is 13"}), texts({"a"}), texts({"is 12"}), texts({""})};
  const auto metrics = task->metrics(all);
  BOOST_TEST(metric(metrics, "exact_match") == 0.4);
  BOOST_TEST(metric(metrics, "answered") == 0.6);
  BOOST_TEST(metrics[0].error.value() == std::sqrt(0.3 / 5), boost::test_tools::tolerance(1e-12));
  // Any of the right answers counts.
  BOOST_TEST(task_of({.max_tokens = 8})->verdict(0, texts({"a dozen"}))[0].second == 1.0);
  BOOST_TEST(task_of({.max_tokens = 8, .rule = {.kind = MatchKind::contains}})->verdict(0, texts({"x 12"}))[0].first ==
             "contains");
  BOOST_TEST(task_of({.max_tokens = 8, .rule = {.kind = MatchKind::regex}})->verdict(0, texts({"x 12"}))[0].first ==
             "regex_match");
}

// 1 - C(n - c, k) / C(n, k), counted over all ways to choose k of n.
BOOST_AUTO_TEST_CASE(pass_at_k_by_counting) {
  for (const int64_t n : {1, 2, 5, 7})
    for (int64_t right = 0; right <= n; ++right)
      for (int64_t k = 1; k <= n; ++k) {
        int64_t ways = 0, passed = 0;
        for (int set = 0; set < 1 << n; ++set) {
          if (std::popcount(static_cast<unsigned>(set)) != k) continue;
          ++ways;
          passed += (set & ((1 << right) - 1)) != 0;
        }
        BOOST_TEST(pass_at(k, n, right) == static_cast<double>(passed) / static_cast<double>(ways),
                   boost::test_tools::tolerance(1e-12));
      }
  const auto task = task_of({.max_tokens = 8, .samples = 12, .temperature = 1});
  std::vector<std::string> all(12, "no");
  all[3] = all[7] = "12";
  const auto verdict = task->verdict(0, texts(all));
  BOOST_REQUIRE(verdict.size() == 5u);
  BOOST_TEST(verdict[0].second == 1.0 / 6);
  BOOST_TEST(verdict[1].first == "pass@1");
  BOOST_TEST(verdict[1].second == 1.0 / 6, boost::test_tools::tolerance(1e-12));
  BOOST_TEST(verdict[2].first == "pass@10");
  BOOST_TEST(verdict[2].second == 1 - 1.0 / 66, boost::test_tools::tolerance(1e-12));  // C(10, 10) / C(12, 10)
  BOOST_TEST(verdict[3].first == "pass@12");
  BOOST_TEST(verdict[3].second == 1.0);
}

BOOST_AUTO_TEST_CASE(prompts_with_examples) {
  const auto text = [](const EvalTask& task, int64_t item) { return kByteIds.decode(task.sequences(item)[0].tokens); };
  BOOST_TEST(text(*task_of({.max_tokens = 8}), 1) == "Question aaa is");
  const auto one = task_of({.max_tokens = 8}, 2, {.count = 1});
  BOOST_TEST(text(*one, 0) == "Question aaa is 12\n\nQuestion  is");
  BOOST_TEST(one->longest(0) == 40);
  BOOST_TEST(one->notes().empty());
  const auto cut = task_of({.max_tokens = 40}, 2, {.count = 1});
  BOOST_TEST(text(*cut, 0) == " aaa is 12\n\nQuestion  is");
  BOOST_TEST(cut->notes().at(0) == "2 prompts were cut from the left to leave room for max_tokens = 40");
  BRAID_CHECK_FAILS(task_of({.max_tokens = 64}), ErrorKind::setting,
                    "bad value for max_tokens of task own.toml: expected at most 63", "found 64");
  GenerateForm bad{.max_tokens = 8, .target_filter = Filters("after '#'", "x")};
  BRAID_CHECK_FAILS(task_of(bad), ErrorKind::input, "bad line 1 in f.jsonl: expected a text with '#', found '12'");
}

// Greedy and drawn, up to the first stop string.
BOOST_AUTO_TEST_CASE(texts_are_those_of_generate) {
  const models::Dcformer model = eval_model();
  const GenerateForm form{.stops = {"\xC3\xA9", "e"}, .max_tokens = 20, .samples = 3, .temperature = 1.5, .top_p = 0.9};
  const auto task = task_of(form, 5, {.seed = 7});
  std::set<std::string> different;
  for (const auto& [item, scores] : made(model, *task, 4)) {
    const std::vector<Sequence> sequences = task->sequences(item);
    BOOST_REQUIRE(scores.size() == 3u);
    for (size_t i = 0; i < 3; ++i) {
      models::TextStream stream(kByteIds, form.stops);
      std::string text;
      generate(model, sequences[i].tokens, 20,
               {.temperature = 1.5, .top_p = 0.9, .seed = sequences[i].seed, .vocabulary = 258}, {256},
               [&](int32_t token) {
                 text += stream.push(token);
                 return !stream.stopped();
               });
      text += stream.finish();
      BOOST_TEST(scores[i].text == text);
      different.insert(text);
    }
  }
  BOOST_TEST(different.size() > 10u);
  const auto other = task_of(form, 5, {.seed = 8});
  BOOST_TEST(other->sequences(0)[0].seed != task->sequences(0)[0].seed);
  BOOST_TEST(task->sequences(0)[0].seed != task->sequences(0)[1].seed);
  BOOST_TEST(task->sequences(0)[0].seed != task->sequences(1)[0].seed);
}

BOOST_AUTO_TEST_CASE(texts_do_not_depend_on_batch_or_threads) {
  const models::Dcformer model = eval_model();
  for (const GenerateForm& form : {GenerateForm{.max_tokens = 16},
                                   GenerateForm{.stops = {"a"}, .max_tokens = 16, .samples = 2, .temperature = 1}}) {
    const auto task = task_of(form, 7);
    const auto alone = made(model, *task, 1);
    BOOST_TEST(alone.size() == 7u);
    BOOST_TEST((made(model, *task, 6) == alone));
    const int before = threads();
    set_threads(before == 1 ? 2 : 1);
    BOOST_TEST((made(model, *task, 3) == alone));
    set_threads(before);
  }
}

BOOST_AUTO_TEST_CASE(two_models_are_compared_by_item) {
  const auto task = task_of({.max_tokens = 8}, 3);
  const std::vector<ItemScores> a = {texts({"12"}), texts({"no"}), texts({"no"})},
                                b = {texts({"12"}), texts({"12"}), texts({"no"})};
  const auto difference = paired_differences(*task, a, *task, b)[0];
  BOOST_TEST(difference.name == "exact_match");
  BOOST_TEST(difference.difference == 1.0 / 3, boost::test_tools::tolerance(1e-12));
  BOOST_TEST(difference.b_higher == 1);
  BOOST_TEST(difference.a_higher == 0);
}

BOOST_AUTO_TEST_SUITE_END()
