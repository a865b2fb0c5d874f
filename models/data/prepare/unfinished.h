// The state that a stopped process leaves in the folder it was building, for another one to resume from.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "braid/models/data/prepare/chat.h"
#include "braid/models/data/prepare/output_folder.h"
#include "braid/models/data/prepare/source.h"
#include "braid/models/data/prepare/split_writer.h"
#include "braid/models/data/text/manifest.h"

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

// The same of samples (samples.h): each split is a stream of tokens and one of their marks.
struct UnfinishedSamples {
  bool validation = false;
  SourcePosition at;
  int64_t bytes_read = 0;
  SplitProgress train, train_marks, val, val_marks;
  std::vector<Sample> held;  // none or one
  double held_place = 0;
  int64_t counted = 0, longest = 0, unanswered = 0;
  std::vector<std::string> notes;
};

// Adds a note, up to a number of them.
void add_note(std::vector<std::string>& notes, std::string message);

// When the state is saved: every `seconds`, but rarely where saving takes long.
class SaveTimer {
 public:
  SaveTimer(double seconds, bool saved) : seconds_(seconds), saved_(saved) {}
  void read(int64_t bytes) { read_ += bytes > 0 ? bytes : 0; }  // of the inputs
  bool due() const;
  bool worth_saving() const;  // when a process is asked to stop: much was read, or there is a state already
  bool saved() const { return saved_; }
  void save(const std::function<void()>& write);

 private:
  using Clock = std::chrono::steady_clock;
  double seconds_;
  bool saved_;
  int64_t read_ = 0;  // since the last save
  Clock::time_point last_ = Clock::now();
  Clock::duration cost_{};
};

inline constexpr const char* unfinished_name = "unfinished.json";
inline constexpr const char* seen_name = "seen-documents.bin";

// Stands for the options and for names, sizes and times of the inputs: all that the bytes of the splits depend on.
std::string signature_of(const std::vector<std::string>& options, const std::vector<const TextSource*>& sources);

// Work of another signature is not resumed.
void save_unfinished(const PreparedFolder& folder, const std::string& signature, const Unfinished& state);
void save_unfinished(const PreparedFolder& folder, const std::string& signature, const UnfinishedSamples& state);
// Nothing when there is none, it has another signature, or it cannot be read.
std::optional<Unfinished> load_unfinished(const PreparedFolder& folder, const std::string& signature);
std::optional<UnfinishedSamples> load_unfinished_samples(const PreparedFolder& folder, const std::string& signature);

}  // namespace braid::models::text
