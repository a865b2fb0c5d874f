// A prepared data folder, read as windows of tokens.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "braid/models/text/manifest.h"
#include "braid/models/text/shard.h"
#include "braid/models/text/tokenizer.h"

namespace braid::models::text {

enum class Split { train, val };
const char* name(Split split);  // "train", "val"

// How the documents of a sequence meet in attention.
enum class DocumentAttention : uint8_t {
  joined,    // tokens attend to the documents before their own, as if the sequence were one text
  separate,  // tokens attend to their own document alone, in which positions count from 0
};

// A sample of a batch, T tokens each.
struct Sequence {
  std::vector<int32_t> ids, targets;
  std::vector<int32_t> positions;  // of separate documents; else empty
};

// Windows tile the token stream of a split: window i holds the T+1 tokens from i*T on, T = seq_len; inputs are its
// first T tokens, targets its last T, so every token but the first is a target exactly once. Documents follow one
// another, each ended by <|endoftext|>. A remainder that does not fill a window is left out. Safe to read from several
// threads at once.
class Dataset {
 public:
  // Checks the manifest, the tokenizer and every shard's header; the tokens are checked as they are read.
  // Error(input) when anything does not fit together, or the split is too small for one window.
  Dataset(const std::string& folder, Split split, int64_t seq_len,
          DocumentAttention documents = DocumentAttention::joined);

  int64_t size() const { return windows_; }     // number of windows
  int64_t seq_len() const { return seq_len_; }  // T
  int64_t tokens() const { return starts_.back(); }
  void window(int64_t i, std::span<int32_t> into) const;  // into: T+1 tokens
  std::vector<int32_t> window(int64_t i) const;
  // Window i as inputs and targets. A document that began in the window before counts from 0 at its first token here.
  Sequence sequence(int64_t i) const;
  bool separates_documents() const { return documents_ == DocumentAttention::separate; }
  void read(int64_t first, std::span<int32_t> into) const;  // any tokens of the split
  const Manifest& manifest() const { return manifest_; }
  const std::string& fingerprint() const { return manifest_.fingerprint; }  // the identity of the data
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
  Split split_;
  int64_t seq_len_;
  DocumentAttention documents_;
  int64_t windows_ = 0;
  Manifest manifest_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::shared_ptr<OpenFiles> files_;  // a data set may have more shards than a process may open files
  std::vector<ShardReader> shards_;
  std::vector<int64_t> starts_;  // first token of each shard, and the end: one more than shards
};

}  // namespace braid::models::text
