// The state that a stopped process leaves in the folder it was building, for another one to go on from.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "braid/models/text/manifest.h"
#include "braid/models/text/prepare/output_folder.h"
#include "braid/models/text/prepare/source.h"
#include "braid/models/text/prepare/split_writer.h"

namespace braid::models::text {

// The tokens and documents of a file in each split.
struct FileShare {
  int64_t file = 0;  // its number
  TokenSpan train;
  int64_t train_documents = 0;                // before the file
  int64_t val_documents = 0, val_tokens = 0;  // before the file; of the file once it is finished
};

// Everything that reading on depends on, at a place between two pieces of the inputs.
struct Unfinished {
  bool validation = false;  // reads the files of --val
  SourcePosition at;
  int64_t bytes_read = 0;  // of the files, compressed size
  SplitProgress train, val;
  bool to_val = false, dropped = false;  // where the document at hand goes
  std::vector<FileShare> files;
  std::vector<ValidationFile> validation_files;
  int64_t documents_seen = 0, duplicates = 0;
  std::vector<std::string> notes;
};

inline constexpr const char* unfinished_name = "unfinished.json";
inline constexpr const char* seen_name = "seen-documents.bin";

// `signature` stands for the options and the inputs: work on others is not gone on with.
void save_unfinished(const PreparedFolder& folder, const std::string& signature, const Unfinished& state);
// Nothing when there is none, it has another signature, or it cannot be read.
std::optional<Unfinished> load_unfinished(const PreparedFolder& folder, const std::string& signature);

}  // namespace braid::models::text
