// Pieces of text and their scores, from updates that are made by hand.
#include "apps/serve/api/choice.h"

#include <boost/test/unit_test.hpp>
#include <limits>
#include <nlohmann/json.hpp>

#include "apps/serve/api/api_error.h"
#include "apps/serve/api/responses.h"
#include "braid/tensor/base/utf8.h"
#include "braid/tensor/error.h"

using namespace braid;
using namespace braid::apps::serve;

BOOST_AUTO_TEST_SUITE(serve_choice)

using models::StopReason;
using models::TokenScore;
using models::Update;
using nlohmann::json;

namespace {

const models::text::ByteTokenizer kTokenizer;
using Ids = std::vector<int32_t>;

Update update_of(const Ids& tokens, bool scores = false) {
  Update update{.tokens = tokens};
  for (const int32_t token : tokens)
    if (scores) update.scores.push_back({token, -1.0 / 3, {{token, -1.0 / 3}}});
  return update;
}
Update end_of(StopReason reason) { return Update{.finished = true, .reason = reason}; }

}  // namespace

// S6: every sequence of up to three bytes, token by token, is valid UTF-8 in every piece, and whole it is the same.
BOOST_AUTO_TEST_CASE(no_piece_ends_inside_a_character) {
  const Ids prompt = {120};
  const int32_t bytes[] = {0x41, 0x7f, 0x80, 0xbf, 0xc2, 0xc3, 0xe2, 0x82,
                           0xac, 0xed, 0xa0, 0xf0, 0x9f, 0xf4, 0xff, 257};
  for (const int32_t a : bytes)
    for (const int32_t b : bytes)
      for (const int32_t c : bytes) {
        Choice choice(kTokenizer, prompt, {});
        std::string text;
        for (const int32_t token : {a, b, c}) {
          const Piece piece = choice.update(update_of({token}));
          BOOST_REQUIRE(detail::valid_utf8(piece.text));
          text += piece.text;
        }
        text += choice.update(end_of(StopReason::length)).text;
        BOOST_REQUIRE(text == detail::replace_invalid_utf8(kTokenizer.decode(Ids{a, b, c}, true)));
      }
}

BOOST_AUTO_TEST_CASE(the_text_ends_before_a_stop_string) {
  const Ids prompt = {120};
  Choice choice(kTokenizer, prompt, {.stops = {"END", "xyz"}});
  std::string text;
  for (const char c : std::string("aEExyENDb")) {
    if (choice.finished()) break;
    const Piece piece = choice.update(update_of({c}));
    text += piece.text;
    BOOST_TEST((piece.finish_reason != nullptr) == choice.finished());
    if (piece.finish_reason) BOOST_TEST(piece.finish_reason == "stop");
  }
  BOOST_TEST(choice.finished());
  BOOST_TEST(text == "aEExy");
  BOOST_TEST(choice.new_tokens() == 8);
  BOOST_TEST(choice.update(end_of(StopReason::caller)).empty());
}

BOOST_AUTO_TEST_CASE(every_end_has_a_reason) {
  const Ids prompt = {120};
  const std::pair<StopReason, std::string> reasons[] = {
      {StopReason::length, "length"}, {StopReason::context_full, "length"}, {StopReason::end_of_text, "stop"}};
  for (const auto& [reason, word] : reasons)
    BOOST_TEST(Choice(kTokenizer, prompt, {}).update(end_of(reason)).finish_reason == word);
  Update failed = end_of(StopReason::failed);
  failed.error = std::make_exception_ptr(Error(ErrorKind::numerical, "NaN"));
  BOOST_CHECK_THROW(Choice(kTokenizer, prompt, {}).update(failed), Error);
}

// N + m entries, the first of them null; offsets are characters; an end token has an entry and no text.
BOOST_AUTO_TEST_CASE(scores_of_prompt_and_text) {
  const Ids prompt = {'H', 0xc3, 0xa9, 'l'};  // "Hél"
  Choice choice(kTokenizer, prompt, {.scores = true, .echo = true});
  Update first = update_of({'o'}, true);
  const double infinity = std::numeric_limits<double>::infinity();
  first.prompt_scores = {
      {0xc3, -0.1, {{0xc3, -0.1}}}, {0xa9, -infinity, {{'a', -0.5}}}, {'l', -2, {{'m', -1}, {'l', -2}}}};
  Piece piece = choice.update(first);
  Update last = end_of(StopReason::end_of_text);
  last.scores = {{256, -0.7, {{0xff, -0.6}, {0xfe, -0.65}}}};
  piece.append(choice.update(last));
  BOOST_TEST(piece.text == "H\xc3\xa9lo");
  const ResponseWriter writer(kTokenizer, {.scores = true, .id = "cmpl-1", .created = 5, .model = "m"});
  const json answer = json::parse(writer.whole({piece}, {.prompt_tokens = 4, .completion_tokens = 1}));
  const json expected = json::parse(R"({"tokens": ["H", "\ufffd", "\ufffd", "l", "o", "<|endoftext|>"],
    "token_logprobs": [null, -0.1, -9999.0, -2.0, -0.3333333333333333, -0.7],
    "top_logprobs": [null, {"\ufffd": -0.1}, {"a": -0.5, "\ufffd": -9999.0}, {"m": -1.0, "l": -2.0},
                     {"o": -0.3333333333333333}, {"\ufffd": -0.6, "<|endoftext|>": -0.7}],
    "text_offset": [0, 1, 1, 2, 3, 4]})");
  BOOST_TEST(answer["choices"][0]["logprobs"] == expected);
  BOOST_TEST(answer["choices"][0]["finish_reason"] == "stop");
  BOOST_TEST(answer["usage"]["total_tokens"] == 5);
  BOOST_TEST(answer["id"] == "cmpl-1");
  // The digits read back to the same double.
  BOOST_TEST(answer["choices"][0]["logprobs"]["token_logprobs"][4].get<double>() == -1.0 / 3);
}

BOOST_AUTO_TEST_CASE(errors_in_a_stream_are_events) {
  const std::string event = ResponseWriter::error_event(ApiError(500, "it failed").body());
  BOOST_TEST(event.starts_with("data: {\"error\":{"));
  BOOST_TEST(event.ends_with("}\n\n"));
  BOOST_TEST(event.find('\n') == event.size() - 2);
}

// Bytes that turn out to be no character stand before the token that shows it.
BOOST_AUTO_TEST_CASE(offsets_behind_bytes_that_are_no_character) {
  const Ids prompt = {'a', 0xc3, 'b', 0xe2, 0x82, 'c'};
  Choice choice(kTokenizer, prompt, {.scores = true, .echo = true});
  Update first = update_of({0xc3, 'd', 0xc3, 0xa9, 'e'}, true);
  for (size_t i = 1; i < prompt.size(); ++i) first.prompt_scores.push_back({prompt[i], -1, {}});
  const Piece piece = choice.update(first);
  BOOST_TEST(piece.text == "a\uFFFDb\uFFFDc\uFFFDd\u00e9e");
  std::vector<int64_t> offsets;
  for (const ScoredToken& token : piece.scores) offsets.push_back(token.offset);
  BOOST_TEST(offsets == std::vector<int64_t>({0, 1, 2, 3, 3, 4, 5, 6, 7, 7, 8}), boost::test_tools::per_element());
}

// A special token that ends nothing has no text; an end stands behind bytes that are no character.
BOOST_AUTO_TEST_CASE(offsets_of_special_tokens) {
  const Ids prompt = {'x'};
  Choice choice(kTokenizer, prompt, {.scores = true});
  Piece piece = choice.update(update_of({'a', 257, 'b', 256, 0xe2, 0x82}, true));
  Update last = end_of(StopReason::end_of_text);
  last.scores = {{256, -1, {}}};
  piece.append(choice.update(last));
  BOOST_TEST(piece.text == "ab\uFFFD");
  std::vector<int64_t> offsets;
  for (const ScoredToken& token : piece.scores) offsets.push_back(token.offset);
  BOOST_TEST(offsets == std::vector<int64_t>({0, 1, 1, 2, 2, 2, 3}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
