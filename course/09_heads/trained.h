// A DCFormer of two layers and four heads that learns to recall: which token followed the last one when it stood in the
// sequence before. In f64, so that every machine gets the same digits.
#pragma once
#include <braid/autograd.h>
#include <braid/models/families/dcformer/model.h>
#include <braid/nn/optim/rules/adamw.h>

namespace course {

using braid::Tensor;

struct Recaller {
  static constexpr int64_t T = 20, kLayers = 2, N = 4, kTokens = 8;

  explicit Recaller(int steps = 250) : model(config(), key) {
    model.to(braid::DType::f64);
    braid::nn::AdamW optimizer(braid::nn::parameters(model), {.lr = 6e-3, .weight_decay = 0});
    for (int step = 0; step < steps; ++step) {
      const Tensor loss = loss_of(sequences(16, child(key, step)));
      braid::backward(loss);
      optimizer.step();
      optimizer.zero_grad();
    }
  }
  static braid::models::DcformerConfig config() {
    braid::models::DcformerConfig out;
    out.vocab_size = kTokens, out.dim = 32, out.n_layer = kLayers, out.n_head = N;
    out.block_size = T, out.window_type = "G", out.scale_embeddings = true, out.use_qk_norm = false,
    out.initializer_std = 0.15, out.intermediate_size = 64;
    braid::models::resolve(out);
    return out;
  }
  static Tensor sequences(int64_t count, braid::RandomKey of) { return braid::randint(0, kTokens, {count, T}, of); }
  // In nats per token, of the tokens that stood in the sequence before.
  Tensor loss_of(const Tensor& ids) const {
    const Tensor at = braid::arange(T), same = eq(unsqueeze(ids, 2), unsqueeze(ids, 1)) & (at < reshape(at, {T, 1}));
    const Tensor follower = max(cast(same, braid::DType::i64) * (at + 1), 2);  // (B, T); 0: none
    const Tensor targets = where(follower > 0, take_along_axis(ids, follower, 1), -1);
    return model.loss_sum(ids, targets) / sum(cast(follower > 0, braid::DType::f64)).item();
  }
  // The loss on new sequences.
  double loss() const {
    return braid::no_grad([&] { return loss_of(sequences(64, child(key, "new"))).item(); });
  }
  Tensor parameter(const std::string& name) const {
    for (const braid::NamedTensor& p : braid::nn::parameters(model))
      if (p.name == name) return p.value.detach();
    throw std::runtime_error("no parameter " + name);
  }
  Tensor shown() const { return sequences(1, child(key, "shown")); }  // (1, T)
  // A map of a layer by its name in `braid dump`, for the shown sequence: (N, T, T).
  Tensor map(int64_t layer, const std::string& name) const {
    const std::string part = "layers." + std::to_string(layer) + ".";
    Tensor found;
    const braid::nn::ActivationObserver observer{
        [&](const std::string& at, const Tensor& value) { at == part + name ? void(found = value) : void(); },
        [&](const std::string& at) { return at == part + "attention_maps"; }};
    braid::no_grad([&] { model.hidden(shown(), nullptr, &observer); });
    return squeeze(found, 0);
  }

  braid::RandomKey key{.seed = 9};
  braid::models::Dcformer model;
};

}  // namespace course
