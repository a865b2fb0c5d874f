// A model that classifies images: the part of the interface that training, evaluation and `braid dump` of such models
// need beyond Model.
//
//   pixel_values (B, C, H, W) f32   normalised images
//   labels (B) i64                  classes; a negative one is not counted
//   label_weights (B, K) f32        optional, in training: the distribution that replaces the label in the loss, for
//                                   label smoothing and mixed images
//   sample_keys (B) i64             optional, in training (models/batch.h)
#pragma once
#include "braid/models/model.h"
#include "braid/models/model_spec.h"

namespace braid::models {

// The configuration of such a model.
class ImageModelSpec : public ModelSpec {
 public:
  virtual int64_t classes() const = 0;                              // K
  virtual const std::vector<std::string>& class_names() const = 0;  // by label; empty: not known
  virtual std::unique_ptr<const ModelSpec> with_class_names(std::vector<std::string> names) const = 0;
};

class ImageModel : public Model {
 public:
  virtual int64_t classes() const = 0;                            // K
  virtual std::vector<std::string> class_names() const = 0;       // by label; empty: not known
  virtual void name_classes(std::vector<std::string> names) = 0;  // of its spec()
  virtual Shape image_shape() const = 0;                          // (C, H, W)
  virtual bool random_training() const = 0;                       // training reads sample_keys
  // pixel_values (B, C, H, W) -> (B, K). The observer gets every named intermediate result.
  virtual Tensor logits(const Tensor& pixel_values, const nn::ActivationObserver* observer = nullptr) const = 0;

  Batch blank_batch(int64_t samples, int64_t seq_len) const override;
  int64_t count_targets(const Batch& batch) const override;
  void check_batch(const Batch& batch) const override;
  void observe(const Batch& batch, const nn::ActivationObserver& observer) const override {
    logits(batch.at("pixel_values"), &observer);
  }

 protected:
  // Sum of the cross-entropy over the counted samples, () f32 or f64.
  Tensor loss_of(const Tensor& logits, const Batch& batch) const;
};

// Error(input) that names the model_type when the model is of another kind.
std::unique_ptr<ImageModel> as_image_model(std::unique_ptr<Model> model);

}  // namespace braid::models
