// A prepared data folder, read as windows of tokens.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "braid/models/data/text/manifest.h"
#include "braid/models/data/text/packing.h"
#include "braid/models/data/text/shard.h"
#include "braid/models/data/tokenizers/tokenizer.h"

namespace braid::models::text {

enum class Split { train, val };
const char* name(Split split);  // "train", "val"

// Document masking: whether attention crosses the documents of a sequence.
enum class DocumentAttention : uint8_t {
  joined,    // tokens attend to the documents before their own, as if the sequence were one text
  separate,  // tokens attend to their own document alone, in which positions count from 0
};

struct SequenceOptions {
  DocumentAttention documents = DocumentAttention::joined;
  // For data with samples:
  Packing packing = Packing::first_fit;
  bool cut_long_samples = false;  // samples longer than a sequence are truncated; else they are skipped
};

// A sample of a batch, T tokens each.
struct Sequence {
  std::vector<int32_t> ids, targets;  // a target of -100 is not counted
  std::vector<int32_t> positions;     // of separate documents; else empty
};

// Counts of the samples of a split.
struct SampleCounts {
  int64_t samples = 0, longest = 0;         // all of them, tokens of the longest
  int64_t too_long = 0;                     // longer than a sequence: skipped or truncated
  int64_t without_target = 0;               // no counted target, after truncation: skipped
  int64_t packed_tokens = 0, capacity = 0;  // tokens in sequences, and all positions there
};

// Windows tile the token stream of a split: window i holds the T+1 tokens from i*T on, T = seq_len; inputs are its
// first T tokens, targets its last T, so every token but the first is a target exactly once. Documents follow one
// another, each ended by <|endoftext|>. A remainder that does not fill a window is dropped.
//
// Samples are packed into sequences, each sample in one piece: of n tokens the first n-1 are inputs, and the counted
// ones of the last n-1 are targets; a sample without such a target is skipped. The rest of a sequence is padding, a
// document of its own. Safe to read from several threads at once.
//
// rest() is a data set of what a part of the sequences has left unread, in sequences of another length: the unread
// samples packed anew, or the unread stretches of the text joined in their order and tiled anew. A token is a target of
// the one or of the other. Where two stretches meet a document begins; the last target of a stretch is still its own.
class Dataset {
 public:
  // Checks the manifest, the tokenizer and every shard's header; the tokens are checked as they are read. Reads all
  // marks of samples. Error(input) when anything does not fit together, or the split is too small for one sequence.
  Dataset(const std::string& folder, Split split, int64_t seq_len, const SequenceOptions& options = {});

  int64_t size() const { return sequences_; }   // number of sequences
  int64_t seq_len() const { return seq_len_; }  // T
  int64_t tokens() const { return starts_.back(); }
  // What the sequences `read` do not contain, in sequences of seq_len tokens; size() may be 0. Shares files and
  // tokenizer.
  Dataset rest(const std::vector<int64_t>& read, int64_t seq_len) const;
  // Sequence i. The positions of a document that began in an earlier window count from its first token here.
  Sequence sequence(int64_t i) const;
  bool separates_documents() const { return options_.documents == DocumentAttention::separate; }

  // For data without samples.
  void window(int64_t i, std::span<int32_t> into) const;  // into: T+1 tokens
  std::vector<int32_t> window(int64_t i) const;

  void read(int64_t first, std::span<int32_t> into) const;  // any tokens of the split
  bool has_samples() const { return manifest_.samples.has_value(); }
  const SampleCounts& sample_counts() const { return counts_; }
  // The samples of sequence i, by number, and the tokens [begin, end) of a sample.
  std::span<const int64_t> samples_of(int64_t i) const { return packed_.of(i); }
  std::pair<int64_t, int64_t> sample(int64_t number) const;
  void read_marks(int64_t first, std::span<int32_t> into) const;

  const Manifest& manifest() const { return manifest_; }
  // Identifies the data and, for samples, how they are packed.
  const std::string& fingerprint() const { return fingerprint_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
  using Shards = std::vector<std::shared_ptr<const ShardReader>>;
  // A part of the text: inputs [first, first + size) of the split, which are [at, at + size) of the joined stretches.
  struct Stretch {
    int64_t at, first, size;
  };
  void open_shards(const SplitInfo& split);
  void find_samples(const SplitInfo& split);
  void pack_samples();
  void tile();
  void read(const Shards& shards, int64_t first, std::span<int32_t> into) const;
  std::vector<Stretch> stretches(int64_t begin, int64_t end) const;
  Sequence packed_sequence(int64_t i) const;

  int64_t seq_len_;
  SequenceOptions options_;
  int64_t sequences_ = 0;
  Manifest manifest_;
  std::string fingerprint_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::shared_ptr<OpenFiles> files_;    // a data set may have more shards than a process may open files
  Shards shards_, marks_;               // marks_: of samples, one for each shard
  std::vector<int64_t> starts_;         // first token of each shard, and the end: one more than shards
  std::vector<Stretch> stretches_;      // of text, in order; one unless this is a rest()
  std::vector<int64_t> sample_starts_;  // as starts_, of each sample
  std::vector<bool> read_samples_;      // of a rest(): those that it leaves out; empty: none
  std::vector<int64_t> first_targets_;  // of each sample: inputs until the first counted target; none: INT64_MAX
  PackedSequences packed_;
  SampleCounts counts_;
};

}  // namespace braid::models::text
