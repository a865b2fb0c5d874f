// Normalizers, pre-tokenizers, regular expressions and tables, each alone.
#include <boost/test/unit_test.hpp>

#include "braid/models/data/tokenizers/bpe_tokenizer.h"
#include "braid/models/data/tokenizers/decoder.h"
#include "braid/models/data/tokenizers/normalizer.h"
#include "braid/models/data/tokenizers/pre_tokenizer.h"
#include "braid/models/data/tokenizers/regex.h"
#include "braid/models/data/tokenizers/unicode.h"
#include "braid/models/data/tokenizers/unigram.h"
#include "tests/models/data/tokenizers/fixtures.h"
#include "tests/support/throws.h"
using namespace braid;
using namespace braid::models::text;

BOOST_AUTO_TEST_SUITE(tokenizer_parts)

using nlohmann::json;

BOOST_AUTO_TEST_CASE(golden_normalizers_pre_tokenizers_and_decoders) {
  int normalized = 0, split = 0, decoded = 0;
  for (const json& line : golden_lines("units.jsonl")) {
    if (line.contains("normalizer")) {
      const Normalizer normalizer(Section(line["normalizer"], "units", "normalizer"));
      const auto text = line["t"].get<std::string>();
      std::string storage;
      BOOST_TEST(normalizer(text, storage) == line["out"].get<std::string>(),
                 line["normalizer"] << " of '" << text << "'");
      ++normalized;
    } else if (line.contains("pre_tokenizer")) {
      const PreTokenizer pre_tokenizer(Section(line["pre_tokenizer"], "units", "pre_tokenizer"));
      std::vector<std::string> words;
      pre_tokenizer.split(line["t"].get<std::string>(), words);
      BOOST_TEST(words == line["out"].get<std::vector<std::string>>(), line["pre_tokenizer"] << " of " << line["t"]);
      ++split;
    } else {
      const Decoder decoder(Section(line["decoder"], "units", "decoder"));
      BOOST_TEST(decoder(line["tokens"].get<std::vector<std::string>>()) == line["out"].get<std::string>(), line);
      ++decoded;
    }
  }
  BOOST_TEST(normalized > 300);
  BOOST_TEST(split > 200);
  BOOST_TEST(decoded > 100);
}

BOOST_AUTO_TEST_CASE(decoders_of_texts_that_no_model_writes) {
  using Strings = std::vector<std::string>;
  const auto decoded = [](const char* type, const Strings& tokens) {
    const json decoder = {{"type", type}};
    return Decoder(Section(decoder, "test", ""))(tokens);
  };
  BOOST_TEST(decoded("WordPiece", {"##a ?", "##b", "c ."}) == "##a?b c.");  // the first token is cleaned too
  BOOST_TEST(decoded("ByteFallback", {"<0x@1>", "<0xG1>", "<0x4`>", "<0x41>"}) == "<0x@1><0xG1><0x4`>A");
}

namespace {
std::vector<bool> members(const json& ranges) {
  std::vector<bool> set(0x110000);
  for (const json& range : ranges)
    for (int c = range[0]; c <= range[1]; ++c) set[static_cast<size_t>(c)] = true;
  return set;
}
bool surrogate(size_t c) { return c >= 0xD800 && c < 0xE000; }

// The code points that a pattern for one character matches.
std::vector<bool> matches(const std::string& pattern) {
  std::string all;
  for (size_t c = 0; c < 0x110000; ++c)
    if (!surrogate(c)) append_utf8(all, static_cast<char32_t>(c));
  const Regex regex(pattern, "test");
  Regex::Search search(regex, all);
  std::vector<bool> set(0x110000);
  for (size_t begin, end; search.next(begin, end);)
    for (size_t at = begin; at < end;) set[next_code_point(all, at)] = true;
  return set;
}
}  // namespace

BOOST_AUTO_TEST_CASE(every_code_point_has_the_published_class) {
  const json tables = golden_json("unicode.json");
  const auto compare = [](const std::vector<bool>& found, const std::vector<bool>& expected, const char* name) {
    size_t wrong = 0, first = 0;
    for (size_t c = 0; c < 0x110000; ++c)
      if (!surrogate(c) && found[c] != expected[c] && ++wrong == 1) first = c;
    BOOST_TEST(wrong == 0, name << ": " << wrong << " code points, the first " << first);
  };
  compare(matches("\\p{L}+"), members(tables["letter"]), "letter");
  compare(matches("[\\p{N}]+"), members(tables["number"]), "number");
  compare(matches("\\s+"), members(tables["space"]), "space");
  auto others = members(tables["letter"]);
  others.flip();
  compare(matches("\\P{L}+"), others, "no letter");
  auto dark = members(tables["space"]);
  dark.flip();
  compare(matches("\\S+"), dark, "no space");
  compare(matches("[\\S]+"), dark, "no space, in a class");
  std::vector<bool> word(0x110000), numeric(0x110000), space(0x110000);
  const json digits = {{"type", "Digits"}, {"individual_digits", true}};
  const PreTokenizer numerals(Section(digits, "test", ""));
  for (size_t c = 0; c < 0x110000; ++c) {
    if (surrogate(c)) continue;
    word[c] = is_word_character(static_cast<char32_t>(c));
    space[c] = is_white_space(static_cast<char32_t>(c));
  }
  compare(word, members(tables["word"]), "word");
  compare(space, members(tables["space"]), "white space");
  std::string all;
  for (size_t c = 0; c < 0x110000; ++c)
    if (!surrogate(c)) append_utf8(all += "a", static_cast<char32_t>(c));
  Words words;
  numerals.words(all, true, words);
  for (size_t i = 0; i < words.ranges.size(); ++i) {
    size_t at = 0;
    const char32_t c = next_code_point(words[i], at);
    if (c != 'a' && at == words[i].size()) numeric[c] = true;
  }
  compare(numeric, members(tables["rust_numeric"]), "numeric");
}

BOOST_AUTO_TEST_CASE(patterns_are_read_as_oniguruma_reads_them) {
  const auto parts = [](const std::string& pattern, std::string_view text) {
    const Regex regex(pattern, "test");
    Regex::Search search(regex, text);
    std::string result;
    for (size_t begin, end; search.next(begin, end);)
      result += "[" + std::string(text.substr(begin, end - begin)) + "]";
    return result;
  };
  BOOST_TEST(parts("\\p{N}{1,2}+", "12345 6") == "[12345][6]");  // + repeats an interval; in PCRE2 it is possessive
  BOOST_TEST(parts("a{,2}b", "aaab") == "[aab]");
  BOOST_TEST(parts("a{b|{", "a{b{") == "[a{b][{]");
  BOOST_TEST(parts("a{0,12345}b", "aab") == "[aab]");
  BOOST_TEST(parts("\\x41+|\\u00E9|\\x{1f600}", "AA\u00e9\U0001F600") == "[AA][\u00e9][\U0001F600]");
  BOOST_TEST(parts("^.", "a\nb\r\nc") == "[a][b][c]");
  BOOST_TEST(parts("(?i:'S)|x", "'ſx") == "['ſ][x]");
  BOOST_TEST(parts("x*", "axxb") == "[][xx][]");
  BOOST_TEST(parts("[]a]+", "a]b") == "[a]]");
  BOOST_TEST(parts("[](\\d]+", "](7)") == "[](7]");
  BOOST_TEST(parts("\\d+|\\D", "12\u0663a") == "[12\u0663][a]");
  BOOST_TEST(parts("[\\da]+", "a1 \u0663") == "[a1][\u0663]");
  BOOST_TEST(parts("[\\v\\n\\0]+", std::string_view("a\v\nb\0", 5)) == std::string("[\v\n][\0]", 7));
  BOOST_TEST(parts("\\w+", "m²½.") == "[m²½]");  // which are word characters outside of a class only
  BOOST_TEST(parts("[\\w]+", "m²½.") == "[m]");
  BOOST_TEST(parts("\\w+|[^\\w\\s]+", "(½) a") == "[(½)][a]");
}

BOOST_AUTO_TEST_CASE(patterns_that_are_not_supported) {
  const auto rejects = [](const std::string& pattern, const std::string& part) {
    BRAID_CHECK_FAILS(Regex(pattern, "file"), ErrorKind::input, "pattern in file", part);
  };
  rejects("(a", "missing closing parenthesis");
  rejects(" ?[^(\\s|[.,!?])]+", "'[' inside a class");
  rejects("[a-z&&[^b]]", "'&&'");
  rejects("(a)\\1", "escape '\\1'");
  rejects("\\9", "escape '\\9'");
  rejects("\\p{Klingon}", "property 'Klingon'");
  rejects("[\\P{L}]", "negated class");
  rejects("(?<name>a)", "group '(?<n'");
  rejects("a\\", "at the end");
  rejects("[a", "without ']'");
  rejects("\\X", "escape");
  rejects("a)", "without '('");
  for (const char* number : {"\\xZ", "\\x80", "\\x{110000}", "\\x{41", "\\u12", "\\ud800"})
    rejects(number, std::string("the code point behind '\\") + number[1] + "'");
}

BOOST_AUTO_TEST_CASE(endless_backtracking_is_an_error) {
  const Regex regex("(?:a+)+(?:b|c)", "file");
  const std::string text(200, 'a');
  Regex::Search search(regex, text);
  size_t begin, end;
  BRAID_CHECK_FAILS(search.next(begin, end), ErrorKind::input, "pattern of file", "backtracks");
}

BOOST_AUTO_TEST_CASE(long_words_need_no_stack) {
  const Regex regex("(?:[a-c]|d)+", "file");
  const std::string text(1 << 20, 'b');
  Regex::Search search(regex, text);
  size_t begin = 1, end = 0;
  BOOST_TEST(search.next(begin, end));
  BOOST_TEST(begin == 0u);
  BOOST_TEST(end == text.size());
}

BOOST_AUTO_TEST_CASE(hangul_composes) {
  BOOST_TEST(normal_form("\u110b\u1173\u11a7", NormalForm::nfc) == "\uc73c\u11a7");
  BOOST_TEST(normal_form("\u110b\u1173\u11a8", NormalForm::nfc) == "\uc73d");
  BOOST_TEST(normal_form("\uc73d", NormalForm::nfd) == "\u110b\u1173\u11a8");
}

BOOST_AUTO_TEST_CASE(many_marks_take_linear_time) {  // a bubble sort of them would take minutes
  std::string text = "a";
  for (int i = 0; i < 200000; ++i) text += "\u0301\u0323";
  const std::string sorted = normal_form(text, NormalForm::nfd);
  BOOST_TEST(sorted.size() == text.size());
  BOOST_TEST(sorted.substr(0, 5) == "a\u0323\u0323");
  BOOST_TEST(sorted.substr(sorted.size() - 4) == "\u0301\u0301");
}

BOOST_AUTO_TEST_CASE(ready_pipelines) {
  const auto words = [](const char* name, const char* text) {
    std::vector<std::string> result;
    text_pipeline(name).split(text, result);
    return result;
  };
  using Strings = std::vector<std::string>;
  BOOST_TEST(words("gpt-neox", "It's 1234 e\u0301\n") == (Strings{"It", "'s", "Ġ1234", "ĠÃ©", "Ċ"}));
  BOOST_TEST(words("llama-3", "IT'S 1234 e\u0301\n") == (Strings{"IT", "'S", "Ġ", "123", "4", "Ġe", "ÌģĊ"}));
  BRAID_CHECK_FAILS(text_pipeline("word"), ErrorKind::setting, "gpt-neox or llama-3", "found 'word'");
}

namespace {
json unigram_file() {
  return json::parse(R"({"version": "1.0", "added_tokens": [], "model": {"type": "Unigram", "unk_id": 0, "vocab":
      [["<unk>", 0], ["a", -1.5], ["ab", -2.0], ["b", -1.0], ["aa", -2.5], ["\u00e9", -3], ["xy", -1]]}})");
}
}  // namespace

// The sum of scores counts, the first of equal ones stays; unknown neighbours are one piece, looked up as a whole.
BOOST_AUTO_TEST_CASE(unigram_takes_the_best_path) {
  const auto ids = [&](const nlohmann::json& file, const std::string& text) {
    return parse_tokenizer(file.dump(), "t.json")->encode(text);
  };
  using Ids = std::vector<int32_t>;
  const nlohmann::json file = unigram_file();
  const Unigram model(Section(file["model"], "t.json", "model"), false);
  BOOST_TEST(*model.token(6) == "xy");
  BOOST_TEST(!model.token(7));
  BOOST_TEST(ids(file, "ab") == Ids({2}), boost::test_tools::per_element());
  BOOST_TEST(ids(file, "aab") == Ids({1, 2}), boost::test_tools::per_element());
  BOOST_TEST(ids(file, "aaa") == Ids({1, 4}), boost::test_tools::per_element());
  BOOST_TEST(ids(file, "a??\u00e9?") == Ids({1, 0, 5, 0}), boost::test_tools::per_element());
  BOOST_TEST(ids(file, "xyx") == Ids({6, 0}), boost::test_tools::per_element());
  nlohmann::json bytes = file;
  bytes["model"]["byte_fallback"] = true;
  for (const char* token : {"<0xC3>", "<0xBC>"}) bytes["model"]["vocab"].push_back(json::array({token, -9}));
  BOOST_TEST(ids(bytes, "\u00fc\u00fca") == Ids({7, 8, 7, 8, 1}), boost::test_tools::per_element());
  BOOST_TEST(ids(bytes, "\u00fc?") == Ids({0}), boost::test_tools::per_element());
  for (const auto& [place, value, part] : std::vector<std::tuple<const char*, nlohmann::json, const char*>>{
           {"/model/unk_id", nullptr, "unk_id: expected an integer from 0 to 6"},
           {"/model/unk_id", 7, "unk_id: expected an integer from 0 to 6"},
           {"/model/vocab", nlohmann::json::array(), "vocab: expected at least one token"},
           {"/model/vocab/1", json::array({"a"}), "vocab: expected pairs of a token and a score"},
           {"/model/vocab", "a", "vocab: expected a list"},
           {"/normalizer", {{"type", "Precompiled"}, {"precompiled_charsmap", "?"}}, "in base 64"},
           {"/normalizer", {{"type", "Precompiled"}, {"precompiled_charsmap", "/////w=="}}, "in base 64"}}) {
    nlohmann::json bad = file;
    bad[nlohmann::json::json_pointer(place)] = value;
    BRAID_CHECK_FAILS(parse_tokenizer(bad.dump(), "t.json"), ErrorKind::input, "tokenizer in t.json", part);
  }
}

// A table that leads outside of itself replaces nothing.
BOOST_AUTO_TEST_CASE(a_damaged_table_of_replacements_is_no_error) {
  nlohmann::json file = unigram_file();
  for (const char* table : {"BAAAAAD8//8=", "BAAAAP//////", "BAAAAAAAAAA="}) {
    file["normalizer"] = {{"type", "Precompiled"}, {"precompiled_charsmap", table}};
    BOOST_TEST(parse_tokenizer(file.dump(), "t.json")->encode("ab") == std::vector<int32_t>({2}),
               boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(what_is_no_unigram_is_rejected) {
  for (const char* entry : {R"("a")", R"(["a"])", R"(["a", -1, 5])", R"([1, -1])", R"(["a", "b"])"}) {
    nlohmann::json file = unigram_file();
    file["model"]["vocab"].push_back(json::parse(entry));
    BRAID_CHECK_FAILS(parse_tokenizer(file.dump(), "t.json"), ErrorKind::input,
                      "model.vocab: expected pairs of a token and a score, found ", entry[0] == '[' ? "[" : "\"a\"");
  }
  for (const char* table : {"BAAA~AD8//8=", "BAAA{AD8//8=", "BAAA", "\u00fc"}) {
    nlohmann::json file = unigram_file();
    file["normalizer"] = {{"type", "Precompiled"}, {"precompiled_charsmap", table}};
    BRAID_CHECK_FAILS(parse_tokenizer(file.dump(), "t.json"), ErrorKind::input,
                      "precompiled_charsmap: expected a double array and its texts, in base 64");
  }
}

BOOST_AUTO_TEST_CASE(unigram_takes_linear_time) {
  const nlohmann::json file = unigram_file();
  const BpeTokenizer tokenizer(Section(file, "t.json", ""));
  auto steps = [&, before = int64_t{0}](size_t n) mutable {
    std::string text;
    while (text.size() < n) text += "aab?";
    tokenizer.encode(text);
    const int64_t all = tokenizer.merge_steps(), own = all - before;
    before = all;
    return own;
  };
  steps(100);
  const int64_t once = steps(50'000), ten_times = steps(500'000);
  BOOST_TEST(once > 0);
  BOOST_TEST(ten_times <= 10 * once + 100);
}

BOOST_AUTO_TEST_CASE(word_piece_takes_the_longest_beginning) {
  nlohmann::json file = {{"version", "1.0"},
                         {"added_tokens", nlohmann::json::array()},
                         {"pre_tokenizer", {{"type", "WhitespaceSplit"}}},
                         {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}}},
                         {"model",
                          {{"type", "WordPiece"},
                           {"unk_token", "[U]"},
                           {"continuing_subword_prefix", "##"},
                           {"max_input_chars_per_word", 5},
                           {"vocab", {{"[U]", 0}, {"ab", 1}, {"a", 2}, {"##c", 3}, {"##bc", 4}, {".", 5}}}}}};
  const auto tokenizer = parse_tokenizer(file.dump(), "t.json");
  BOOST_TEST(tokenizer->name() == "word-piece");
  const std::vector<int32_t> ids = {1, 3, 2, 0, 0, 1, 3, 4, 5};
  BOOST_TEST(tokenizer->encode("abc a abd accccc abcbc .") == ids, boost::test_tools::per_element());
  BOOST_TEST(tokenizer->decode(ids) == "abc a [U] [U] abcbc.");
  file["model"]["unk_token"] = "none";
  BRAID_CHECK_FAILS(parse_tokenizer(file.dump(), "t.json"), ErrorKind::input, "unk_token: expected an entry");
  file["model"]["unk_token"] = "[U]";
  file["model"]["vocab"]["b"] = 2;  // which of the two would it decode to?
  for (const char* type : {"WordPiece", "WordLevel"}) {
    file["model"]["type"] = type;
    BRAID_CHECK_FAILS(parse_tokenizer(file.dump(), "t.json"), ErrorKind::input,
                      "model.vocab: expected one token with id 2, found 'a' and 'b'");
  }
}

BOOST_AUTO_TEST_SUITE_END()
