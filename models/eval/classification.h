// How well a model names the classes of images: accuracy, confusion matrix, calibration.
#pragma once
#include <cstdint>
#include <vector>

#include "braid/distributed/comm/communicator.h"
#include "braid/models/image_model.h"

namespace braid::models::eval {

// Counts over images with a label; those with a negative one are left out.
class ClassificationCounts {
 public:
  // bins: equal parts of the confidence 0..1, for the calibration error (Naeini et al. 2015; Guo et al. 2017).
  explicit ClassificationCounts(int64_t classes, int64_t bins = 15);

  // The model's logits of a batch (models/image_model.h), on the CPU. Without gradients.
  void add(const ImageModel& model, const Batch& batch);
  // logits (B, K) of any type and device, labels (B). The prediction is the largest logit, of equal ones the first.
  void add(const Tensor& logits, const Tensor& labels);
  // Over the ranks of a group, each of which has counted other images. Collective. Under StrictBits (tensor/strict.h)
  // the sums have no order.
  void sum_over(const dist::Communicator& group);

  int64_t classes() const { return classes_; }
  int64_t images() const { return images_; }
  // All NaN without images.
  double loss() const;  // mean cross-entropy in nats; NaN or Inf where a logit is
  // Share of images whose class is among the k likeliest, 0..1; k = 1 or 5.
  double top(int64_t k) const;
  // The share of a class's images, and of its predictions, that are right; NaN where there is none.
  double recall(int64_t label) const;
  double precision(int64_t label) const;
  int64_t confusion(int64_t label, int64_t predicted) const {
    return confusion_[static_cast<size_t>(label * classes_ + predicted)];
  }
  // ECE: mean over the images of |accuracy - mean confidence| of their bin, 0..1. Confidence is the probability of
  // the prediction.
  double calibration_error() const;
  struct Bin {
    int64_t images = 0, right = 0;
    double confidence = 0;  // sum
  };
  const std::vector<Bin>& bins() const { return bins_; }

 private:
  int64_t classes_, images_ = 0, right1_ = 0, right5_ = 0;
  std::vector<double> losses_;      // of the images; over ranks their sum
  std::vector<int64_t> confusion_;  // (K, K), by label, then prediction
  std::vector<Bin> bins_;
};

}  // namespace braid::models::eval
