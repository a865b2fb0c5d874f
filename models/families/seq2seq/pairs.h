// Pairs of sequences that the library generates, so that an encoder-decoder trains without any file. A pair is a
// function of the task, the split and its index alone.
//
//   dates     "tuesday, the 3rd of march 1987", "3.3.87", "day 62 of 1987"  ->  "1987-03-03"
//   sort      8 to 16 letters  ->  the same in alphabetical order
//   reverse   8 to 16 letters  ->  the same in reverse order
//
// No answer of the validation split occurs in the training split: days, or letters, that were never trained on.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "braid/models/batch.h"
#include "braid/models/data/text/dataset.h"
#include "braid/tensor/random.h"

namespace braid::models {

// The prefix of a task in data.path, which otherwise names a folder: data.path=pairs:dates.
inline constexpr const char* kPairsPrefix = "pairs:";
std::vector<std::string> pair_task_names();

// Symbols: fill, begin, end, then the characters " ,-./", digits and small letters.
inline constexpr int32_t kPairFill = 0, kPairBegin = 1, kPairEnd = 2;
inline constexpr int64_t kPairVocabulary = 44;

struct Pair {
  std::string source, target;
};

class PairTask {
 public:
  // Error(setting) with the names that there are.
  explicit PairTask(const std::string& name);
  // The task that data.path names; none where it names a folder.
  static std::optional<PairTask> of_path(const std::string& path);

  const std::string& name() const { return name_; }
  int64_t size(text::Split split) const { return split == text::Split::train ? 100'000 : 2'000; }
  Pair pair(text::Split split, int64_t index) const;
  // Lengths of the longest source and target in symbols, with the end: the axes of every batch.
  int64_t source_length() const { return source_length_; }  // S
  int64_t target_length() const { return target_length_; }  // T
  std::string fingerprint() const;                          // of the first pairs and the sizes, 16 hex digits

 private:
  Pair candidate(RandomKey key) const;

  std::string name_;
  int64_t source_length_ = 0, target_length_ = 0;
};

// source_ids (B, S), input_ids (B, T): begin and the target without its end, targets (B, T): the target and its end,
// then -1. source_ids and input_ids are padded with fill.
Batch pair_batch(const PairTask& task, text::Split split, const std::vector<int64_t>& indices);
// A source as the row (S) of a batch. Error(input) for other characters and where it is too long.
std::vector<int32_t> encode_source(const std::string& source, int64_t length);
// The symbols of each source (B, S) up to its end, which is one of them, (B) i64: the source_lengths of a batch. S
// where there is no end.
Tensor source_lengths_of(const Tensor& source_ids);
// The characters up to the end symbol; symbols without a character are skipped.
std::string decode_symbols(const std::vector<int32_t>& ids);

}  // namespace braid::models
