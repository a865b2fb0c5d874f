// Direct preference optimization (Rafailov et al. 2023, arXiv 2305.18290). Of a prompt x with a chosen answer w and a
// rejected one l, the model's probabilities p and those q of the reference, which is never trained:
//
//   r(y) = log p(y | x) - log q(y | x)        with length_normalised divided by |y|, the tokens of y
//   z    = beta (r(w) - r(l))                 beta r(y) is the reward of y, z the margin
//   loss = -(1 - e) log sigmoid(z) - e log sigmoid(-z) - s log p(w | x) / |w|
//
// e: label_smoothing, the share of pairs whose labels are taken to be exchanged (conservative DPO); s: sft_weight.
//
//   dloss/dz = sigmoid(z) - (1 - e),   dloss/dlog p(w | x) = beta dloss/dz - s / |w|,   dloss/dlog p(l | x) = -beta
//   dloss/dz
//
// beta is divided by |w| and |l| there with length_normalised. In a batch the chosen and the rejected sequence of a
// pair follow each other; the targets of a sequence are the tokens of its answer. Loss means -log p or -log q, the sum
// over them.
#pragma once
#include <span>
#include <vector>

#include "braid/distributed/comm/communicator.h"
#include "braid/models/language_model.h"
#include "braid/models/training/objective.h"

namespace braid::models {

struct PreferenceOptions {
  double beta = 0.1, label_smoothing = 0;
  bool length_normalised = false;
  double sft_weight = 0;
};

// The loss of each sequence, (B) of input_ids and targets (B, T). The logits of one sequence exist at a time: the
// backward pass computes them again. On one tensor and context rank, without dropout.
Tensor sequence_losses(const LanguageModel& model, const Tensor& input_ids, const Tensor& targets);

// The sum over pairs, (), of the losses (2 P) of model and reference and the tokens (2 P) of the answers, all of one
// type.
Tensor preference_loss(const Tensor& losses, const Tensor& reference, const Tensor& tokens,
                       const PreferenceOptions& options);

// The loss of batches with kReferenceLosses. A sample is a pair, two sequences.
class PreferenceObjective final : public Objective {
 public:
  explicit PreferenceObjective(const PreferenceOptions& options) : options_(options) {}
  Tensor loss_sum(const Model& model, const Batch& batch) const override;
  int64_t sample_rows() const override { return 2; }
  int64_t count(const Model&, const Batch& batch) const override { return batch.samples() / 2; }
  void check_batch(const Model& model, const Batch& batch) const override;
  Batch blank_batch(const Model& model, int64_t samples, int64_t seq_len) const override;

 private:
  PreferenceOptions options_;
};

// Values of a pair, or their sums over pairs.
struct PreferenceValues {
  double pairs = 0, loss = 0;
  double preferred = 0;                           // pairs with a margin above 0; those with 0 count half
  double chosen_reward = 0, rejected_reward = 0;  // beta r
  double chosen_log_probability = 0, rejected_log_probability = 0;  // log p
};

// Computed on the host.
class PreferenceSums {
 public:
  // losses: of the sequences of the batch, as kReferenceLosses has those of the reference.
  void add(const Batch& batch, std::span<const double> losses, const PreferenceOptions& options);
  // Over what was added on all ranks. Collective; under StrictBits without an order (exact_sum.h).
  PreferenceValues over(const dist::Communicator& ranks) const;

 private:
  std::vector<PreferenceValues> pairs_;
};

}  // namespace braid::models
