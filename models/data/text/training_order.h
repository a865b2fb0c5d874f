// Which sequence a run reads next, also when its sequence length has changed on the way.
//
//   epoch 0, T = 4   ████ ████ ████ ░░░░ ░░░░ ░░░░ ░░░░      3 of 7 sequences are read (█), by the Sampler's order
//   T becomes 8                     ░░░░░░░░ ░░░░░░░░        the unread rest of the epoch (Dataset::rest), its own
//   order epoch 1, T = 8   ░░░░░░░░ ░░░░░░░░ ░░░░░░░░              whole again
//
// So a change neither repeats nor skips a token within an epoch, but for a remainder shorter than a sequence. Nothing
// is stored but the lengths before and how many sequences had each.
#pragma once
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "braid/models/data/sampler.h"
#include "braid/models/data/text/dataset.h"
#include "braid/models/sequence_lengths.h"

namespace braid::models::text {

class TrainingOrder {
 public:
  TrainingOrder(Dataset data, uint64_t seed);  // of a run that begins
  // The run read these sequences before it got the length of the data set.
  void continue_after(const std::vector<EarlierLength>& earlier);

  const Dataset& data() const { return data_; }
  // Sequence number `count` of the run: not of the time before the last change. Where it is read from, and its index.
  std::pair<const Dataset*, int64_t> at(int64_t count) const;
  int64_t tokens(int64_t count) const;  // of the first `count` sequences of the run
  // Sequences of the run until so many epochs are complete; at least those before the last change.
  double count_of_epochs(double epochs) const;

 private:
  Dataset data_;
  Sampler sampler_;
  uint64_t seed_;
  std::optional<Dataset> rest_;             // of the epoch of the last change; none: the change was between two epochs
  int64_t epoch_ = 0;                       // the first that is read from data_
  int64_t before_ = 0, before_tokens_ = 0;  // sequences of the time before the last change, and their tokens
  int64_t whole_ = 0;                       // sequences of the run before that epoch
};

}  // namespace braid::models::text
