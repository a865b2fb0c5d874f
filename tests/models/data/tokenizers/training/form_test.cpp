#include "braid/models/data/tokenizers/training/form.h"

#include <boost/test/unit_test.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "braid/models/data/prepare/count_words.h"
#include "tests/support/places.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"
using namespace braid;

BOOST_AUTO_TEST_SUITE(bpe_form)

using models::text::BpeForm;
using models::text::BpeVocabulary;
using models::text::CountedCorpus;
using models::text::WordCounts;
using nlohmann::json;

namespace {

const std::string golden = test::source_dir() + "/tests/golden/bpe/";

CountedCorpus counted(const BpeForm& form, size_t max_words = size_t{1} << 20) {
  models::text::TextSource source({golden + "text.txt.gz"}, {.require_utf8 = true});
  return models::text::count_words(source, form, max_words, [](const models::text::Piece&) {});
}

}  // namespace

// Plays, numbers, blanks, carriage returns and other scripts: merges of the published trainer on the same text.
BOOST_AUTO_TEST_CASE(a_text_gives_the_merges_of_the_published_trainer) {
  const json expected = json::parse(std::ifstream(golden + "text.json"));
  for (const char* name : models::text::bpe_forms) {
    const BpeForm form(name);
    const BpeVocabulary v = form.train(counted(form).counts, 800);
    std::vector<std::string> merges;
    for (const auto& [left, right] : v.merges)
      merges.push_back(v.tokens[static_cast<size_t>(left)] + " " + v.tokens[static_cast<size_t>(right)]);
    BOOST_TEST(merges == expected.at(name).get<std::vector<std::string>>(), boost::test_tools::per_element());
    BOOST_TEST(std::ssize(v.tokens) == (name == std::string("llama-3") ? 797 : 800));
  }
}

BOOST_AUTO_TEST_CASE(the_file_has_the_published_form) {
  TempFolder folder;
  for (const char* name : models::text::bpe_forms) {
    const BpeForm form(name);
    const BpeVocabulary v = form.train(counted(form).counts, 300);
    form.save(v, folder / "");
    const json root = json::parse(folder.read("tokenizer.json")),
               config = json::parse(folder.read("tokenizer_config.json"));
    const bool llama = name == std::string("llama-3");
    BOOST_TEST(root.at("model").at("vocab").size() == v.tokens.size());
    BOOST_TEST(root.at("model").at("merges").size() == v.merges.size());
    BOOST_TEST(root.at("model").at("ignore_merges") == llama);
    BOOST_TEST(root.at("normalizer").is_null() == llama);
    BOOST_TEST(root.at("added_tokens").size() == (llama ? 3u : 2u));
    BOOST_TEST(root.at("added_tokens")[0].at("id") == (llama ? 297 : 0));
    BOOST_TEST(config.at("eos_token") == (llama ? "<|end_of_text|>" : "<|endoftext|>"));
    BOOST_TEST(config.at("pad_token") == root.at("added_tokens").back().at("content"));
  }
  BRAID_CHECK_FAILS(BpeForm("gpt-neox").train({}, 257), ErrorKind::setting, "257 ids is too small", "258");
  BRAID_CHECK_FAILS(BpeForm("bert"), ErrorKind::setting, "gpt-neox", "llama-3", "bert");
}

BOOST_AUTO_TEST_CASE(rare_words_make_room_when_there_are_too_many) {
  WordCounts counts;
  for (int i = 0; i < 100; ++i) counts.add("word " + std::to_string(i), 1 + i / 10);
  BOOST_TEST(counts.keep_commonest(100) == 0);
  BOOST_TEST(counts.keep_commonest(40) == 70);  // 30 places, which are the counts 8, 9 and 10
  BOOST_TEST(counts.size() == 30u);
  BOOST_TEST(counts.sorted().front().text == "word 70");
  BOOST_TEST(counts.sorted().front().count == 8);
  counts.add("word 70", 2);
  BOOST_TEST(counts.sorted().front().count == 10);
  const BpeForm form("gpt-neox");
  const CountedCorpus all = counted(form), some = counted(form, 100);
  BOOST_TEST(all.dropped == 0);
  BOOST_TEST(some.counts.size() <= 75u);
  BOOST_TEST(some.dropped == static_cast<int64_t>(all.counts.size() - some.counts.size()));
}

BOOST_AUTO_TEST_SUITE_END()
