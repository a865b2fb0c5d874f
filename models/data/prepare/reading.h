// The text of `braid prepare`: documents of the inputs become tokens of the two splits, on all processors, in order.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "braid/models/data/prepare/prepare.h"
#include "braid/models/data/prepare/splits.h"

namespace braid::models::text {

class Reading {
 public:
  // Options, tokenizer and splits must outlive this object.
  Reading(const PrepareOptions& options, const Tokenizer& tokenizer, Splits& splits)
      : options_(options), tokenizer_(tokenizer), splits_(splits) {}

  // Reads the inputs up to the end and moves the ends of files to validation where that is due.
  void inputs(TextSource& source, const std::function<void(const Piece&)>& report);
  // Reads the files that only validate.
  void validation(TextSource& source, const std::function<void(const Piece&)>& report);
  bool each_file() const { return each_file_; }  // each file was split as if it were alone

  std::vector<ValidationFile> validation_files;

 private:
  struct Result {
    std::vector<int32_t> tokens;
    double draw = 0;  // in [0, 1)
    Hash128 hash;
    std::string storage;
    bool empty = false;
    int64_t nul = -1;  // where text has its first NUL byte
    Repairs repairs;
  };
  void tokenize(const TextSource& source, const Piece& piece, Result& result) const;
  // False when the piece is left out: it is empty, or its document was seen before.
  bool accept(const TextSource& source, const Piece& piece, const Result& result);
  void add(SplitWriter& split, const Piece& piece, const Result& result);
  void read(TextSource& source, const std::function<void(const Piece&)>& report,
            const std::function<void(const Piece&, const Result&)>& take);
  void make_validation(const TextSource& source, double fraction);

  const PrepareOptions& options_;
  const Tokenizer& tokenizer_;
  Splits& splits_;
  bool to_val_ = false, dropped_ = false;  // where the document at hand goes; resumed ones go to train
  std::vector<Result> results_;            // by the place in a batch
  int64_t nul_noted_ = 0;                  // number of the file
  bool each_file_ = false;
};

}  // namespace braid::models::text
