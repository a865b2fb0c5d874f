// Tokenizers of every supported form against the package `tokenizers`: ids, texts, templates, streams, rejections.
#include <boost/test/unit_test.hpp>

#include "braid/models/data/tokenizers/tokenizer.h"
#include "tests/models/data/tokenizers/fixtures.h"
#include "tests/support/throws.h"
using namespace braid;
using namespace braid::models::text;

BOOST_AUTO_TEST_SUITE(tokenizer_golden)

using nlohmann::json;

namespace {
const std::vector<std::string> names = {"added", "gpt2",  "llama2", "llama2_metaspace", "llama3",
                                        "neox",  "qwen2", "smollm", "unk_fused"};

std::unique_ptr<Tokenizer> golden_tokenizer(const std::string& name) {
  return parse_tokenizer(golden_text(name + "/tokenizer.json"), name);
}

using Ids = std::vector<int32_t>;

// Counts differences and reports the first few.
struct Differences {
  std::string name;
  int checked = 0, wrong = 0;
  template <typename T>
  void compare(const T& found, const T& expected, const json& of, const char* what) {
    ++checked;
    if (found == expected || ++wrong > 5) return;
    BOOST_TEST_MESSAGE(name << ": " << what << " of " << of.dump(-1, ' ', true).substr(0, 200) << ": expected "
                            << json(expected).dump(-1, ' ', true).substr(0, 200) << ", found "
                            << json(found).dump(-1, ' ', true, json::error_handler_t::replace).substr(0, 200));
  }
  void none(int least) const {
    BOOST_TEST(checked >= least);
    BOOST_TEST(wrong == 0, name << ": " << wrong << " of " << checked << " differ");
  }
};
}  // namespace

// Unigram as T5, ALBERT and LLaMA have it, WordPiece as BERT has it, and WordLevel.
BOOST_AUTO_TEST_CASE(other_models_than_bpe) {
  const std::vector<json> strings = golden_lines("strings.jsonl");
  for (const std::string name : {"unigram_t5", "unigram_albert", "unigram_bytes", "word_piece", "word_level"}) {
    const auto tokenizer = golden_tokenizer(name);
    Differences d{name};
    size_t i = 0;
    for (const json& line : golden_lines(name + "/ids.jsonl")) {
      const json& t = strings.at(i++)["t"];
      const auto text = t.get<std::string>();
      const auto ids = line["ids"].get<Ids>();
      d.compare(tokenizer->encode(text, true), ids, t, "ids");
      d.compare(tokenizer->decode(ids), line.value("d", text), t, "text");
    }
    d.none(6000);
  }
}

BOOST_AUTO_TEST_CASE(ids_and_texts_of_every_string) {
  const std::vector<json> strings = golden_lines("strings.jsonl");
  for (const std::string& name : names) {
    const auto tokenizer = golden_tokenizer(name);
    Differences d{name};
    size_t i = 0;
    for (const json& line : golden_lines(name + "/ids.jsonl")) {
      if (line.contains("i")) i = line["i"];
      const json& t = strings.at(i++)["t"];
      const auto text = t.get<std::string>();
      const auto ids = line["ids"].get<Ids>();
      d.compare(tokenizer->encode(text, true), ids, t, "ids");
      const auto value = [&](const char* key, const std::string& otherwise) {
        if (!line.contains(key)) return otherwise;
        return line[key].is_number() ? " " + text : line[key].get<std::string>();
      };
      const std::string decoded = value("d", text), without = value("ds", decoded);
      d.compare(tokenizer->decode(ids), value("old_d", decoded), t, "text");
      d.compare(tokenizer->decode(ids, true), value("old_ds", without), t, "text without specials");
    }
    d.none(3000);
  }
}

BOOST_AUTO_TEST_CASE(code_points_of_newer_unicode) {
  for (const std::string& name : names) {
    const auto tokenizer = golden_tokenizer(name);
    Differences d{name};
    for (const json& line : golden_lines("unicode_versions.jsonl"))
      if (line.contains(name))
        d.compare(tokenizer->encode(line["t"].get<std::string>(), true), line[name].get<Ids>(), line["t"], "ids");
    d.none(0);
  }
}

BOOST_AUTO_TEST_CASE(templates_pairs_and_specials_as_text) {
  for (const std::string& name : names) {
    const auto tokenizer = golden_tokenizer(name);
    Differences d{name};
    for (const json& line : golden_lines(name + "/modes.jsonl")) {
      const auto text = line["t"].get<std::string>();
      const Ids ids = tokenizer->encode(text, true);
      d.compare(tokenizer->with_template(ids), line["special"].get<Ids>(), line["t"], "ids with the template");
      d.compare(tokenizer->with_template(ids, tokenizer->encode(line["b"].get<std::string>(), true)),
                line["pair"].get<Ids>(), line["t"], "ids of a pair");
      d.compare(tokenizer->encode(text), line["as_text"].get<Ids>(), line["t"], "ids of specials as text");
      // A caller that truncates counts the template's tokens.
      const auto max_tokens = line["max_length"].get<size_t>();
      const size_t added = tokenizer->with_template(Ids()).size();
      const auto kept = [&](size_t n) {
        n = std::min(n, ids.size());
        return line["direction"] == "right" ? Ids(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(n))
                                            : Ids(ids.end() - static_cast<std::ptrdiff_t>(n), ids.end());
      };
      d.compare(tokenizer->with_template(kept(max_tokens - added)), line["truncated"].get<Ids>(), line["t"],
                "truncated ids");
      d.compare(kept(max_tokens), line["truncated_plain"].get<Ids>(), line["t"], "truncated ids without template");
    }
    d.none(100);
  }
}

BOOST_AUTO_TEST_CASE(streams_give_out_whole_characters) {
  for (const std::string& name : names) {
    const auto tokenizer = golden_tokenizer(name);
    Differences d{name};
    for (const json& line : golden_lines(name + "/stream.jsonl")) {
      StreamDecoder stream(*tokenizer, line["skip"].get<bool>());
      std::string all;
      size_t i = 0;
      for (const int32_t id : line["ids"].get<Ids>()) {
        const std::string piece = stream.push(id);
        all += piece;
        if (i == line["chunks"].size()) break;  // the package fails here; the stream here continues
        const json& chunk = line["chunks"][i++];
        d.compare(piece, chunk.is_null() ? std::string() : chunk.get<std::string>(), line["ids"], "piece");
      }
      const auto whole = line["whole"].get<std::string>();
      if (whole.starts_with(all)) d.compare(all + stream.finish(), whole, line["ids"], "text");
    }
    d.none(100);
  }
}

BOOST_AUTO_TEST_CASE(unsupported_files_are_rejected_by_name) {
  const json cases = golden_json("rejections.json");
  BOOST_TEST(cases.size() == 18u);
  for (const json& c : cases) {
    json file = golden_json(c["base"].get<std::string>() + "/tokenizer.json");
    json* place = &file;
    for (const json& step : c["path"])
      place = step.is_number() ? &(*place)[step.get<size_t>()] : &(*place)[step.get<std::string>()];
    *place = c["value"];
    BOOST_CHECK_EXCEPTION(parse_tokenizer(file.dump(), "folder/tokenizer.json"), Error, [&](const Error& e) {
      bool good = says(e, ErrorKind::input, {"tokenizer.json"});
      for (const json& word : c["expect"]) good = good && says(e, ErrorKind::input, {word.get<std::string>()});
      return good;
    });
  }
}

BOOST_AUTO_TEST_SUITE_END()
