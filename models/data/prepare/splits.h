// The splits of a data folder while the inputs are read, with the journal by which a stopped call is resumed.
//
// A unit of the journal is a finished shard of `train`, with what was drawn for validation meanwhile, in a shard of
// `drawn`; where --val names files, also a shard of `val`. Its line has the place in the inputs at which the next unit
// begins, so that what followed the last line is made again.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "braid/models/data/prepare/document_hash.h"
#include "braid/models/data/prepare/read_ahead.h"
#include "braid/models/data/prepare/split_writer.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/journal.h"

namespace braid::models::text {

// A place between two pieces of the inputs.
struct Place {
  bool validation = false;  // in the files of --val; the inputs are read
  SourcePosition at;
  int64_t bytes_read = 0;  // of the files, compressed size
  int64_t duplicates = 0;  // documents that were left out
  int64_t ill_formed = 0;  // parts of text that were no UTF-8
  // Samples (samples.h): the one held back for validation, and counts.
  std::vector<Sample> held;  // none or one
  double held_draw = 0;
  int64_t counted = 0, longest = 0, unanswered = 0;
  // What there was before; set by Splits.
  int64_t tokens = 0;  // of train, later of val
  int64_t train_documents = 0, drawn_documents = 0, val_documents = 0, seen = 0, notes = 0, files = 0;
};

// The tokens and documents of the splits before a file: its own are the difference to the next one.
struct FileStart {
  int64_t file = 0;  // its number
  int64_t train_tokens = 0, train_documents = 0, val_tokens = 0, val_documents = 0;
};

class Splits {
 public:
  // Reads the journal of an earlier call with the same signature; other work is removed. `tokenizer` is there when
  // begin() is called; it and the folder must outlive this object.
  Splits(const PreparedFolder& folder, const std::string& signature, const std::unique_ptr<Tokenizer>& tokenizer,
         int64_t shard_tokens, bool dedup);
  Splits(const Splits&) = delete;
  Splits& operator=(const Splits&) = delete;

  bool has_journal() const { return journal_.has_value(); }
  void begin(bool keep);               // before anything is written; keep: the folder is worth it without a unit, too
  bool keep() const { return keep_; }  // another call resumes from what is there

  // Reads on from `place` to the end of the source; work and take as in ReadAhead.
  void read(TextSource& source, const ReadAhead::Start& start, const ReadAhead::Work& work,
            const ReadAhead::Take& take);
  void begin_file(int64_t file);
  void end_inputs();                            // closes train
  void end_validation();                        // closes val
  std::pair<int64_t, int64_t> written() const;  // documents and tokens
  void add_note(std::string message);           // up to a number of them
  void add_repairs(const TextSource& source, const Piece& piece,
                   const Repairs& repairs);  // counted, noted once a file; when its tokens are written

  SplitWriter train, drawn, val;
  std::optional<SeenDocuments> seen;  // with dedup
  Place place;
  std::vector<FileStart> files;  // those with a part in the splits
  std::vector<std::string> notes;
  std::string problem;  // why work of an earlier call is not used, as a note

 private:
  void open();
  void begin_piece();  // a shard that the next piece finishes is resumed from here
  std::string take(const nlohmann::json& unit);
  void record(const SplitWriter& split);

  const PreparedFolder& folder_;
  std::string signature_;
  bool dedup_, keep_ = false;
  std::optional<io::Journal> journal_;
  int64_t repaired_file_ = 0;  // its number, of the file that was noted last
  size_t recorded_notes_ = 0, recorded_files_ = 0;
};

inline constexpr const char* journal_name = "journal.jsonl";

// After a stop or an error: leaves the folder to another call where that is worth it, and then throws the error with a
// word about it.
void keep_work(const std::optional<Splits>& splits, PreparedFolder& folder, const Error* error = nullptr);

// Stands for the options and for names, sizes and times of the inputs: all that the bytes of the splits depend on.
std::string signature_of(const std::vector<std::string>& options, const std::vector<const TextSource*>& sources);

}  // namespace braid::models::text
