// The text of `braid prepare`: documents of the inputs become tokens of the two splits, on all processors, in order.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "braid/models/data/prepare/document_hash.h"
#include "braid/models/data/prepare/prepare.h"
#include "braid/models/data/prepare/unfinished.h"

namespace braid::models::text {

class Reading {
 public:
  // Continues from `state`. `tokenizer` and `folder` must outlive this object. Error(input) when the folder lacks what
  // the state says.
  Reading(const PrepareOptions& options, const Tokenizer& tokenizer, const PreparedFolder& folder,
          std::string signature, Unfinished state, bool resumed);

  // Reads the inputs up to the end and moves the ends of files to validation where that is due.
  void inputs(TextSource& source, const std::function<void(const Piece&)>& report);
  // Reads the files that only validate.
  void validation(TextSource& source, const std::function<void(const Piece&)>& report);
  bool each_file() const { return each_file_; }  // each file was split as if it were alone
  // Stopped by the user between two pieces: saves the state where that is worth it. True: another process can resume.
  bool save_on_stop();
  std::vector<std::string> files() const;  // that it needs in the folder
  void save();
  bool saved() const { return timer_.saved(); }  // there is a state to resume from

  SplitWriter train, val;
  Unfinished state;  // its splits are set only when it is saved

 private:
  struct Result {
    std::vector<int32_t> tokens;
    double place = 0;  // in [0, 1), by which a document is drawn
    Hash128 hash;
    std::string storage;
    bool empty = false;
    int64_t nul = -1, ill_formed = -1;  // where text has its first NUL byte, its first byte that is no UTF-8
  };
  void tokenize(const TextSource& source, const Piece& piece, Result& result) const;
  // False when the piece is left out: it is empty, or its document was seen before.
  bool accept(const TextSource& source, const Piece& piece, const Result& result);
  void add(SplitWriter& split, const Piece& piece, const Result& result);
  void read(TextSource& source, const std::function<void(const Piece&)>& report,
            const std::function<void(const Piece&, const Result&)>& take);
  void end_file();
  void move_tails(const TextSource& source, double fraction);

  const PrepareOptions& options_;
  const Tokenizer& tokenizer_;
  const PreparedFolder& folder_;
  std::string signature_;
  std::optional<SeenDocuments> seen_;
  std::vector<Result> results_;                   // by the place in a batch
  int64_t nul_noted_ = 0, ill_formed_noted_ = 0;  // numbers of the files
  bool each_file_ = false;
  SaveTimer timer_;
};

}  // namespace braid::models::text
