// Tokenizers in GGUF files and back.
#include "braid/models/folders/gguf/tokenizer.h"

#include <boost/test/unit_test.hpp>

#include "tests/models/data/tokenizers/fixtures.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(gguf_tokenizers)

namespace {

std::unique_ptr<models::text::Tokenizer> through_metadata(const models::text::Tokenizer& tokenizer, int64_t size) {
  TempFolder folder;
  io::write_gguf(folder / "t.gguf", models::gguf::write_tokenizer(tokenizer, size), {});
  return models::text::tokenizer_of_files(models::gguf::read_tokenizer(io::GgufFile(folder / "t.gguf")), "t.gguf");
}

}  // namespace

// Ids of all fixtures, with and without special tokens. The format has no word for a space that Metaspace puts before a
// text only where there is none: those texts, and texts behind a special token, are left out.
BOOST_AUTO_TEST_CASE(tokenizers_survive_a_file) {
  const std::vector<nlohmann::json> lines = golden_lines("strings.jsonl");
  for (const std::string name : {"gpt2", "neox", "llama3", "qwen2", "smollm", "llama2", "llama2_metaspace"}) {
    BOOST_TEST_CONTEXT(name) {
      const std::string text = golden_text(name + "/tokenizer.json");
      const auto given = models::text::tokenizer_of_files({{"tokenizer.json", text}}, name);
      const auto read = through_metadata(*given, given->vocab_size() + 3);
      int different = 0;
      for (const nlohmann::json& line : lines) {
        const auto string = line.at("t").get<std::string>();
        for (const bool specials : {false, true}) {
          if (name == "llama2_metaspace" && (specials || string.starts_with(" ") || string.starts_with("\u2581")))
            continue;
          const auto ids = given->encode(string, specials);
          different += read->encode(string, specials) != ids || read->decode(ids) != given->decode(ids);
        }
      }
      BOOST_TEST(lines.size() > 100u);
      BOOST_TEST(different == 0);
      BOOST_TEST(models::text::template_begin(*read) == models::text::template_begin(*given));
      BOOST_TEST(read->eos_id() == given->eos_id());
    }
  }
  // A part that is not there is one that is null.
  nlohmann::json sparse = nlohmann::json::parse(golden_text("gpt2/tokenizer.json"));
  BOOST_TEST(sparse.at("normalizer").is_null());
  sparse.erase("normalizer");
  const auto given = models::text::tokenizer_of_files({{"tokenizer.json", sparse.dump()}}, "gpt2");
  BOOST_TEST(through_metadata(*given, given->vocab_size())->encode("caf\u00e9 1.5", false) ==
             given->encode("caf\u00e9 1.5", false));
  const models::text::ByteTokenizer bytes;
  const auto read = through_metadata(bytes, 258);
  BOOST_TEST(read->encode("a\u00e9 \n<|endoftext|>", true) == bytes.encode("a\u00e9 \n<|endoftext|>", true));
  BOOST_TEST(read->eos_id() == 256);
  BOOST_TEST(read->pad_id() == 257);
  const auto piece =
      models::text::tokenizer_of_files({{"tokenizer.json", golden_text("unigram_t5/tokenizer.json")}}, "unigram_t5");
  BRAID_CHECK_FAILS(models::gguf::write_tokenizer(*piece, 1000), ErrorKind::setting, "cannot hold this tokenizer");
}

BOOST_AUTO_TEST_CASE(ends_and_the_chat_template_survive) {
  const auto given = models::text::tokenizer_of_files(
      {{"tokenizer.json", golden_text("qwen2/tokenizer.json")},
       {"tokenizer_config.json", R"({"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"})"},
       {"generation_config.json", R"({"eos_token_id": [1202, 1200, 5]})"},
       {"chat_template.jinja", "{{ messages }}"}},
      "qwen2");
  const auto read = through_metadata(*given, given->vocab_size());
  BOOST_TEST(read->end_ids() == (std::vector<int32_t>{1202, 1200, 5}), boost::test_tools::per_element());
  BOOST_TEST(read->pad_id() == 1200);
  const auto files = read->files();
  BOOST_TEST(std::ranges::count(files, std::string("{{ messages }}"), &models::text::TokenizerFile::contents) == 1);
}

// A file is read with every cut of a token as a merge: here it would make abc, where the merges leave a and bc.
BOOST_AUTO_TEST_CASE(merges_that_make_other_tokens_are_refused) {
  const auto write = [](const std::vector<std::string>& merges) {
    nlohmann::json root = nlohmann::json::parse(golden_text("llama2/tokenizer.json"));
    nlohmann::json &model = root["model"], vocabulary;
    for (const auto& [token, id] : model["vocab"].items())
      if (id < 3 + 256) vocabulary[token] = id;
    for (const char* token : {"a", "b", "c", "ab", "bc", "abc", "cab"}) vocabulary[token] = vocabulary.size();
    model["vocab"] = vocabulary, model["merges"] = merges;
    const auto tokenizer = models::text::tokenizer_of_files({{"tokenizer.json", root.dump()}}, "t");
    models::gguf::write_tokenizer(*tokenizer, tokenizer->vocab_size());
  };
  write({"a b", "b c", "ab c", "c ab"});
  BRAID_CHECK_FAILS(write({"b c", "a b", "ab c", "c ab"}), ErrorKind::setting,
                    "no merge makes the token 'abc' of 'a' and 'bc'");
  BRAID_CHECK_FAILS(write({"a b", "b c", "ab c", "c ab", "a bc"}), ErrorKind::setting,
                    "merges of the token 'abc' stand apart");
}

BOOST_AUTO_TEST_SUITE_END()
