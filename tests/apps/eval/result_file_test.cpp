#include "apps/eval/result_file.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "tests/apps/support.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::apps;
using namespace braid::test;
using models::eval::ItemScores;
using models::eval::Metric;
using models::eval::Sequence;

namespace {

// Items of two sequences with one and two scored tokens.
class TwoSequences final : public models::eval::EvalTask {
 public:
  int64_t size() const override { return 4; }
  std::vector<Sequence> sequences(int64_t) const override { return {{{1, 2}, 1}, {{1, 2, 3}, 1}}; }
  int64_t longest(int64_t) const override { return 3; }
  std::vector<std::pair<std::string, double>> verdict(int64_t, const ItemScores& s) const override {
    return {{"acc", s[0].logprob > s[1].logprob}};
  }
  std::vector<Metric> metrics(std::span<const ItemScores>) const override { return {}; }
};

ItemScores scores(int64_t item) {
  return {{-0.1 / static_cast<double>(item + 3), {1}}, {item == 2 ? -INFINITY : -1e-300, {0, 1}}};
}

struct Files {
  Scratch scratch;
  TwoSequences task;
  std::string path = (scratch / "r.jsonl").string();
  Fingerprint print = {{"model", "12"}, {"task", "a"}};
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(eval_result_file, Files)

// Killed behind any byte, the file holds its complete lines, and ends as one written at a stretch.
BOOST_AUTO_TEST_CASE(a_file_cut_anywhere_is_gone_on_with) {
  {
    ResultFile file(path, print, task);
    for (const int64_t item : {2, 0, 3, 1}) file.add(item, scores(item));
  }
  const std::string whole = slurp(path);
  std::string ordered;
  for (size_t cut = 0; cut <= whole.size(); ++cut) {
    write(path, whole.substr(0, cut));
    ResultFile file(path, print, task);
    const auto lines = std::count(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(cut), '\n');
    BOOST_REQUIRE_EQUAL(file.resumed(), std::max<int64_t>(lines - 1, 0));
    BOOST_REQUIRE_EQUAL(std::ssize(file.missing()), 4 - file.resumed());
    for (const int64_t item : file.missing()) file.add(item, scores(item));
    const std::vector<ItemScores> all = file.finish();
    for (int64_t item = 0; item < 4; ++item) BOOST_REQUIRE(all[static_cast<size_t>(item)] == scores(item));
    if (ordered.empty()) ordered = slurp(path);
    BOOST_REQUIRE_EQUAL(slurp(path), ordered);
  }
  BOOST_TEST(ordered.starts_with("{\"braid_eval\":{\"model\":\"12\",\"task\":\"a\"}}\n{\"item\":0,\"acc\":"), ordered);
}

BOOST_AUTO_TEST_CASE(without_a_path_nothing_is_written) {
  ResultFile file("", print, task);
  for (int64_t item = 0; item < 4; ++item) file.add(item, scores(item));
  BOOST_TEST(file.missing().empty());
  BOOST_TEST(file.finish().size() == 4u);
}

BOOST_AUTO_TEST_CASE(results_of_something_else) {
  { ResultFile file(path, print, task); }
  const Fingerprint other = {{"model", "13"}, {"task", "a"}};
  BRAID_CHECK_FAILS(ResultFile(path, other, task), ErrorKind::setting,
                    "holds results of something else: expected model = 13, found 12; give "
                    "another folder with --out, or remove " +
                        path);
  const Fingerprint more = {{"model", "12"}, {"task", "a"}, {"shots", "2"}};
  BRAID_CHECK_FAILS(ResultFile(path, more, task), ErrorKind::setting, "expected shots = 2, found none");
}

BOOST_AUTO_TEST_CASE(damaged_lines) {
  { ResultFile file(path, print, task); }
  const std::string head = slurp(path);
  const auto rejects = [&](const std::string& text, const std::string& words) {
    write(path, text);
    BRAID_CHECK_FAILS(ResultFile(path, print, task), ErrorKind::input, words);
  };
  const std::string good = R"({"item":0,"logprobs":[-1,-2],"greedy":["1","01"]})";
  rejects("{}\n", "bad line 1 in " + path + ": expected the head of a file of results, found {}");
  rejects(head + "{\n", "cannot read JSON");
  rejects(head + good + "\n" + good + "\n", "bad line 3 in " + path + ": expected an item from 0 to 3, each once");
  rejects(head + R"({"item":4,"logprobs":[-1,-2],"greedy":["1","01"]})" + "\n", "expected an item from 0 to 3");
  rejects(head + R"({"item":0,"logprobs":[-1],"greedy":["1","01"]})" + "\n", "expected the scores of item 0");
  rejects(head + R"({"item":0,"logprobs":[-1,-2],"greedy":["1","0"]})" + "\n", "expected the scores of item 0");
  rejects(head + R"({"item":0,"logprobs":[-1,-2],"greedy":["1","02"]})" + "\n", "expected the scores of item 0");
  rejects(head + R"({"item":0,"logprobs":[-1,"x"],"greedy":["1","01"]})" + "\n", "expected the scores of item 0");
}

BOOST_AUTO_TEST_CASE(texts_of_a_task_that_generates) {
  class TwoTexts final : public models::eval::EvalTask {
   public:
    int64_t size() const override { return 1; }
    std::vector<Sequence> sequences(int64_t) const override { return {{{1}, 1}, {{1}, 1}}; }
    int64_t longest(int64_t) const override { return 2; }
    const models::eval::Continuation* continuation() const override { return &how_; }
    std::vector<std::optional<std::string>> answers(const ItemScores& s) const override {
      return {s[0].text.substr(1), std::nullopt};
    }
    std::vector<std::pair<std::string, double>> verdict(int64_t, const ItemScores&) const override { return {}; }
    std::vector<Metric> metrics(std::span<const ItemScores>) const override { return {}; }

   private:
    models::eval::Continuation how_;
  };
  const TwoTexts writer;
  const ItemScores made = {{.text = "\n\"\u00e9"}, {.text = ""}};
  std::string head;
  {
    ResultFile file(path, print, writer);
    head = slurp(path);
    file.add(0, made);
  }
  BOOST_TEST(slurp(path) ==
             head + "{\"item\":0,\"texts\":[\"\\n\\\"\u00e9\",\"\"],\"answers\":[\"\\\"\u00e9\",null]}\n");
  ResultFile file(path, print, writer);
  BOOST_TEST(file.missing().empty());
  BOOST_TEST((file.finish()[0] == made));
  for (const char* bad : {R"({"item":0,"texts":["a"]})", R"({"item":0,"texts":["a",1]})", R"({"item":0})"}) {
    write(path, head + bad + "\n");
    BRAID_CHECK_FAILS(ResultFile(path, print, writer), ErrorKind::input, "expected the scores of item 0");
  }
}

BOOST_AUTO_TEST_SUITE_END()
