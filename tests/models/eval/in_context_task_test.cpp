#include "braid/models/eval/in_context_task.h"

#include <boost/test/unit_test.hpp>
#include <fstream>

#include "tests/models/eval/support.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;
using namespace braid::models::eval;

namespace {

const models::text::ByteTokenizer kBytes;

struct Files {
  TempFolder folder;
  std::string write(const std::string& text) const {
    const std::string path = folder / "f.jsonl";
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
};

// Greedy where `right` says so, in the tokens from the first answer on.
ItemScores scores(const EvalTask& task, int64_t item, const std::string& right) {
  const Sequence s = task.sequences(item)[0];
  BOOST_REQUIRE_EQUAL(std::ssize(s.tokens) - s.from, std::ssize(right));
  SequenceScore score;
  for (const char c : right) score.greedy.push_back(c == '1');
  return {score};
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(eval_in_context_task, Files)

BOOST_AUTO_TEST_CASE(brackets_become_answers) {
  const auto samples =
      read_in_context_samples(write("{\"task_id\": \"task0\", \"texts\": \"\\n< Ann has tea. >. Ann has\\n< Bob has [ "
                                    "a pear ]\\n< x [ B\xC3\xBC ]\\n\"}\n\n"
                                    "{\"task\": \"t\", \"text\": \"ab cd\\n\", \"answers\": [[0, 2], [3, 5]]}"));
  BOOST_REQUIRE(samples.size() == 2u);
  BOOST_TEST(samples[0].task == "task0");
  BOOST_TEST(samples[0].text == "\n< Ann has tea. >. Ann has\n< Bob has a pear\n< x B\xC3\xBC\n");
  BOOST_REQUIRE(samples[0].answers.size() == 2u);
  const auto answer = [&](size_t i) {
    const models::text::ByteSpan& a = samples[0].answers[i];
    return samples[0].text.substr(static_cast<size_t>(a.begin), static_cast<size_t>(a.end - a.begin));
  };
  BOOST_TEST(answer(0) == "a pear");
  BOOST_TEST(answer(1) == "B\xC3\xBC");
  BOOST_TEST(samples[1].answers[1].begin == 3);
}

BOOST_AUTO_TEST_CASE(wrong_lines) {
  const auto rejects = [&](const std::string& line, const std::string& words) {
    const std::string path = write("{\"task_id\": \"a\", \"texts\": \"[ b ]\"}\n" + line);
    BRAID_CHECK_FAILS(read_in_context_samples(path), ErrorKind::input, "bad line 2 in " + path, words);
  };
  rejects(R"({"task_id": "a", "text": "[ b ]"})",
          "expected a string in the field 'texts', found the fields task_id, text");
  rejects(R"({"task_id": 1, "texts": "[ b ]"})", "a string in the field 'task_id'");
  rejects(R"({"task_id": "a", "texts": "b"})", "expected answers as '[ answer ]' in the field 'texts', found none");
  rejects(R"({"task_id": "a", "texts": "[ b\n ]"})", "expected an answer as '[ answer ]', found '[ b? ]'");
  rejects(R"({"task_id": "a", "texts": "[ b"})", "expected an answer as '[ answer ]'");
  rejects(R"({"task_id": "a", "texts": "[  ]"})", "expected an answer as '[ answer ]'");
  rejects(R"({"task": "a", "text": "b", "answers": []})", "found none");
  rejects(R"({"task": "a", "text": "b", "answers": [[0, 2]]})", "found [0,2]");
  rejects(R"({"task": "a", "text": "bcd", "answers": [[1, 2], [0, 1]]})", "found [0,1]");
}

// Two tasks: one with answers right, wrong | right, right; one with wrong (but its first token).
BOOST_AUTO_TEST_CASE(accuracy_by_hand) {
  PairEncoder encoder(kBytes, 64, 258);
  const std::vector<models::text::TaskSample> samples = {
      {"a", "x ab\ny c\n", {{2, 4}, {7, 8}}}, {"b", "x de\n", {{2, 4}}}, {"a", "x ab\ny c\n", {{2, 4}, {7, 8}}}};
  const auto task = make_in_context_task(samples, encoder);
  BOOST_REQUIRE(task->size() == 3);
  const std::vector<ItemScores> all = {scores(*task, 0, "1100000"), scores(*task, 1, "100"),
                                       scores(*task, 2, "1100010")};
  const auto metrics = task->metrics(all);
  BOOST_TEST(metric(metrics, "accuracy") == (0.75 + 0) / 2);
  BOOST_TEST(metric(metrics, "first_token_accuracy") == (0.75 + 1) / 2);
  BOOST_TEST(metric(metrics, "answer_accuracy") == 3.0 / 5);
  BOOST_TEST(metric(metrics, "tasks") == 2.0);
  BOOST_TEST(metric(metrics, "answers") == 5.0);
  BOOST_TEST(!metrics[0].error.has_value());  // one sample of task b
}

// The begin of long samples is lost, and the answers in it.
BOOST_AUTO_TEST_CASE(answers_that_do_not_fit) {
  PairEncoder encoder(kBytes, 6, 258);
  const std::vector<models::text::TaskSample> samples = {{"a", "x ab\ny c\n", {{2, 4}, {7, 8}}}};
  const auto task = make_in_context_task(samples, encoder);
  BOOST_TEST(kBytes.decode(task->sequences(0)[0].tokens) == "b\ny c\n");
  BOOST_TEST(task->sequences(0)[0].from == 4);
  BOOST_TEST(task->notes().at(0) == "1 of 2 answers do not fit the longest sequence and do not count");
  PairEncoder tiny(kBytes, 2, 258);
  BRAID_CHECK_FAILS(make_in_context_task(samples, tiny), ErrorKind::setting,
                    "no answer can be graded in sequences of 2 tokens");
}

BOOST_AUTO_TEST_SUITE_END()
