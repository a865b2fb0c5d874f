#include "braid/models/eval/score.h"

#include <boost/test/unit_test.hpp>
#include <map>
#include <numeric>

#include "braid/models/eval/document_tasks.h"
#include "braid/tensor/parallel.h"
#include "tests/models/eval/support.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;
using namespace braid::models::eval;

BOOST_AUTO_TEST_SUITE(eval_score)

namespace {

using Item = models::eval::Document;

const models::text::ByteTokenizer kBytes;

// Contexts of several lengths, some with a common begin.
std::unique_ptr<EvalTask> choice_task() {
  PairEncoder encoder(kBytes, 64, 258);
  std::vector<Item> documents;
  for (int i = 0; i < 9; ++i) {
    const std::string context = "Question " + std::string(static_cast<size_t>(5 * i % 31), 'a' + static_cast<char>(i));
    documents.push_back({.contexts = {context, context, context + "?"},
                         .choices = {"one", "a longer one", std::to_string(i)},
                         .gold = i % 3,
                         .location = {"f", i}});
  }
  return make_document_task(TaskTemplate{}, std::move(documents), {}, 0, encoder);
}

using Scores = std::map<int64_t, ItemScores>;

Scores score(const models::LanguageModel& model, const EvalTask& task, const std::vector<int64_t>& items,
             int64_t sequences, int64_t ahead, int64_t stop_after = -1) {
  const auto engine = make_scoring_engine(model, sequences, 64);
  Scores scores;
  const bool finished = score_items(
      *engine, task, items, ahead,
      [&](int64_t item, const ItemScores& s) { BOOST_TEST(scores.emplace(item, s).second); },
      [&] { return std::ssize(scores) == stop_after; });
  BOOST_TEST(finished == (stop_after < 0));
  BOOST_TEST(engine->load().waiting + engine->load().running == 0);
  return scores;
}

std::vector<int64_t> all_items(const EvalTask& task) {
  std::vector<int64_t> items(static_cast<size_t>(task.size()));
  std::iota(items.begin(), items.end(), 0);
  return items;
}

}  // namespace

BOOST_AUTO_TEST_CASE(scores_are_those_of_the_full_logits) {
  const models::Dcformer model = eval_model();
  const auto task = choice_task();
  const Scores scores = score(model, *task, all_items(*task), 4, 8);
  BOOST_REQUIRE(std::ssize(scores) == task->size());
  for (const auto& [item, found] : scores) {
    const std::vector<Sequence> sequences = task->sequences(item);
    BOOST_REQUIRE(found.size() == sequences.size());
    for (size_t i = 0; i < found.size(); ++i) {
      const SequenceScore expected = direct_score(model, sequences[i]);
      BOOST_TEST(found[i].logprob == expected.logprob, boost::test_tools::tolerance(1e-5));
      BOOST_TEST(found[i].greedy == expected.greedy, boost::test_tools::per_element());
    }
  }
}

// To the last bit, whatever is computed together, also where only some items are left.
BOOST_AUTO_TEST_CASE(scores_do_not_depend_on_batch_order_or_threads) {
  const models::Dcformer model = eval_model();
  const auto task = choice_task();
  const Scores alone = score(model, *task, all_items(*task), 1, 1);
  BOOST_TEST((score(model, *task, all_items(*task), 3, 7) == alone));
  BOOST_TEST((score(model, *task, all_items(*task), 16, 64) == alone));
  const int before = threads();
  set_threads(before == 1 ? 2 : 1);
  BOOST_TEST((score(model, *task, all_items(*task), 5, 20) == alone));
  set_threads(before);
  const Scores some = score(model, *task, {7, 2}, 4, 8);
  BOOST_TEST(some.size() == 2u);
  BOOST_TEST((some.at(2) == alone.at(2)));
  BOOST_TEST((some.at(7) == alone.at(7)));
}

BOOST_AUTO_TEST_CASE(a_stop_leaves_nothing_in_the_engine) {
  const models::Dcformer model = eval_model();
  const auto task = choice_task();
  const Scores first = score(model, *task, all_items(*task), 1, 4, 3);
  BOOST_TEST(first.size() == 3u);
  const Scores alone = score(model, *task, all_items(*task), 1, 1);
  for (const auto& [item, scores] : first) BOOST_TEST((scores == alone.at(item)));
}

BOOST_AUTO_TEST_CASE(logits_that_are_not_finite_name_the_item) {
  models::Dcformer model = eval_model();
  for (nn::NamedTensor& p : nn::parameters(model))
    if (p.name == "output.weight") p.value.detach().fill(std::numeric_limits<float>::quiet_NaN());
  const auto task = choice_task();
  models::GenerationEngine engine(model, {.sequences = 2, .positions = 128});
  BRAID_CHECK_FAILS(score_items(engine, *task, std::vector<int64_t>{4}, 8, [](int64_t, const ItemScores&) {}),
                    ErrorKind::numerical, "cannot score item 4: ");
}

BOOST_AUTO_TEST_SUITE_END()
