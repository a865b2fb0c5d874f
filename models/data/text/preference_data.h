// The pairs of a data folder of preferences: an answer that is preferred to another one after the same prompt.
#pragma once
#include <vector>

#include "braid/models/batch.h"
#include "braid/models/data/text/dataset.h"

namespace braid::models::text {

class PreferenceData {
 public:
  // A sequence is a sample by itself: pairs of which one is longer than seq_len are left out, or cut, as samples are.
  // Error(input) when no pair is left, or the folder holds no preferences.
  PreferenceData(const std::string& folder, Split split, int64_t seq_len, bool cut_long_samples);

  int64_t size() const { return std::ssize(first_); }            // pairs
  int64_t left_out() const { return documents() / 2 - size(); }  // pairs
  const Dataset& sequences() const { return sequences_; }
  // The chosen sequence of a pair; the rejected one follows.
  int64_t first_sequence(int64_t pair) const { return first_.at(static_cast<size_t>(pair)); }

  // input_ids and targets (2 P, T): the chosen and the rejected sequence of each pair in turn.
  Batch batch(const std::vector<int64_t>& pairs) const;

 private:
  int64_t documents() const { return sequences_.sample_counts().samples; }
  Dataset sequences_;  // a sample each
  std::vector<int64_t> first_;
};

}  // namespace braid::models::text
