// What training minimises: the model's own loss, or another one of the model and its batches (preferences.h).
#pragma once
#include "braid/models/model.h"

namespace braid::models {

class Objective {
 public:
  Objective() = default;
  Objective(const Objective&) = delete;
  Objective& operator=(const Objective&) = delete;
  virtual ~Objective() = default;

  // As the functions of the model: a sum on the model's device, over what count() counts in a batch on the CPU. The
  // loss of a step is the sum of its batches over their count.
  virtual Tensor loss_sum(const Model& model, const Batch& batch) const { return model.loss_sum(batch); }
  virtual int64_t sample_rows() const { return 1; }  // of a batch, which are one sample
  virtual int64_t count(const Model& model, const Batch& batch) const { return model.count_targets(batch); }
  virtual void check_batch(const Model& model, const Batch& batch) const { model.check_batch(batch); }
  virtual Batch blank_batch(const Model& model, int64_t samples, int64_t seq_len) const {
    return model.blank_batch(samples, seq_len);
  }
};

}  // namespace braid::models
