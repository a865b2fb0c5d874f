// dataset.json: the contents of a prepared data folder, so that damage, mixed-up files and a changed tokenizer are
// found.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "braid/models/data/tokenizers/tokenizer.h"

namespace braid::models::text {

struct ShardInfo {
  std::string file;  // a name in the same folder
  int64_t tokens = 0;
  uint32_t checksum = 0;  // ShardHeader::checksum
  // For samples, the shard with a mark for every token here.
  std::string marks = "";
  uint32_t marks_checksum = 0;
};

// The bits of a mark.
inline constexpr int32_t kCountedMark = 1;  // the token is a target
inline constexpr int32_t kFirstMark = 2;    // the token begins a sample
inline constexpr int64_t kMarkKinds = 4;    // the vocabulary of a shard of marks

struct SplitInfo {
  int64_t tokens = 0;
  int64_t documents = 0;
  std::vector<ShardInfo> shards;
};

// How the text of the validation split was chosen.
enum class Validation {
  documents,  // whole documents by a hash, or the end of the only file
  each_file,  // a share of each file
  given,      // files that the user named
};

struct ValidationFile {
  std::string file;  // path as it was given
  int64_t tokens = 0;
  bool tail = false;  // the end of the file
};

// The documents are samples for fine-tuning. All empty: prompts and answers as they are, else the template of their
// turns (prepare/chat.h).
struct SampleInfo {
  std::string begin, turn;
  std::string folder = "";   // the text of the tokenizer's own template, in the place of both
  bool preferences = false;  // documents 2 k and 2 k + 1 are the chosen and the rejected sequence of pair k
  bool operator==(const SampleInfo&) const = default;
};

struct TaskFileInfo {  // evaluation items of the built-in tasks
  std::string file;
  int64_t samples = 0;
  uint32_t checksum = 0;  // CRC-32C of the file
};

struct Manifest {
  std::string tokenizer;
  uint64_t tokenizer_fingerprint = 0;
  int64_t vocab_size = 0;
  uint64_t seed = 0;        // of the split into train and val
  double val_fraction = 0;  // requested
  Validation validation = Validation::documents;
  SplitInfo train, val;
  std::vector<TaskFileInfo> tasks;
  std::optional<SampleInfo> samples;
  std::string fingerprint;  // of everything above, 16 hex digits: the identity of the data
  // Not part of the identity. Empty for Validation::documents.
  std::vector<ValidationFile> validation_files;
  std::map<std::string, uint32_t> files;  // CRC-32C of the tokenizer's; empty in folders of an older Braid
};

inline constexpr const char* manifest_name = "dataset.json";

// Writes folder/dataset.json and sets the fingerprint. tokenizer: its files, which lie beside it.
void write_manifest(const std::string& folder, Manifest& manifest, const std::vector<TokenizerFile>& tokenizer = {});
// Error(input) naming the file and the field when it, or a file of the tokenizer, is damaged or was edited.
Manifest read_manifest(const std::string& folder);
inline bool holds_preferences(const Manifest& manifest) { return manifest.samples && manifest.samples->preferences; }

}  // namespace braid::models::text
