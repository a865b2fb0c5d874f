// Which sequence a run reads next: of one data set in its TrainingOrder, or of several, mixed by their weights. Each
// source is read in its own order, epoch after epoch, as if it were alone; Mixture says whose turn it is. Where the
// length of the sequences changes a new Mixture begins, so that what was read before does not depend on it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "braid/models/data/text/mixture.h"
#include "braid/models/data/text/training_order.h"

namespace braid::models::text {

// The weight of a source from this token of the run on: from the first sequence that begins there or later.
struct WeightChange {
  int64_t token;
  double weight;
};

class MixedOrder {
 public:
  using Weights = std::vector<std::vector<WeightChange>>;  // of each source, ascending by token, the first at 0
  // One data set.
  MixedOrder(Dataset data, uint64_t seed);
  // Several in sequences of one length. Error(setting) as Mixture.
  MixedOrder(std::vector<Dataset> sources, Weights weights, uint64_t seed);
  // The run read these sequences, of all sources together, before it got the length of the data sets.
  void continue_after(const std::vector<EarlierLength>& earlier);

  int64_t sources() const { return std::ssize(orders_); }
  const Dataset& data(int64_t source) const { return orders_[static_cast<size_t>(source)].data(); }
  int64_t seq_len() const { return data(0).seq_len(); }
  int64_t size() const;                                              // sequences of all sources together
  bool separates_documents() const;                                  // of any source
  std::string fingerprint() const { return fingerprint(weights_); }  // of the data and, of several sources, the weights
  // Whether these sources with the weights `before`, whose fingerprint this is, gave a run the same first `count`
  // sequences, those at earlier lengths among them.
  bool begins_as(const Weights& before, const std::string& fingerprint, const std::vector<EarlierLength>& earlier,
                 int64_t count) const;

  struct Place {
    const Dataset* data;
    int64_t index;  // of the sequence there
    int64_t source;
  };
  // The sequences [first, first + count) of the run, none before the last change of the length.
  std::vector<Place> places(int64_t first, int64_t count) const;
  int64_t tokens(int64_t count) const;  // of the first `count` sequences of the run
  // The sequences of each source among them, and how often each source has been read as a whole;
  // at least those before the last change of the length.
  std::vector<int64_t> counts(int64_t count) const;
  std::vector<double> epochs(int64_t count) const;
  // Sequences of the run until so many epochs are complete; with one source only.
  double count_of_epochs(double epochs) const { return orders_[0].count_of_epochs(epochs); }
  // The weights of each source in the last phase.
  const std::vector<double>& last_weights() const { return mixture_.phases().back().weights; }

 private:
  // The time at one sequence length: sequences before it, of them those of each source, and their tokens.
  struct Segment {
    int64_t begin = 0;
    std::vector<int64_t> counts = {};
    int64_t tokens = 0;
  };
  std::string fingerprint(const Weights& weights) const;
  Mixture mixture(const Weights& weights, const Segment& segment, int64_t seq_len) const;

  std::vector<TrainingOrder> orders_;
  Weights weights_;
  uint64_t seed_;
  Segment segment_;  // since the last change of the length
  Mixture mixture_;  // of its sequences, counted from its begin
};

}  // namespace braid::models::text
