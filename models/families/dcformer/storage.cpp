// The model in another type, on another device, or with 8-bit or 4-bit weights.
#include "braid/models/families/dcformer/layers.h"
#include "braid/models/families/dcformer/model.h"
#include "braid/nn/inference/quantize.h"

namespace braid::models {

void Dcformer::to(DType dtype) {
  nn::to(*this, dtype);
  std::tie(rope_, local_rope_) = make_ropes(config_, dtype, device());
}

void Dcformer::to(Device device) {
  nn::to(*this, device);
  std::tie(rope_, local_rope_) = make_ropes(config_, dtype(), device);
}

void Dcformer::quantize_weights(int bits) {
  if (!output_.weight()) output_ = nn::Linear(embeddings_.weight());
  nn::quantize_weights(*this, bits);
}

void Dcformer::set_tied_output(const GroupWeight& weight) {
  if (output_.weight()) return;
  output_ = nn::Linear(embeddings_.weight());
  output_.set_quantized(weight);
}

}  // namespace braid::models
