#include "braid/models/eval/encode_pair.h"

#include <boost/test/unit_test.hpp>

#include "tests/support/throws.h"

using namespace braid;
using namespace braid::models::eval;

BOOST_AUTO_TEST_SUITE(eval_encode_pair)

using models::text::ByteTokenizer;

namespace {
const ByteTokenizer kBytes;

std::string text_of(const Sequence& s) { return kBytes.decode(s.tokens); }
std::string scored(const Sequence& s) {
  return kBytes.decode(std::span(s.tokens).subspan(static_cast<size_t>(s.from)));
}
}  // namespace

BOOST_AUTO_TEST_CASE(the_continuation_begins_behind_the_context) {
  PairEncoder encoder(kBytes, 100, 258);
  const Sequence s = encoder.encode("The fox", " runs", "x");
  BOOST_TEST(text_of(s) == "The fox runs");
  BOOST_TEST(scored(s) == " runs");
  BOOST_TEST(encoder.cut_contexts() == 0);
}

// Also white space that is not ASCII, as Python's rstrip().
BOOST_AUTO_TEST_CASE(white_space_at_the_end_of_the_context_moves) {
  PairEncoder encoder(kBytes, 100, 258);
  BOOST_TEST(scored(encoder.encode("fox \n", "runs", "x")) == " \nruns");
  BOOST_TEST(scored(encoder.encode("fox\xC2\xA0", "runs", "x")) == "\xC2\xA0runs");
  BOOST_TEST(scored(encoder.encode("fox\x1F", "runs", "x")) == "\x1Fruns");
  BOOST_TEST(scored(encoder.encode("fo\xC3\xA4", "runs", "x")) == "runs");
  BOOST_TEST(scored(encoder.encode("fox\xA0", "runs", "x")) == "runs");  // no UTF-8
}

BOOST_AUTO_TEST_CASE(an_empty_context_is_the_prefix_token) {
  PairEncoder encoder(kBytes, 100, 258);
  for (const std::string empty : {"", "  "}) {
    const Sequence s = encoder.encode(empty, "runs", "x");
    BOOST_TEST(s.from == 1);
    BOOST_TEST(s.tokens.at(0) == 256);
    BOOST_TEST(scored(s) == empty + "runs");
  }
  // A continuation that begins with the prefix token has its own.
  const Sequence s = encoder.encode("", "<|endoftext|>runs", "x");
  BOOST_TEST(s.tokens.size() == 5u);
  BOOST_TEST(s.from == 1);
}

BOOST_AUTO_TEST_CASE(a_long_context_loses_its_begin) {
  PairEncoder encoder(kBytes, 8, 258);
  const Sequence s = encoder.encode("0123456789", "abc", "x");
  BOOST_TEST(text_of(s) == "56789abc");
  BOOST_TEST(scored(s) == "abc");
  BOOST_TEST(encoder.cut_contexts() == 1);
  BOOST_TEST(scored(encoder.encode("0", "abcdefg", "x")) == "abcdefg");
  BOOST_TEST(encoder.cut_contexts() == 1);
  BRAID_CHECK_FAILS(encoder.encode("0", "abcdefgh", "choice 1 of line 2 of f"), ErrorKind::input,
                    "cannot score choice 1 of line 2 of f: expected a continuation of at most 7 tokens");
  BRAID_CHECK_FAILS(encoder.encode("0", "", "x"), ErrorKind::input, "expected a continuation with a token of its own");
  BRAID_CHECK_FAILS(PairEncoder(kBytes, 1, 258), ErrorKind::setting, "expected sequences of 2 tokens or more");
}

BOOST_AUTO_TEST_CASE(ids_that_the_model_does_not_have) {
  PairEncoder encoder(kBytes, 8, 258);
  BRAID_CHECK_FAILS(PairEncoder(kBytes, 8, 200), ErrorKind::input, "expected token ids below 200");
  BRAID_CHECK_FAILS(encoder.encode_text("", "f.txt"), ErrorKind::input,
                    "cannot score f.txt: expected text, found none");
}

// Every token once, in windows that are full wherever there is text enough; the first begins with the prefix.
BOOST_AUTO_TEST_CASE(windows_score_every_token_once) {
  for (int64_t n = 1; n < 30; ++n)
    for (int64_t longest = 2; longest < 9; ++longest)
      for (int64_t stride = 1; stride < longest; ++stride) {
        std::vector<int32_t> tokens, seen;
        for (int32_t i = 0; i < n; ++i) tokens.push_back(i);
        const Windows windows(tokens, 99, longest, stride);
        for (int64_t w = 0; w < windows.size(); ++w) {
          const Sequence s = windows.at(w);
          BOOST_REQUIRE_EQUAL(std::ssize(s.tokens), windows.length(w));
          BOOST_REQUIRE_EQUAL(std::ssize(s.tokens) - s.from, windows.scored(w));
          BOOST_REQUIRE(s.from >= 1 && windows.scored(w) >= 1);
          BOOST_REQUIRE(windows.length(w) == longest || windows.size() == 1);
          BOOST_REQUIRE_EQUAL(s.tokens[0] == 99, w == 0);
          for (size_t i = 1; i < s.tokens.size(); ++i)  // neighbours of the text
            BOOST_REQUIRE_EQUAL(s.tokens[i], i == 1 && w == 0 ? 0 : s.tokens[i - 1] + 1);
          seen.insert(seen.end(), s.tokens.begin() + s.from, s.tokens.end());
        }
        BOOST_REQUIRE(seen == tokens);
      }
}

// Windows of 4 over 0 .. 7, as loglikelihood_rolling cuts them: the last one has a longer context.
BOOST_AUTO_TEST_CASE(disjoint_windows_by_hand) {
  const Windows windows({0, 1, 2, 3, 4, 5, 6, 7}, 99, 4, 3);
  BOOST_TEST(windows.size() == 3);
  BOOST_TEST(windows.at(0).tokens == (std::vector<int32_t>{99, 0, 1, 2}), boost::test_tools::per_element());
  BOOST_TEST(windows.at(1).tokens == (std::vector<int32_t>{2, 3, 4, 5}), boost::test_tools::per_element());
  BOOST_TEST(windows.at(2).tokens == (std::vector<int32_t>{4, 5, 6, 7}), boost::test_tools::per_element());
  BOOST_TEST(windows.at(1).from == 1);
  BOOST_TEST(windows.at(2).from == 2);
  BOOST_TEST(Windows({}, 99, 4, 3).size() == 0);
}

BOOST_AUTO_TEST_SUITE_END()
