#include "braid/models/eval/document_tasks.h"

#include <boost/test/unit_test.hpp>

#include "tests/models/eval/support.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;
using namespace braid::models::eval;

BOOST_AUTO_TEST_SUITE(eval_document_tasks)

namespace {

using Item = models::eval::Document;

const models::text::ByteTokenizer kBytes;

Item document(const std::string& context, const std::vector<std::string>& choices, int64_t gold) {
  return {.contexts = std::vector<std::string>(choices.size(), context),
          .choices = choices,
          .gold = gold,
          .location = {"f", 1}};
}

SequenceScore scored(double logprob, std::vector<uint8_t> greedy = {1}) { return {logprob, std::move(greedy)}; }

std::string text_of(const Sequence& s) { return kBytes.decode(s.tokens); }

}  // namespace

// "ä" is one character and two bytes, so that the three ways to compare choose three different ones.
BOOST_AUTO_TEST_CASE(accuracies_by_hand) {
  PairEncoder encoder(kBytes, 64, 258);
  const std::vector<std::string> choices = {"ab", "\xC3\xA4\xC3\xA4\xC3\xA4", "wxyzw"};
  TaskTemplate form;
  std::vector<Item> documents = {document("c", choices, 0), document("c", choices, 1), document("c", choices, 2)};
  const auto task = make_document_task(form, documents, {}, 0, encoder);
  // log p: -2, -4.2, -6.5; by character: -1, -1.4, -1.3; by byte: -1, -0.7, -1.3
  const ItemScores scores = {scored(-2), scored(-4.2), scored(-6.5)};
  const std::vector<ItemScores> all(3, scores);
  const auto metrics = task->metrics(all);
  BOOST_TEST(metric(metrics, "acc") == 1.0 / 3);
  const auto verdict = task->verdict(1, scores);
  BOOST_TEST(verdict[0].second == 0.0);  // acc
  BOOST_TEST(verdict[1].second == 0.0);  // by characters: the first
  BOOST_TEST(verdict[2].second == 1.0);  // by bytes
  BOOST_TEST(metrics[0].error.value() == 1.0 / 3, boost::test_tools::tolerance(1e-12));
  // The first of equal ones.
  BOOST_TEST(task->verdict(0, {scored(-2), scored(-2), scored(-2)})[0].second == 1.0);
}

BOOST_AUTO_TEST_CASE(last_words_by_hand) {
  PairEncoder encoder(kBytes, 64, 258);
  TaskTemplate form{.kind = TaskKind::last_word, .delimiter = ""};
  const auto task = make_document_task(form, {document("a", {" b"}, 0), document("c", {" d"}, 0)}, {}, 0, encoder);
  const std::vector<ItemScores> scores = {{scored(-1, {1, 1})}, {scored(-3, {1, 0})}};
  const auto metrics = task->metrics(scores);
  BOOST_TEST(metric(metrics, "acc") == 0.5);
  BOOST_TEST(metric(metrics, "perplexity") == std::exp(2.0));
  BOOST_TEST(metrics[1].error.value() == std::exp(2.0));  // the error of the mean is 1
}

BOOST_AUTO_TEST_CASE(white_space_behind_the_delimiter_is_noted) {
  PairEncoder encoder(kBytes, 64, 258);
  TaskTemplate form;
  const std::vector<Item> items = {document("q", {" no", "yes"}, 1), document("q", {"\u00a0no", "yes"}, 0)};
  BOOST_TEST(make_document_task(form, items, {}, 0, encoder)->notes() ==
                 std::vector<std::string>{"2 choices begin with white space, and the delimiter ' ' stands before them: "
                                          "leave one of them out (delimiter = \"\" in a template)"},
             boost::test_tools::per_element());
  form.delimiter = "";
  BOOST_TEST(make_document_task(form, items, {}, 0, encoder)->notes().empty());
  form.delimiter = ":";
  BOOST_TEST(make_document_task(form, items, {}, 0, encoder)->notes().empty());
}

BOOST_AUTO_TEST_CASE(sequences_of_items_with_examples) {
  PairEncoder encoder(kBytes, 64, 258);
  TaskTemplate form;
  const std::vector<Item> documents = {document("q1", {"no", "yes"}, 1), document("q2 ", {"no", "yes"}, 0)};
  const auto task = make_document_task(form, documents, {.count = 1}, 0, encoder);
  BOOST_TEST(task->size() == 2);
  BOOST_TEST(text_of(task->sequences(0)[0]) == "q2  no\n\nq1 no");
  BOOST_TEST(text_of(task->sequences(1)[1]) == "q1 yes\n\nq2  yes");
  BOOST_TEST(std::ssize(task->sequences(1)[1].tokens) - task->sequences(1)[1].from == 5);
  BOOST_TEST(task->longest(1) == 15);
  BOOST_TEST(make_document_task(form, documents, {}, 1, encoder)->size() == 1);
  std::vector<Item> described = documents;
  for (Item& item : described) item.description = "about\n\n";
  const auto task_described = make_document_task(form, described, {.count = 1}, 0, encoder);
  BOOST_TEST(text_of(task_described->sequences(0)[0]) == "about\n\nq2  no\n\nq1 no");
  PairEncoder narrow(kBytes, 9, 258);
  const auto cut = make_document_task(form, documents, {.count = 1}, 0, narrow);
  BOOST_TEST(text_of(cut->sequences(0)[1]) == "o\n\nq1 yes");
  BOOST_TEST(cut->notes().at(0) == "4 contexts were cut from the left to fit the longest sequence");
  PairEncoder tiny(kBytes, 4, 258);
  BRAID_CHECK_FAILS(make_document_task(form, documents, {}, 0, tiny), ErrorKind::input,
                    "cannot score choice 1 of line 1 of f: expected a continuation of at most 3 tokens");
}

BOOST_AUTO_TEST_SUITE_END()
