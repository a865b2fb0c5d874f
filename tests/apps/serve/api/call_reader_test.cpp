// Calls in the text of an answer, in pieces of any size.
#include "apps/serve/api/call_reader.h"

#include <boost/test/unit_test.hpp>

#include "apps/serve/api/choice.h"

using namespace braid;
using namespace braid::apps::serve;

BOOST_AUTO_TEST_SUITE(serve_call_reader)

namespace {

const models::text::CallMarks kMarks{"<tool_call>\n", "\n</tool_call>"};

struct ReadAnswer {
  std::string text;
  std::vector<CallPart> calls;  // whole
  int64_t complete = 0;
  bool stopped = false;
};

ReadAnswer read_answer(const std::string& answer, size_t step, std::vector<std::string> stops = {}) {
  CallReader reader({kMarks, std::move(stops), "call_7_"});
  ReadAnswer result;
  Piece all;
  for (size_t at = 0; at < answer.size(); at += step) {
    Piece piece;
    piece.text = reader.push(answer.substr(at, step), piece.calls);
    for (const CallPart& part : piece.calls) BOOST_TEST((part.id.empty() == part.name.empty()));
    all.append(std::move(piece));
  }
  all.text += reader.finish();
  return {all.text, all.calls, reader.complete(), reader.stopped()};
}

}  // namespace

BOOST_AUTO_TEST_CASE(text_and_calls_are_told_apart) {
  const std::string answer =
      "Let me <tool_ see.\n<tool_call>\n{\"name\": \"find\", \"arguments\": {\"q\": \"}\\\"{]\", \"n\": [1, {}]} "
      "}\n</tool_call>\n"
      "<tool_call>\n{ \"name\" : \"arguments\" ,\n \"arguments\":{}}\n</tool_call>";
  for (size_t step = 1; step <= answer.size(); step += 1 + step / 8) {
    const ReadAnswer read = read_answer(answer, step);
    BOOST_TEST(read.text == "Let me <tool_ see.\n");
    BOOST_TEST_REQUIRE(read.calls.size() == 2u);
    BOOST_TEST(read.complete == 2);
    BOOST_TEST(read.calls[0].name == "find");
    BOOST_TEST(read.calls[0].id == "call_7_0000");
    BOOST_TEST(read.calls[0].arguments == R"({"q": "}\"{]", "n": [1, {}]})");
    BOOST_TEST(read.calls[1].name == "arguments");
    BOOST_TEST(read.calls[1].id == "call_7_0001");
    BOOST_TEST(read.calls[1].arguments == "{}");
  }
}

BOOST_AUTO_TEST_CASE(answers_without_a_whole_call) {
  for (const size_t step : {1u, 3u, 100u}) {
    BOOST_TEST(read_answer("no call <tool_cal", step).text == "no call <tool_cal");
    const ReadAnswer head = read_answer("<tool_call>\n{\"name\": \"f", step);
    BOOST_TEST(head.text.empty());
    BOOST_TEST(head.calls.empty());
    const ReadAnswer part = read_answer("<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"b", step);
    BOOST_TEST_REQUIRE(part.calls.size() == 1u);
    BOOST_TEST(part.calls[0].arguments == "{\"a\": \"b");
    BOOST_TEST(part.complete == 0);
  }
}

// Stop strings end text, and do not count in calls: the first of both decides.
BOOST_AUTO_TEST_CASE(stop_strings_end_the_text) {
  for (const size_t step : {1u, 2u, 100u}) {
    const ReadAnswer stopped = read_answer("one\ntwo<tool_call>\n{}", step, {"\n"});
    BOOST_TEST(stopped.text == "one");
    BOOST_TEST(stopped.stopped);
    const ReadAnswer called =
        read_answer("one<tool_call>\n{\"name\": \"f\", \"arguments\":\n{}}\n</tool_call>", step, {"\n"});
    BOOST_TEST(called.text == "one");
    BOOST_TEST(!called.stopped);
    BOOST_TEST(called.complete == 1);
    const ReadAnswer almost = read_answer("one<tool_call>x\ny", step, {"\n"});
    BOOST_TEST(almost.text == "one<tool_call>x");
    BOOST_TEST(almost.stopped);
  }
}

BOOST_AUTO_TEST_SUITE_END()
