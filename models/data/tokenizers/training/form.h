// The published forms of a byte-level BPE tokenizer that can be trained: how text becomes words, which special tokens
// there are, and the tokenizer.json that results.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "braid/models/data/tokenizers/normalizer.h"
#include "braid/models/data/tokenizers/pre_tokenizer.h"
#include "braid/models/data/tokenizers/training/merges.h"
#include "braid/models/data/tokenizers/training/word_counts.h"

namespace braid::models::text {

inline constexpr const char* bpe_forms[] = {"gpt-neox", "llama-3"};

class BpeForm {
 public:
  explicit BpeForm(const std::string& name);  // one of bpe_forms; Error(setting) otherwise

  // Adds the words of a text, in bytes. Safe in several threads with a `counts` of each.
  void count(std::string_view text, WordCounts& counts) const;
  // Vocabulary and merges of `vocab_size` ids in all, special tokens and the 256 bytes included: 0 and 1 are special in
  // the form of GPT-NeoX, the last three in that of Llama-3. The same as the trainer of Hugging Face `tokenizers` makes
  // of these words. Error(setting) when the bytes do not fit.
  BpeVocabulary train(const WordCounts& counts, int64_t vocab_size,
                      const std::function<void(int64_t ids)>& progress = {}) const;
  // tokenizer.json and tokenizer_config.json, each complete or not at all.
  void save(const BpeVocabulary& vocabulary, const std::string& folder) const;

 private:
  bool llama_;
  TextPipeline pipeline_;
  Normalizer normalizer_;
  PreTokenizer pre_tokenizer_;
};

}  // namespace braid::models::text
