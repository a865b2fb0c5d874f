// Exercise 6: byte-pair encoding. Ids 0 to 255 are the bytes of that value; merge number r (its rank, from 0) makes the
// token 256 + r of two tokens that stand side by side.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "course/checks.h"

namespace exercise {

using Ids = std::vector<int32_t>;
using Pair = std::pair<int32_t, int32_t>;  // the ids of the left and the right token
using Merges = std::vector<Pair>;          // by rank

// The bytes of a text, which may be any bytes: ids 0 to 255.
inline Ids bytes(std::string_view text) { throw course::NotWritten("bytes()"); }

// How often each pair of neighbours occurs in all words together. Pairs may overlap: "aaa" has two. No pair spans two
// words.
inline std::map<Pair, int64_t> count_pairs(const std::vector<Ids>& words) { throw course::NotWritten("count_pairs()"); }

// `ids` with the token `made` for each `pair`, from left to right; the token that it makes is not read again.
inline Ids merged(const Ids& ids, Pair pair, int32_t made) { throw course::NotWritten("merged()"); }

// The first n merges of these words, fewer where no pair is left. Each is the most frequent pair in the words as the
// merges before have made them; ties: the smaller id of the left token, then of the right.
inline Merges train(const std::vector<std::string>& words, int n) { throw course::NotWritten("train()"); }

// The tokens of one word: of all its pairs that are merges, the one of the lowest rank is merged, wherever it stands,
// until none is left.
inline Ids encode(std::string_view word, const Merges& merges) { throw course::NotWritten("encode()"); }

// The bytes that the tokens stand for.
inline std::string decode(const Ids& ids, const Merges& merges) { throw course::NotWritten("decode()"); }

}  // namespace exercise
