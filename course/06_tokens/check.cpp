// Checks of exercise 6: against merges that Braid's trainer made, and against Braid's tokenizer with the same merges.
#include EXERCISE

#include "course/06_tokens/byte_level.h"
#include "course/checks.h"

using exercise::Ids;
using exercise::Merges;

namespace {

// What braid prepare FILE --train-bpe 278 makes of the words below, one on each line, with the ids of the exercise.
const Merges kMerges = {{104, 101}, {108, 108}, {115, 256}, {257, 115}, {115, 101}, {116, 256}, {258, 259},
                        {114, 101}, {260, 97},  {260, 259}, {97, 263},  {104, 111}, {115, 267}, {268, 263},
                        {97, 110},  {98, 121},  {102, 111}, {105, 102}, {111, 102}, {111, 110}};
const char* const kText =
    "she sells sea shells by the sea shore and the shells she sells are sea shells for sure so if she sells shells on "
    "the shore then the shells she sells are the shells of the sea";

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (c == ' ') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

std::string str(const Ids& ids) {
  std::string out;
  for (const int32_t id : ids) out += (out.empty() ? "" : " ") + std::to_string(id);
  return "(" + out + ")";
}

void expect_ids(const std::string& what, const Ids& found, const Ids& expected) {
  course::expect(found == expected, what, ": expected ", str(expected), ", found ", str(found));
}

void expect_merges(const Merges& found, const Merges& expected) {
  for (size_t i = 0; i < std::min(found.size(), expected.size()); ++i)
    expect_ids(course::words("merge ", i), {found[i].first, found[i].second}, {expected[i].first, expected[i].second});
  course::expect(found.size() == expected.size(), "expected ", expected.size(), " merges, found ", found.size());
}

void expect_count(const std::vector<Ids>& words, exercise::Pair pair, int64_t expected) {
  const auto counts = exercise::count_pairs(words);
  const int64_t found = counts.contains(pair) ? counts.at(pair) : 0;
  course::expect(found == expected, "pair ", str({pair.first, pair.second}), ": expected a count of ", expected,
                 ", found ", found);
}

const char* const kTexts[] = {"shells",
                              "the shore",
                              "Gr\xC3\xB6\xC3\x9F"
                              "e",
                              "\xE6\xB5\xB7",
                              "\xF0\x9F\x90\x9A",
                              "a\"b\\c\n\t",
                              ""};

}  // namespace

int main() {
  course::Checks check;
  check("bytes: any text is a list of numbers from 0 to 255", "char may be signed: convert to unsigned char first", [] {
    expect_ids("abc", exercise::bytes("abc"), {97, 98, 99});
    expect_ids("o with two dots", exercise::bytes("\xC3\xB6"), {195, 182});
    expect_ids("a shell", exercise::bytes("\xF0\x9F\x90\x9A"), {240, 159, 144, 154});
  });
  check("count_pairs: neighbours within a word", "walk over positions 1 to size - 1; an empty word has none", [] {
    const std::vector<Ids> words = {{1, 2, 1, 2}, {1, 1, 1}, {}, {2}, {1, 2}};
    expect_count(words, {1, 2}, 3);
    course::hint("an order matters: (2, 1) is not (1, 2); and no pair spans two words");
    expect_count(words, {2, 1}, 1);
    course::hint("pairs may overlap: 1 1 1 has two of them");
    expect_count(words, {1, 1}, 2);
    course::hint("no pair spans two words");
    expect_count(words, {2, 2}, 0);
  });
  check("merged: from left to right", "after a pair continue behind its second token", [] {
    expect_ids("1 2 3 1 2", exercise::merged({1, 2, 3, 1, 2}, {1, 2}, 9), {9, 3, 9});
    expect_ids("five times 1, the pair 1 1", exercise::merged({1, 1, 1, 1, 1}, {1, 1}, 9), {9, 9, 1});
    course::hint("the last token has no right neighbour: it stays");
    expect_ids("2 1", exercise::merged({2, 1}, {1, 2}, 9), {2, 1});
    expect_ids("no tokens", exercise::merged({}, {1, 2}, 9), {});
  });
  check("train: the line of the chapter", "count again after each merge; a tie goes to the smaller ids", [] {
    expect_merges(exercise::train({"low", " lower", " lowest"}, 5),
                  {{108, 111}, {256, 119}, {32, 257}, {258, 101}, {115, 116}});
  });
  check("train: the 20 merges that Braid's trainer makes", "merge number r makes the token 256 + r",
        [] { expect_merges(exercise::train(words_of(kText), 20), kMerges); });
  check("train: no pair is left", "stop where the counts are empty", [] {
    expect_merges(exercise::train({"ab", "a", ""}, 9), {{97, 98}});
  });
  check("encode: the lowest rank first, as Braid's tokenizer",
        "begin with the bytes, and merge until no pair of neighbours is a merge", [] {
          expect_ids("shells", exercise::encode("shells", kMerges), {262});
          course::hint("the lowest rank of all pairs of the word, wherever it stands; then look at all pairs again");
          const Merges crossed = {{98, 99}, {97, 98}, {97, 256}, {257, 256}, {99, 97}};  // bc, ab, abc, abbc, ca
          uint32_t state = 1;
          for (const bool trained : {true, false}) {
            const Merges& merges = trained ? kMerges : crossed;
            const auto braids = chapter::tokenizer_of(merges);
            for (int i = 0; i < 500; ++i) {
              std::string word;
              for (int n = 0; n < 1 + i % 12; ++n) {
                const uint32_t random = (state = state * 1664525 + 1013904223) >> 28;
                word += trained ? "shelrato"[random / 2] : "abc"[random % 3];
              }
              expect_ids(course::words(word, " with the merges ", trained ? "above" : "b+c, a+b, a+bc, ab+bc, c+a"),
                         exercise::encode(word, merges), braids->encode(word));
            }
          }
        });
  check("encode: any text in UTF-8", "bytes without a merge stay as they are", [] {
    const auto braids = chapter::tokenizer_of(kMerges);
    for (const std::string text : kTexts) expect_ids(text, exercise::encode(text, kMerges), braids->encode(text));
  });
  check("decode: the bytes of every token", "a token of a merge is its left one and its right one, which may be merges",
        [] {
          const auto braids = chapter::tokenizer_of(kMerges);
          for (int32_t id = 0; id < 276; ++id) {
            const std::string expected(braids->token_bytes(id)), found = exercise::decode({id}, kMerges);
            course::expect(found == expected, "token ", id, ": expected '", expected, "', found '", found, "'");
          }
          course::hint("the bytes of all tokens one after the other; none for no tokens");
          for (const std::string text : kTexts) {
            const std::string found = exercise::decode(exercise::encode(text, kMerges), kMerges);
            course::expect(found == text, "decoded: expected '", text, "', found '", found, "'");
          }
        });
  return check.result();
}
