#include "braid/models/image_model.h"

#include "braid/autograd/detail/check.h"
#include "braid/autograd/ops.h"

namespace braid::models {

Batch ImageModel::blank_batch(int64_t samples, int64_t) const {
  const Shape image = image_shape();
  Batch batch{{"pixel_values", zeros({samples, image[0], image[1], image[2]})},
              {"labels", zeros({samples}, DType::i64)}};
  if (random_training()) batch.add({kSampleKeys, zeros({samples}, DType::i64)});
  return batch;
}

int64_t ImageModel::count_targets(const Batch& batch) const {
  int64_t n = 0;
  for (const int64_t label : batch.at("labels").to(DType::i64).to_vector<int64_t>()) n += label >= 0;
  return n;
}

void ImageModel::check_batch(const Batch& batch) const {
  const Tensor pixels = batch.at("pixel_values"), labels = batch.at("labels");
  const Shape image = image_shape();
  check(pixels.rank() == 4 && is_float(pixels.dtype()) && pixels.dim(1) == image[0] && pixels.dim(2) == image[1] &&
            pixels.dim(3) == image[2],
        ErrorKind::input, [&] {
          return str("pixel_values must be floats (B, ", image[0], ", ", image[1], ", ", image[2], "), found ",
                     pixels.dtype(), " ", pixels.shape());
        });
  const int64_t B = pixels.dim(0);
  check(labels.rank() == 1 && labels.dim(0) == B, ErrorKind::input,
        [&] { return str("labels must be (", B, "), found ", labels.shape()); });
  check_ids("image_model", "label", labels, classes(), true);
  if (batch.has("label_weights")) {
    const Tensor weights = batch.at("label_weights");
    check(weights.rank() == 2 && weights.dim(0) == B && weights.dim(1) == classes(), ErrorKind::input,
          [&] { return str("label_weights must be (", B, ", ", classes(), "), found ", weights.shape()); });
  }
  check_keys_and_sources(batch);
}

Tensor ImageModel::loss_of(const Tensor& logits, const Batch& batch) const {
  const Tensor labels = batch.at("labels");
  if (!batch.has("label_weights")) return sum(cross_entropy_per_token(logits, labels));
  const DType wide = logits.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Tensor counted = ge(labels.to(DType::i64), 0).to(wide);                           // (B)
  const Tensor weights = mul(batch.at("label_weights").to(wide), unsqueeze(counted, 1));  // (B, K)
  return neg(sum(mul(log_softmax(cast(logits, wide)), weights)));
}

std::unique_ptr<ImageModel> as_image_model(std::unique_ptr<Model> model) {
  auto* image = dynamic_cast<ImageModel*>(model.get());
  check(image != nullptr, ErrorKind::input,
        [&] { return "a model of type " + model->spec()->model_type() + " does not read images"; });
  static_cast<void>(model.release());  // image owns it now
  return std::unique_ptr<ImageModel>(image);
}

}  // namespace braid::models
