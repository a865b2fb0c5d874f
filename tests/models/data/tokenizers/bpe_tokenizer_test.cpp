// Folders with tokenizers, the ends of texts, threads, and work that grows with the text and not faster.
#include "braid/models/data/tokenizers/bpe_tokenizer.h"

#include <boost/test/unit_test.hpp>
#include <thread>

#include "tests/models/data/tokenizers/fixtures.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"
using namespace braid;
using namespace braid::models::text;

BOOST_AUTO_TEST_SUITE(bpe_tokenizer)

using nlohmann::json;

namespace {
std::unique_ptr<BpeTokenizer> golden(const std::string& name) {
  const json root = golden_json(name + "/tokenizer.json");
  return std::make_unique<BpeTokenizer>(Section(root, name, ""));
}

// A tokenizer of the letters a and b whose merges are given as pairs.
std::unique_ptr<BpeTokenizer> small(const std::vector<std::pair<std::string, std::string>>& merges,
                                    const json& changes = json::object()) {
  json vocab = {{"a", 0}, {"b", 1}, {"c", 2}};
  json pairs = json::array();
  for (const auto& [a, b] : merges) {
    if (!vocab.contains(a + b)) vocab[a + b] = vocab.size();
    pairs.push_back({a, b});
  }
  json root = {{"version", "1.0"}, {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", pairs}}}};
  root.merge_patch(changes);
  return std::make_unique<BpeTokenizer>(Section(root, "small", ""));
}
}  // namespace

// Ids as the package gives them (one with lstrip, inside of what an rstrip took, is dropped; others come again).
BOOST_AUTO_TEST_CASE(white_space_that_an_added_token_has_taken) {
  const auto ids = [](const std::string& content, bool lstrip, bool rstrip, const std::string& text) {
    const auto added = [](int id, const std::string& token, bool left, bool right) {
      return json{{"id", id},        {"content", token},    {"single_word", false}, {"lstrip", left},
                  {"rstrip", right}, {"normalized", false}, {"special", false}};
    };
    json tokens = json::array();
    tokens.push_back(added(3, "\n\n", true, true));
    if (content != "\n\n") tokens.push_back(added(4, content, lstrip, rstrip));
    return small({}, {{"added_tokens", tokens}})->encode(text);
  };
  using Ids = std::vector<int32_t>;
  BOOST_TEST(ids("\n\n", true, true, "\n\n\n\na") == (Ids{3, 0}), boost::test_tools::per_element());
  BOOST_TEST(ids("  ", true, false, "\n\n  a") == (Ids{3, 0}), boost::test_tools::per_element());
  BOOST_TEST(ids("  ", true, true, "\n\n   a") == (Ids{3, 0}), boost::test_tools::per_element());
  BOOST_TEST(ids("  ", true, false, "\n\n  a  b") == (Ids{3, 0, 4, 1}), boost::test_tools::per_element());
  BOOST_TEST(ids("  ", false, false, "\n\n  a") == (Ids{3, 4, 0}), boost::test_tools::per_element());
}

// Metaspace "first" asks where a word began before the normalizer.
BOOST_AUTO_TEST_CASE(the_first_word_begins_where_the_input_does) {
  const auto ids = [](const json& normalizer, const std::string& text) {
    return small({},
                 {{"model", {{"vocab", {{"\u2581", 3}}}}},
                  {"normalizer", normalizer},
                  {"pre_tokenizer", {{"type", "Metaspace"}, {"replacement", "\u2581"}, {"prepend_scheme", "first"}}}})
        ->encode(text);
  };
  using Ids = std::vector<int32_t>;
  const json strip = {{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}};
  const json accents = {{"type", "StripAccents"}};
  const auto replace = [](const char* content) {
    return json{{"type", "Replace"}, {"pattern", {{"String", "\n"}}}, {"content", content}};
  };
  for (const json& normalizer : {strip, replace(""), accents})
    BOOST_TEST(ids(normalizer, "a") == (Ids{3, 0}), boost::test_tools::per_element());
  BOOST_TEST(ids(strip, "\na") == (Ids{0}), boost::test_tools::per_element());
  BOOST_TEST(ids(replace(""), "\na") == (Ids{0}), boost::test_tools::per_element());
  BOOST_TEST(ids(replace(""), "a\nb") == (Ids{3, 0, 1}), boost::test_tools::per_element());
  BOOST_TEST(ids(replace("b"), "\na") == (Ids{3, 1, 0}), boost::test_tools::per_element());
  BOOST_TEST(ids(accents, "\u0301a") == (Ids{0}), boost::test_tools::per_element());
  const json marks = {{"type", "Metaspace"}, {"replacement", "\u2581"}, {"prepend_scheme", "first"}};
  const auto words =
      small({}, {{"model", {{"vocab", {{"\u2581", 3}}}}},
                 {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {{{"type", "WhitespaceSplit"}}, marks}}}}});
  BOOST_TEST(words->encode("a b") == (Ids{3, 0, 1}), boost::test_tools::per_element());
  BOOST_TEST(words->encode(" a") == (Ids{0}), boost::test_tools::per_element());
  // Ids as the package gives them: the first character stays where it alone is replaced, by whatever text.
  for (const std::string content : {"b", "bb", "bbb"}) {
    const json runs = {{"type", "Replace"}, {"pattern", {{"Regex", "a+"}}}, {"content", content}};
    const json pairs = {{"type", "Replace"}, {"pattern", {{"String", "aa"}}}, {"content", content}};
    const Ids lost(content.size(), 1);
    Ids kept = lost;
    kept.insert(kept.begin(), 3);
    BOOST_TEST(ids(runs, "a") == kept, boost::test_tools::per_element());
    for (const char* text : {"aa", "aaa", "aaaa"})
      BOOST_TEST(ids(runs, text) == lost, boost::test_tools::per_element());
    BOOST_TEST(ids(pairs, "aa") == lost, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(a_folder_says_what_ends_a_text) {
  TempFolder folder;
  const std::string dir = folder.path.string(), file = golden_text("smollm/tokenizer.json");
  folder.write("tokenizer.json", file);
  BOOST_TEST(load_tokenizer(dir)->eos_id() == 0);  // <|endoftext|>
  BOOST_TEST(load_tokenizer(dir + "/tokenizer.json")->eos_id() == 0);
  BOOST_TEST(load_tokenizer(dir)->pad_id() == -1);
  folder.write("config.json", R"({"eos_token_id": 1, "pad_token_id": 3})");
  BOOST_TEST(load_tokenizer(dir)->eos_id() == 1);
  folder.write("generation_config.json", R"({"eos_token_id": [2, 0]})");
  BOOST_TEST(load_tokenizer(dir)->eos_id() == 2);
  BOOST_TEST(load_tokenizer(dir)->pad_id() == 3);
  const auto ends = [](const std::string& path) { return load_tokenizer(path)->end_ids(); };
  BOOST_TEST(ends(dir) == (std::vector<int32_t>{2, 0}), boost::test_tools::per_element());

  TempFolder copy;  // of the tokenizer alone
  save_tokenizer(*load_tokenizer(dir), copy.path.string());
  BOOST_TEST((copy.read("tokenizer.json") == file));
  BOOST_TEST(load_tokenizer(copy.path.string())->eos_id() == 2);
  BOOST_TEST(ends(copy.path.string()) == (std::vector<int32_t>{2, 0}), boost::test_tools::per_element());

  const std::string config = R"({"eos_token": {"content": "<repo_name>"}, "pad_token": "<nothing>",)"
                             R"("added_tokens_decoder": {"7": {"content": "<more>"}}, "chat_template": "x"})";
  folder.write("tokenizer_config.json", config);
  const auto loaded = load_tokenizer(dir);
  BOOST_TEST(loaded->eos_id() == 3);
  BOOST_TEST(loaded->notes().size() == 2u);
  TempFolder second;
  save_tokenizer(*loaded, second.path.string());
  BOOST_TEST(second.read("tokenizer_config.json") == config);
  // The tokenizer's own end comes first; the others stay with it.
  for (const std::string& path : {dir, second.path.string()})
    BOOST_TEST(ends(path) == (std::vector<int32_t>{3, 2, 0}), boost::test_tools::per_element());
  folder.write("generation_config.json", "{}");
  BOOST_TEST(ends(dir) == (std::vector<int32_t>{3, 1}), boost::test_tools::per_element());
  folder.write("config.json", R"({"eos_token_id": [3, 1e9, -1, "x", 3]})");
  BOOST_TEST(ends(dir) == (std::vector<int32_t>{3}), boost::test_tools::per_element());
  TempFolder third;
  save_tokenizer(*load_tokenizer(dir), third.path.string());
  BOOST_TEST(!std::filesystem::exists(third.path / "generation_config.json"));
  BOOST_TEST(load_tokenizer(second.path.string())->fingerprint() == loaded->fingerprint());
}

BOOST_AUTO_TEST_CASE(a_tokenizer_without_an_end_says_so) {
  const auto t = small({});
  BOOST_TEST(t->eos_id() == -1);
  BRAID_CHECK_FAILS(document_end(*t, "a test needs"), ErrorKind::input,
                    "no token that ends a text, which a test needs");
  BRAID_CHECK_FAILS(t->token_bytes(3), ErrorKind::input, "expected 0 to 2", "found 3");
}

// Whatever is quoted from a file is printable.
BOOST_AUTO_TEST_CASE(what_is_found_is_quoted_in_ascii) {
  BRAID_CHECK_FAILS(small({}, {{"version", "\u00fc"}}), ErrorKind::input,
                    "version: expected \"1.0\", found \"\\u00fc\"");
}

// A misspelled normalizer would be none.
BOOST_AUTO_TEST_CASE(members_that_the_format_does_not_have_are_rejected) {
  BRAID_CHECK_FAILS(small({}, {{"normalizers", {{"type", "NFC"}}}}), ErrorKind::input,
                    "bad tokenizer in small: expected only members of the format, found 'normalizers'");
}

BOOST_AUTO_TEST_CASE(a_template_names_ids_of_tokens) {
  const auto with = [](const json& id) {
    const json parts = {{{"SpecialToken", {{"id", "c"}, {"type_id", 0}}}},
                        {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}};
    const json special = {{"id", "c"}, {"ids", json::array({id})}, {"tokens", {"c"}}};
    return small(
        {},
        {{"post_processor",
          {{"type", "TemplateProcessing"}, {"single", parts}, {"pair", parts}, {"special_tokens", {{"c", special}}}}}});
  };
  BOOST_TEST(with(2)->with_template(std::vector<int32_t>{0}) == (std::vector<int32_t>{2, 0}),
             boost::test_tools::per_element());
  for (const json& id : {json(-1), json(1.5), json("c"), json(1 << 22)})
    BRAID_CHECK_FAILS(with(id), ErrorKind::input, "ids: expected ids of tokens");
}

BOOST_AUTO_TEST_CASE(truncation_and_padding_are_ignored_with_a_note) {
  const auto t = small({}, {{"truncation", {{"max_length", 1}}}, {"padding", json::object()}});
  BOOST_TEST(t->encode("abc").size() == 3u);
  BOOST_TEST(t->notes().size() == 2u);
}

BOOST_AUTO_TEST_CASE(the_lowest_rank_merges_first_the_leftmost_of_equal_ones) {
  using Ids = std::vector<int32_t>;
  const auto t = small({{"a", "b"}, {"b", "a"}, {"ab", "a"}});  // 3 ab, 4 ba, 5 aba
  BOOST_TEST(t->encode("aba") == (Ids{5}), boost::test_tools::per_element());
  BOOST_TEST(t->encode("bab") == (Ids{1, 3}), boost::test_tools::per_element());
  BOOST_TEST(t->encode("ababa") == (Ids{3, 5}), boost::test_tools::per_element());
  const auto pairs = small({{"a", "a"}});
  BOOST_TEST(pairs->encode("aaaaa") == (Ids{3, 3, 0}), boost::test_tools::per_element());
}

// No piece may end before a U+2581 whose neighbour on the left may vanish.
BOOST_AUTO_TEST_CASE(what_stands_around_an_unknown_character_merges) {
  const json blanks = {{"normalizer", {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "▁"}}},
                       {"model", {{"vocab", {{"▁", 4}}}}}};
  const auto t = small({{"▁", "▁"}}, blanks);  // 3 ▁▁
  BOOST_TEST(t->encode("a 中 a") == (std::vector<int32_t>{0, 3, 0}), boost::test_tools::per_element());
  BOOST_TEST(t->encode("a b") == (std::vector<int32_t>{0, 4, 1}), boost::test_tools::per_element());
  json some_bytes = blanks;  // and those of other characters vanish
  some_bytes["model"]["byte_fallback"] = true;
  some_bytes["model"]["vocab"]["<0x41>"] = 5;
  const auto u = small({{"▁", "▁"}}, some_bytes);
  BOOST_TEST(u->encode("a 中 aA") == (std::vector<int32_t>{0, 3, 0, 5}), boost::test_tools::per_element());
}

// A scan serves short words and a queue long ones: the same merges.
BOOST_AUTO_TEST_CASE(words_of_any_length_merge_alike) {
  const auto t = small({{"a", "b"}, {"b", "b"}, {"ab", "ab"}, {"bb", "a"}, {"a", "a"}, {"abab", "aa"}, {"b", "c"}});
  uint64_t state = 1;
  for (int i = 0; i < 300; ++i) {
    std::string word;  // c ends a unit: only bc joins to it, and nothing from its right
    for (int n = 0; n < 20; ++n) word += "ab"[(state = state * 6364136223846793005u + 1442695040888963407u) >> 63];
    word += 'c';
    const auto one = t->encode(word);
    std::vector<int32_t> three;
    for (int k = 0; k < 3; ++k) three.insert(three.end(), one.begin(), one.end());
    BOOST_TEST((t->encode(word + word + word) == three));
  }
}

BOOST_AUTO_TEST_CASE(work_grows_with_the_text_and_not_faster) {
  struct Case {
    std::string tokenizer, unit;
  };
  for (const Case& c :
       {Case{"neox", "a"}, Case{"neox", " "}, Case{"neox", "\n"}, Case{"neox", "ab\u0301"}, Case{"llama3", " \n"},
        Case{"llama3", "'s"}, Case{"llama2", "a"}, Case{"llama2", " "}, Case{"llama2", "\u2581a "},
        Case{"llama2", "\U0001F600"}, Case{"added", "<|end"}, Case{"unk_fused", "\u00e9"}, Case{"qwen2", "1"}}) {
    const auto t = golden(c.tokenizer);
    const auto steps = [&](size_t n) {
      std::string text;
      while (text.size() < n) text += c.unit;
      const int64_t before = t->merge_steps();
      const auto ids = t->encode(text, true);
      BOOST_TEST(!ids.empty());
      return static_cast<double>(t->merge_steps() - before);
    };
    const double one = steps(20000), four = steps(80000);
    BOOST_TEST(four <= 4.2 * one + 2000, c.tokenizer << " '" << c.unit << "': " << one << ", then " << four);
    BOOST_TEST(four <= 12 * 80000.);
    if (c.unit.size() == 1) {  // a run of one character: linear
      const double half = steps(1 << 18), all = steps(1 << 19);
      BOOST_TEST(all <= 2.01 * half, c.tokenizer << " '" << c.unit << "': " << half << ", then " << all);
    }
  }
}

BOOST_AUTO_TEST_CASE(several_threads_give_the_same_tokens) {
  const auto t = golden("neox");
  std::vector<std::string> texts;
  for (const json& line : golden_lines("strings.jsonl")) texts.push_back(line["t"]);
  texts.resize(400);
  std::vector<std::vector<std::vector<int32_t>>> results(3);
  std::vector<std::thread> threads;
  for (auto& result : results)
    threads.emplace_back([&texts, &result, &t] {
      for (const std::string& text : texts) result.push_back(t->encode(text));
    });
  for (auto& thread : threads) thread.join();
  BOOST_TEST((results[0] == results[1] && results[0] == results[2]));
}

BOOST_AUTO_TEST_CASE(bytes_that_are_no_text_count_as_replacement_characters) {
  const auto t = golden("neox");
  BOOST_TEST((t->encode("a\xFF"
                        "b") == t->encode("a\uFFFD"
                                          "b")));
}

BOOST_AUTO_TEST_CASE(a_stream_continues_a_text) {
  const auto t = golden("llama2");
  const auto prompt = t->encode("The cat"), all = t->encode("The cat and the dog");
  BOOST_TEST((std::equal(prompt.begin(), prompt.end(), all.begin())));
  StreamDecoder stream(*t);
  stream.begin(prompt);
  std::string text;
  for (size_t i = prompt.size(); i < all.size(); ++i) text += stream.push(all[i]);
  BOOST_TEST(text + stream.finish() == " and the dog");
}

// All of the prompt are byte tokens: where the stream begins, there must begin a character.
BOOST_AUTO_TEST_CASE(a_stream_continues_a_text_of_byte_tokens) {
  const auto t = golden("llama2");
  const std::string prompt = "天地玄黄宇宙洪荒日月盈昃";
  for (const std::string before : {"", "a", "ab", "é"}) {
    StreamDecoder stream(*t);
    stream.begin(t->encode(before + prompt));
    BOOST_TEST(stream.push(t->id_of("<0x0A>")) == "\n");
    BOOST_TEST(stream.push(t->id_of("<0x0A>")) == "\n");
  }
}

// Where a run of byte tokens turns out to be no character, its text changes; the stream continues.
BOOST_AUTO_TEST_CASE(a_stream_survives_text_that_changes) {
  const auto t = golden("llama2");
  const int32_t amp = t->id_of("<0x26>"), bad = t->id_of("<0xE2>");
  StreamDecoder stream(*t);
  BOOST_TEST(stream.push(t->encode("a")[0]) == "a");
  std::string text = stream.push(amp);
  text += stream.push(bad);
  for (const int32_t id : t->encode("b c")) text += stream.push(id);
  BOOST_TEST((text + stream.finish()).ends_with("b c"));
}

BOOST_AUTO_TEST_SUITE_END()
