#include "braid/models/data/tokenizers/training/merges.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "braid/tensor/parallel.h"
#include "tests/support/places.h"
#include "tests/support/throws.h"
using namespace braid;

BOOST_AUTO_TEST_SUITE(bpe_merges)

using models::text::BpeOptions;
using models::text::BpeVocabulary;
using models::text::CountedWord;
using models::text::train_merges;
using nlohmann::json;

namespace {

BpeOptions options_of(const json& o) {
  return {.vocab_size = o.at("vocab_size"),
          .min_frequency = o.value("min_frequency", 0),
          .special_tokens = o.value("special", std::vector<std::string>()),
          .initial_alphabet = o.value("alphabet", std::vector<std::string>()),
          .max_token_length = o.value("max_token_length", 0),
          .continuing_subword_prefix = o.value("prefix", ""),
          .end_of_word_suffix = o.value("suffix", "")};
}

}  // namespace

// 150 small sets of words with the results of the published trainer, all options.
BOOST_AUTO_TEST_CASE(the_published_trainer_gives_the_same_vocabulary_and_merges) {
  std::ifstream file(test::source_dir() + "/tests/golden/bpe/small.jsonl");
  int cases = 0;
  for (std::string line; std::getline(file, line); ++cases) {
    const json expected = json::parse(line);
    const auto counts = expected.at("words").get<std::map<std::string, int64_t>>();
    std::vector<CountedWord> words;
    for (const auto& [text, count] : counts) words.push_back({text, count});
    const BpeVocabulary found = train_merges(words, options_of(expected.at("options")));
    json vocab = json::object(), merges = json::array();
    for (size_t id = 0; id < found.tokens.size(); ++id) vocab[found.tokens[id]] = id;
    const auto token = [&](int32_t id) { return found.tokens[static_cast<size_t>(id)]; };
    for (const auto& [left, right] : found.merges) merges.push_back({token(left), token(right)});
    BOOST_TEST(vocab == expected.at("vocab"), line);
    BOOST_TEST(merges == expected.at("merges"), line);
  }
  BOOST_TEST(cases == 150);
}

BOOST_AUTO_TEST_CASE(threads_and_the_order_of_words_make_no_difference) {
  std::vector<std::string> texts;
  uint32_t state = 1;
  for (int i = 0; i < 20000; ++i) {
    texts.emplace_back();
    for (int length = 2 + i % 7; length > 0; --length)
      texts.back() += static_cast<char>('a' + (state = state * 1664525 + 1013904223) % 29 / 4);
  }
  std::vector<CountedWord> words;
  for (size_t i = 0; i < texts.size(); ++i) words.push_back({texts[i], static_cast<int64_t>(i % 5)});
  BpeOptions options{.vocab_size = 60};
  const int before = threads();
  set_threads(1);
  const BpeVocabulary one = train_merges(words, options);
  set_threads(3);
  std::reverse(words.begin(), words.end());
  const BpeVocabulary three = train_merges(words, options);
  set_threads(before);
  BOOST_TEST(one.tokens.size() == 60u);
  BOOST_TEST((one.tokens == three.tokens && one.merges == three.merges));
}

BOOST_AUTO_TEST_CASE(awkward_words_and_options) {
  BpeOptions options{.vocab_size = 3};
  const std::vector<CountedWord> words{{"aaaa", 3}, {"", 9}, {"é", 1}};
  const BpeVocabulary small = train_merges(words, options);
  BOOST_TEST((small.tokens == std::vector<std::string>{"a", "é", "aa"}));
  options.vocab_size = 0;  // the alphabet stays
  BOOST_TEST(train_merges(words, options).tokens.size() == 2u);
  options.vocab_size = 1000;  // until nothing is left to merge
  BOOST_TEST((train_merges(words, options).tokens == std::vector<std::string>{"a", "é", "aa", "aaaa"}));
  options.vocab_size = -1;
  BRAID_CHECK_FAILS(train_merges(words, options), ErrorKind::setting, "size of the vocabulary", "-1");
  options.vocab_size = 10;
  const std::vector<CountedWord> bad{{"a\xff", 1}}, negative{{"a", -1}};
  BRAID_CHECK_FAILS(train_merges(bad, options), ErrorKind::input, "UTF-8");
  BRAID_CHECK_FAILS(train_merges(negative, options), ErrorKind::setting, "negative");
  BOOST_TEST(train_merges({}, options).tokens.empty());
}

BOOST_AUTO_TEST_SUITE_END()
