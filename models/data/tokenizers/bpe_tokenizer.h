// A tokenizer read from a tokenizer.json: normalizer, added tokens, pre-tokenizer, model, template, decoder. The model,
// which cuts words into tokens, is BPE, Unigram, WordPiece or WordLevel.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "braid/models/data/tokenizers/added_tokens.h"
#include "braid/models/data/tokenizers/bpe.h"
#include "braid/models/data/tokenizers/decoder.h"
#include "braid/models/data/tokenizers/normalizer.h"
#include "braid/models/data/tokenizers/post_processor.h"
#include "braid/models/data/tokenizers/pre_tokenizer.h"
#include "braid/models/data/tokenizers/tokenizer.h"
#include "braid/models/data/tokenizers/unigram.h"
#include "braid/models/data/tokenizers/word_piece.h"

namespace braid::models::text {

class BpeTokenizer final : public Tokenizer {
 public:
  // The root of a tokenizer.json. Error(input) names what is not supported, and where.
  explicit BpeTokenizer(const Section& root);

  const std::string& name() const override;
  int64_t vocab_size() const override { return static_cast<int64_t>(bytes_.size()); }
  int32_t eos_id() const override { return ends_.empty() ? -1 : ends_[0]; }
  std::vector<int32_t> end_ids() const override { return ends_; }
  int32_t pad_id() const override { return pad_; }
  bool is_special(int32_t id) const override;
  std::string_view token_bytes(int32_t id) const override;
  bool takes_any_bytes() const override { return false; }
  bool decodes_by_token() const override { return false; }
  void encode_text(std::string_view text, std::vector<int32_t>& tokens) const override;
  std::vector<int32_t> encode(std::string_view text, bool parse_specials = false) const override;
  std::vector<int32_t> with_template(std::span<const int32_t> tokens) const override;
  std::vector<int32_t> with_template(std::span<const int32_t> a, std::span<const int32_t> b) const override;
  std::string decode(std::span<const int32_t> tokens, bool skip_specials = false) const override;
  uint64_t fingerprint() const override { return fingerprint_; }
  std::vector<TokenizerFile> files() const override { return files_; }
  std::vector<std::string> notes() const override { return notes_; }

  int32_t id_of(const std::string& token) const;  // an added token or an entry of the vocabulary; -1: none
  // Set while loading a folder.
  void set_ends(std::vector<int32_t> ends, int32_t pad) { ends_ = std::move(ends), pad_ = pad; }
  void set_files(std::vector<TokenizerFile> files) { files_ = std::move(files); }
  void add_note(std::string note) { notes_.push_back(std::move(note)); }
  // Lookups and queue operations of all words cut so far, for tests.
  int64_t merge_steps() const;

 private:
  struct Scratch {
    std::string valid, normalized, unused;
    Words words;
    std::tuple<Bpe::Scratch, Unigram::Scratch, WordPiece::Scratch> of_model;
  };
  std::unique_ptr<Scratch> take_scratch() const;
  void encode(std::string_view text, bool as_text, std::vector<int32_t>& tokens) const;
  void encode_piece(std::string_view piece, bool at_start, bool as_text, std::vector<int32_t>& tokens,
                    Scratch& scratch) const;
  const std::string* token(int32_t id) const;

  Normalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  std::variant<Bpe, Unigram, WordPiece> model_;
  AddedTokens added_;
  PostProcessor post_processor_;
  Decoder decoder_;
  std::vector<std::string> bytes_;  // by id
  std::vector<bool> special_;
  uint64_t fingerprint_ = 0;
  std::vector<int32_t> ends_;  // the first one ends a document
  int32_t pad_ = -1;
  std::vector<TokenizerFile> files_;
  std::vector<std::string> notes_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Scratch>> scratch_;  // of threads that are not encoding now
};

}  // namespace braid::models::text
