#include "braid/models/inspect/image_attention.h"

#include "braid/autograd/record.h"

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
  const auto take = [&](const std::string& name, const Tensor& x) {
    if (name.find(".dyn.") != name.npos) found.composed = true;
    const size_t dot = name.rfind('.');
    const std::string kind = name.substr(dot + 1);
    if (kind != "attn_probs" && kind != "attn_probs_composed") return;
    const std::vector<double> probs = x.to(DType::f64).to_vector<double>();  // (1, N, T, T)
    std::vector<double>& out = kind == "attn_probs" ? found.before : found.after;
    for (int64_t head = 0; head < found.heads; ++head) add_weights(out, probs, head, T, found.class_token);
  };
  const nn::ActivationObserver observer{take, [](const std::string& name) { return name.ends_with("attention_maps"); }};
  model.logits(pixel_values.to(model.device()), &observer);
  return found;
}

}  // namespace braid::models
