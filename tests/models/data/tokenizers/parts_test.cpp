// Normalizers, pre-tokenizers, regular expressions and tables, each alone.
#include <boost/test/unit_test.hpp>

#include "braid/models/data/tokenizers/decoder.h"
#include "braid/models/data/tokenizers/normalizer.h"
#include "braid/models/data/tokenizers/pre_tokenizer.h"
#include "braid/models/data/tokenizers/regex.h"
#include "braid/models/data/tokenizers/unicode.h"
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
  BOOST_TEST(parts("^.", "a\nb\r\nc") == "[a][b][c]");
  BOOST_TEST(parts("(?i:'S)|x", "'ſx") == "['ſ][x]");
  BOOST_TEST(parts("x*", "axxb") == "[][xx][]");
  BOOST_TEST(parts("[]a]+", "a]b") == "[a]]");
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
  rejects("\\p{Klingon}", "property 'Klingon'");
  rejects("[\\P{L}]", "negated class");
  rejects("(?<name>a)", "group '(?<n'");
  rejects("a\\", "at the end");
  rejects("[a", "without ']'");
  rejects("\\X", "escape");
  rejects("a)", "without '('");
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

BOOST_AUTO_TEST_SUITE_END()
