#include "braid/models/inspect/image_attention.h"

#include "braid/autograd/record.h"
#include "braid/models/inspect/capture.h"

namespace braid::models {

namespace {

// Appends a weight per patch from one head of attn_probs (N, T, T): the row of the class token's query, or the mean of
// all rows.
void add_weights(std::vector<double>& out, const std::vector<double>& probs, int64_t head, int64_t T, bool token) {
  for (int64_t key = token; key < T; ++key) {
    double sum = 0;
    const int64_t queries = token ? 1 : T;
    for (int64_t query = 0; query < queries; ++query) sum += probs[static_cast<size_t>((head * T + query) * T + key)];
    out.push_back(sum / static_cast<double>(queries));
  }
}

}  // namespace

ImageAttention image_attention(const Vit& model, const Tensor& pixel_values) {
  const NoGrad off;
  const VitConfig& config = model.config();
  ImageAttention found{.layers = config.num_hidden_layers,
                       .heads = config.num_attention_heads,
                       .rows = config.grid().rows,
                       .columns = config.grid().columns,
                       .class_token = config.class_token()};
  const int64_t T = config.tokens();
  const auto take = [&](int64_t, const LayerTensors& layer) {
    found.composed |= mixes_heads(layer);
    for (const auto& [name, out] : {std::pair{"attn_probs", &found.before}, {"attn_probs_composed", &found.after}}) {
      const std::vector<double> probs = layer.at(name).to(DType::f64).to_vector<double>();  // (1, N, T, T)
      for (int64_t head = 0; head < found.heads; ++head) add_weights(*out, probs, head, T, found.class_token);
    }
  };
  capture(model, pixel_values.to(model.device()), {.maps = [](int64_t) { return true; }, .layer = take});
  return found;
}

}  // namespace braid::models
