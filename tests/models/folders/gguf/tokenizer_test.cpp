// Tokenizers in GGUF files and back.
#include "braid/models/folders/gguf/tokenizer.h"

#include <boost/test/unit_test.hpp>
#include <functional>

#include "braid/models/folders/gguf/gguf_folder.h"
#include "braid/models/folders/pretrained.h"
#include "braid/models/registry.h"
#include "tests/models/data/tokenizers/fixtures.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;
using nlohmann::json;

BOOST_AUTO_TEST_SUITE(gguf_tokenizers)

namespace {

std::unique_ptr<models::text::Tokenizer> through_metadata(const models::text::Tokenizer& tokenizer, int64_t size) {
  TempFolder folder;
  io::write_gguf(folder / "t.gguf", models::gguf::write_tokenizer(tokenizer, size).metadata, {});
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

BOOST_AUTO_TEST_CASE(the_default_of_several_templates_is_written) {
  const auto given = models::text::tokenizer_of_files(
      {{"tokenizer.json", golden_text("qwen2/tokenizer.json")},
       {"tokenizer_config.json", R"({"chat_template": [{"name": "rag", "template": "x"},
                                                       {"name": "default", "template": "{{ messages }}"}]})"}},
      "qwen2");
  const auto files = through_metadata(*given, given->vocab_size())->files();
  const auto chat = std::ranges::find(files, "chat_template.jinja", &models::text::TokenizerFile::name);
  BOOST_REQUIRE((chat != files.end()));
  BOOST_TEST(chat->contents == "{{ messages }}");
}

namespace {

// A tokenizer of the fixtures with another tokenizer.json.
std::unique_ptr<models::text::Tokenizer> changed(const std::string& name, const std::function<void(json&)>& change) {
  json root = json::parse(golden_text(name + "/tokenizer.json"));
  change(root);
  return models::text::tokenizer_of_files({{"tokenizer.json", root.dump()}}, name);
}

// A template of these tokens around the text, "A".
json template_of(const std::vector<std::pair<std::string, int>>& parts) {
  json single = json::array(), specials = json::object();
  for (const auto& [token, id] : parts) {
    if (token == "A") {
      single.push_back(json{{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
      continue;
    }
    single.push_back(json{{"SpecialToken", {{"id", token}, {"type_id", 0}}}});
    specials[token] = {{"id", token}, {"ids", json::array({id})}, {"tokens", json::array({token})}};
  }
  return {{"type", "TemplateProcessing"}, {"single", single}, {"pair", single}, {"special_tokens", specials}};
}

}  // namespace

BOOST_AUTO_TEST_CASE(tokens_around_a_text_survive) {
  const std::pair<std::string, int> text{"A", -1}, begin{"<s>", 1}, end{"</s>", 2}, other{"<unk>", 0};
  using Parts = std::vector<std::pair<std::string, int>>;
  for (const Parts& parts : {Parts{begin, text, end}, Parts{text, end}, Parts{begin, text}, Parts{text}}) {
    const auto given = changed("llama2", [&](json& root) { root["post_processor"] = template_of(parts); });
    const auto read = through_metadata(*given, given->vocab_size());
    const std::vector<int32_t> ids = given->with_template(given->encode("hello"));
    BOOST_TEST(read->with_template(read->encode("hello")) == ids, boost::test_tools::per_element());
  }
  for (const Parts& parts : {Parts{begin, text, other}, Parts{text, end, end}, Parts{begin, begin, text}}) {
    const auto given = changed("llama2", [&](json& root) { root["post_processor"] = template_of(parts); });
    BRAID_CHECK_FAILS(models::gguf::write_tokenizer(*given, given->vocab_size()), ErrorKind::setting, "it puts ");
  }
}

// The space before a text, and words that are tokens.
BOOST_AUTO_TEST_CASE(forms_of_the_same_tokenizer_survive) {
  const auto check_same = [](const models::text::Tokenizer& given) {
    const auto read = through_metadata(given, given.vocab_size());
    for (const char* text : {"hello world", "the  2025 words\n\tof Caf\u00e9", "x", " hello", "hello</s>world"})
      BOOST_TEST(read->encode(text, true) == given.encode(text, true), boost::test_tools::per_element());
    BOOST_TEST(models::gguf::write_tokenizer(given, given.vocab_size()).note == "");
  };
  check_same(*changed("llama2_metaspace", [&](json& root) {
    root["pre_tokenizer"]["prepend_scheme"] = "never";
    root["added_tokens"][2]["normalized"] = true;  // of a text that no normalizer changes
  }));
  check_same(*changed("llama2", [](json&) {}));
  check_same(*changed("llama2", [](json& root) {  // Gemma's
    root["normalizer"] = root["normalizer"]["normalizers"][1];
    root["pre_tokenizer"] = {
        {"type", "Split"}, {"pattern", {{"String", " "}}}, {"behavior", "MergedWithPrevious"}, {"invert", false}};
  }));
  const auto merged = changed("llama3", [](json& root) { root["model"]["ignore_merges"] = false; });
  check_same(*merged);
  for (const auto& [key, value] : models::gguf::write_tokenizer(*merged, merged->vocab_size()).metadata)
    if (key == "tokenizer.ggml.pre") BOOST_TEST(std::get<std::string>(value) == "dbrx");
}

// The format's space stands before every text, that of Metaspace before some: a note names the others.
BOOST_AUTO_TEST_CASE(a_note_names_the_texts_with_other_ids) {
  for (const std::string scheme : {"first", "always", ""}) {
    BOOST_TEST_CONTEXT(scheme) {
      const auto given = changed("llama2_metaspace", [&](json& root) {
        if (scheme.empty())
          root["pre_tokenizer"].erase("prepend_scheme");
        else
          root["pre_tokenizer"]["prepend_scheme"] = scheme;
      });
      const auto read = through_metadata(*given, given->vocab_size());
      const auto same = [&](const char* text) { return read->encode(text, true) == given->encode(text, true); };
      for (const char* text : {"hello world", "the  2025 words\n\tof Caf\u00e9", "x", "x </s>"}) BOOST_TEST(same(text));
      for (const char* text : {" hello", "\u2581x", "hello</s> world"}) BOOST_TEST(!same(text));
      BOOST_TEST(same("hello</s>world") == (scheme != "first"));
      const std::string note = models::gguf::write_tokenizer(*given, given->vocab_size()).note;
      BOOST_TEST(note == "the file gives other ids for texts that begin with a space or \u2581, " +
                             std::string(scheme == "first" ? "and for any text" : "also") +
                             " behind an added token: GGUF puts \u2581 before every text");
    }
  }
}

// A chat template may write it where the template of texts does not.
BOOST_AUTO_TEST_CASE(the_token_of_the_beginning_survives) {
  const auto bos = [](const json& config) {
    json root = json::parse(golden_text("llama2/tokenizer.json"));
    root["post_processor"] = nullptr;
    const auto given = models::text::tokenizer_of_files(
        {{"tokenizer.json", root.dump()}, {"tokenizer_config.json", config.dump()}}, "llama2");
    int64_t id = -1;
    for (const auto& [key, value] : models::gguf::write_tokenizer(*given, given->vocab_size()).metadata) {
      if (key == "tokenizer.ggml.bos_token_id") id = std::get<int64_t>(value);
      if (key == "tokenizer.ggml.add_bos_token") BOOST_TEST(!std::get<bool>(value));
    }
    BOOST_TEST(through_metadata(*given, given->vocab_size())->with_template(std::vector<int32_t>{5}).size() == 1u);
    return id;
  };
  BOOST_TEST(bos({{"bos_token", "<s>"}}) == 1);
  BOOST_TEST(bos({{"bos_token", {{"content", "<unk>"}}}}) == 0);
  BOOST_TEST(bos({{"bos_token", "nothing"}}) == -1);
  BOOST_TEST(bos({{"bos_token", nullptr}}) == -1);
}

// The token of the beginning is the tokenizer's, config.json's where it names none.
BOOST_AUTO_TEST_CASE(a_model_is_saved_with_the_beginning_and_returns_the_note) {
  TempFolder folder;
  json root = golden_json("llama2_metaspace/tokenizer.json");
  root["post_processor"] = nullptr;
  const auto bos = [&](const std::string& config) {
    const auto tokenizer = models::text::tokenizer_of_files(
        {{"tokenizer.json", root.dump()}, {"tokenizer_config.json", config}}, "llama2_metaspace");
    const std::string size = std::to_string(tokenizer->vocab_size()), path = folder / "m.gguf";
    const auto spec =
        models::configure_model("llama-tiny", {{"n_layer", "1"}, {"bos_token_id", "0"}, {"vocab_size", size}});
    const std::string note = models::save_gguf(*spec->make({1, 0}), tokenizer.get(), "f32", path);
    BOOST_TEST(note.find("other ids") != std::string::npos);
    return std::get<int64_t>(io::GgufFile(path).metadata().at("tokenizer.ggml.bos_token_id"));
  };
  BOOST_TEST(bos(R"({"bos_token": "<s>"})") == 1);
  BOOST_TEST(bos("{}") == 0);
}

// A file would be read as a tokenizer of other ids.
BOOST_AUTO_TEST_CASE(what_no_file_can_say_is_refused) {
  const auto refused = [](const std::string& name, const std::string& words, const std::function<void(json&)>& change) {
    BOOST_TEST_CONTEXT(name << ": " << words) {
      const auto given = changed(name, change);
      BRAID_CHECK_FAILS(models::gguf::write_tokenizer(*given, given->vocab_size()), ErrorKind::setting,
                        "cannot hold this tokenizer: ", words);
    }
  };
  const std::string text = "its normalizer or pre_tokenizer does more";
  const json strip = {{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}};
  for (const json& step : {json{{"type", "Lowercase"}}, json{{"type", "NFKC"}}, strip})
    refused("llama2", text, [&](json& root) {
      json& steps = root["normalizer"]["normalizers"];
      steps.insert(steps.begin(), step);
    });
  refused("llama2", text, [](json& root) { root["normalizer"] = nullptr; });
  refused("llama2", text, [](json& root) {
    root["pre_tokenizer"] = {{"type", "Digits"}, {"individual_digits", true}};
  });
  refused("llama2_metaspace", text, [](json& root) { root["pre_tokenizer"] = {{"type", "Whitespace"}}; });
  refused("llama2_metaspace", text, [](json& root) { root["pre_tokenizer"].erase("split"); });
  refused("llama2", "ignore_merges", [](json& root) { root["model"]["ignore_merges"] = true; });
  refused("llama2", "it has no token for the byte 65", [](json& root) { root["model"]["vocab"].erase("<0x41>"); });
  refused("gpt2", "it has no token for the byte 0", [](json& root) { root["model"]["byte_fallback"] = true; });
  for (const char* name : {"llama2", "gpt2"})
    refused(name, "its end_of_word_suffix", [](json& root) { root["model"]["end_of_word_suffix"] = "o"; });
  for (const char* key : {"single_word", "lstrip", "rstrip", "normalized"})
    refused("llama2", std::string("its added token '</s>' has ") + key,
            [&](json& root) { root["added_tokens"][2][key] = true; });
  refused("qwen2", "its added token '<|im_end|>' has lstrip",
          [](json& root) { root["added_tokens"][2]["lstrip"] = true; });
  refused("qwen2", "cut in another way (ignore_merges true)",
          [](json& root) { root["model"]["ignore_merges"] = true; });
  const auto add = [](json& root, const std::string& content, bool normalized) {
    json token = root["added_tokens"].back();
    token["id"] = token["id"].get<int64_t>() + 1;
    token["content"] = content, token["normalized"] = normalized, token["special"] = false;
    root["added_tokens"].push_back(token);
  };
  for (const std::string content : {"wor", "o world", "ohell", "hello w"})  // on either side, inside
    refused("gpt2", "overlap and only the second is normalized", [&](json& root) {
      add(root, content, false);
      if (content == "hello w") return add(root, "hello wor", true);
      add(root, "hello wo", true);
    });
  for (const bool normalized : {true, false}) {  // alike, or apart
    const auto given = changed("gpt2", [&](json& root) {
      add(root, normalized ? "wor" : "x y", normalized);
      add(root, "hello w", true);
    });
    const auto read = through_metadata(*given, given->vocab_size());
    for (const char* words : {"hello world", "x y hello w", "hello x y wor"})
      BOOST_TEST(read->encode(words, true) == given->encode(words, true), boost::test_tools::per_element());
  }
  refused("gpt2", "cut in another way", [](json& root) {
    root["model"]["merges"] = json::array();
    root["pre_tokenizer"]["add_prefix_space"] = true;
  });
}

BOOST_AUTO_TEST_CASE(words_that_are_cut_in_an_unknown_way_are_refused) {
  const TempFolder folder;
  const auto given = models::text::tokenizer_of_files({{"tokenizer.json", golden_text("gpt2/tokenizer.json")}}, "gpt2");
  auto metadata = models::gguf::write_tokenizer(*given, given->vocab_size()).metadata;
  for (auto& [key, value] : metadata)
    if (key == "tokenizer.ggml.pre") value = std::string("of-tomorrow");
  io::write_gguf(folder / "t.gguf", metadata, {});
  BRAID_CHECK_FAILS(models::gguf::read_tokenizer(io::GgufFile(folder / "t.gguf")), ErrorKind::input, "gpt-2, ",
                    "of-tomorrow", "give --tokenizer FOLDER");
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

// Tokens that end a text, of a model without a tokenizer.
BOOST_AUTO_TEST_CASE(ends_survive_a_file) {
  const TempFolder scratch;
  const std::string path = scratch / "model.gguf";
  const auto model = models::configure_model("llama-tiny", {{"n_layer", "1"}, {"eos_token_id", "7"}})->make({1, 0});
  const auto ends = [&](const std::vector<int32_t>& given) {
    models::save_gguf(*model, nullptr, "f32", path, given);
    return models::gguf_end_ids(path, 100);
  };
  BOOST_TEST(ends({}) == std::vector<int32_t>({7}), boost::test_tools::per_element());
  BOOST_TEST(ends({15, 9, 200}) == std::vector<int32_t>({15, 9}), boost::test_tools::per_element());
  const models::LoadedModel read = models::load_model(path);
  BOOST_TEST(read.format.files.at("generation_config.json").find("200") != std::string::npos);
  BRAID_CHECK_FAILS(ends({1, 2, 3, 4}), ErrorKind::setting, "cannot name 4 tokens that end a text: expected at most 3");
}

BOOST_AUTO_TEST_CASE(a_file_is_no_tokenizer) {
  const TempFolder scratch;
  const auto model = models::configure_model("llama-tiny", {{"n_layer", "1"}})->make({1, 0});
  models::save_gguf(*model, nullptr, "f32", scratch / "model.gguf");
  BRAID_CHECK_FAILS(models::text::load_tokenizer(scratch / "model.gguf"), ErrorKind::input, "found the GGUF file");
  const io::GgufFile file(scratch / "model.gguf");
  BOOST_TEST(std::get<std::string>(file.metadata().at("tokenizer.ggml.model")) == "none");
}

BOOST_AUTO_TEST_SUITE_END()
