// Byte-pair merges from counted words: the algorithm of the trainer of Hugging Face `tokenizers`, with its order of
// ties, so that the same words give the same vocabulary and the same merges.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::models::text {

struct BpeOptions {
  int64_t vocab_size = 30000;  // special tokens and alphabet included, which are never left out
  int64_t min_frequency = 0;   // of a pair; pairs that occur less often are not merged
  // Ids 0, 1, ...; they are not looked for in the text.
  std::vector<std::string> special_tokens;
  // Characters of the vocabulary besides those of the words; the first character of each string counts.
  std::vector<std::string> initial_alphabet;
  int64_t max_token_length = 0;           // characters; 0: no bound
  std::string continuing_subword_prefix;  // before every character of a word but the first
  std::string end_of_word_suffix;         // behind the last character of a word
};

struct CountedWord {
  std::string_view text;  // UTF-8
  int64_t count = 0;
};

struct BpeVocabulary {
  std::vector<std::string> tokens;                  // by id
  std::vector<std::pair<int32_t, int32_t>> merges;  // ids of the left and the right token, by rank
};

// Merges the commonest pair of neighbours until the vocabulary is full or no pair is common enough. Ties: the smaller
// id of the left token, then of the right. The order of the words makes no difference; neither does the number of
// threads. With a prefix or suffix the ids of affixed characters follow the sorted words.
// `progress` is called now and then with the size of the vocabulary and may throw to stop.
// Error(setting) when a count or size is negative; Error(input) when a word is not UTF-8.
BpeVocabulary train_merges(std::span<const CountedWord> words, const BpeOptions& options,
                           const std::function<void(int64_t ids)>& progress = {});

}  // namespace braid::models::text
