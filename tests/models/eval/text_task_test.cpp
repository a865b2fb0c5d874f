#include "braid/models/eval/text_task.h"

#include <boost/test/unit_test.hpp>

#include "tests/models/eval/support.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;
using namespace braid::models::eval;

BOOST_AUTO_TEST_SUITE(eval_text_task)

namespace {
const models::text::ByteTokenizer kBytes;
}

// Two texts, of 5 and 2 bytes, in windows of 3: each window's tokens have log p -1, -2, -3, -4.
BOOST_AUTO_TEST_CASE(perplexities_by_hand) {
  PairEncoder encoder(kBytes, 3, 258);
  const auto task = make_text_task({{"ab cd", "f"}, {"ef", "g"}}, encoder, 0, 0);
  BOOST_REQUIRE(task->size() == 4);
  BOOST_TEST(task->sequences(0)[0].tokens.at(0) == 256);
  BOOST_TEST(kBytes.decode(task->sequences(2)[0].tokens) == " cd");
  BOOST_TEST(task->sequences(2)[0].from == 2);
  BOOST_TEST(task->sequences(3)[0].tokens.at(0) == 256);
  std::vector<ItemScores> scores;
  for (int64_t i = 0; i < 4; ++i) {
    const Sequence s = task->sequences(i)[0];
    const int64_t n = std::ssize(s.tokens) - s.from;
    BOOST_TEST(task->longest(i) == std::ssize(s.tokens));
    scores.push_back({{-static_cast<double>(n * (i + 1)), std::vector<uint8_t>(static_cast<size_t>(n), 0)}});
  }
  // 2 + 2 + 1 + 2 tokens with -1, -2, -3, -4: LL = -17, of 7 tokens, 7 bytes and 3 words.
  const auto metrics = task->metrics(scores);
  const auto close = boost::test_tools::tolerance(1e-14);
  BOOST_TEST(metric(metrics, "token_perplexity") == std::exp(17.0 / 7), close);
  BOOST_TEST(metric(metrics, "byte_perplexity") == std::exp(17.0 / 7), close);
  BOOST_TEST(metric(metrics, "word_perplexity") == std::exp(17.0 / 3), close);
  BOOST_TEST(metric(metrics, "bits_per_byte") == 17.0 / 7 / std::log(2.0), close);
  BOOST_TEST(metric(metrics, "tokens") == 7.0);
  // By the ratio's formula: squares of 2 - 34/7, 4 - 34/7, 3 - 17/7, 8 - 34/7.
  double squares = 0;
  for (const double d : {2 - 34.0 / 7, 4 - 34.0 / 7, 3 - 17.0 / 7, 8 - 34.0 / 7}) squares += d * d;
  BOOST_TEST(metrics[0].error.value() == std::sqrt(4.0 / 3 * squares) / 7 / std::log(2.0), close);
  BOOST_TEST(make_text_task({{"ab cd", "f"}, {"ef", "g"}}, encoder, 1, 1)->size() == 4);
  // Words and bytes are those of the text before its filter.
  const auto filtered = make_text_task({{"ab", "f", " a  b "}}, encoder, 0, 0);
  const auto of_page = filtered->metrics(std::vector<ItemScores>{{{-2, {0, 0}}}});
  BOOST_TEST(metric(of_page, "token_perplexity") == std::exp(1.0), close);
  BOOST_TEST(metric(of_page, "byte_perplexity") == std::exp(2.0 / 6), close);
  BOOST_TEST(metric(of_page, "word_perplexity") == std::exp(2.0 / 4), close);
  BRAID_CHECK_FAILS(make_text_task({{"ab", "f"}}, encoder, 3, 0), ErrorKind::setting,
                    "bad value for `stride`: expected at most 2");
}

BOOST_AUTO_TEST_SUITE_END()
