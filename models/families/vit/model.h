// Vision Transformer (Dosovitskiy et al. 2020), with attention or DCMHA without a causal mask:
//
//   image (C, H, W) -> [convolutions] -> patches -> linear -> + positions -> L pre-norm blocks -> norm -> class token
//   or mean of the patches -> classifier
//
// In one process a complete model; several processes share the samples (data parallel).
#pragma once
#include "braid/models/families/vit/block.h"
#include "braid/models/families/vit/config.h"
#include "braid/models/image_model.h"

namespace braid::models {

class Vit final : public ImageModel {
 public:
  // Initial weights, each a function of the key and its name: those of big_vision (linear layers by their sizes,
  // positions 0.02, class token and classifier 0). Error(setting) for a mesh with tensor or context ranks.
  Vit(const VitConfig& config, RandomKey key, const dist::ProcessMesh& mesh = {});

  int64_t classes() const override { return config_.num_labels; }
  std::vector<std::string> class_names() const override { return config_.class_names; }
  void name_classes(std::vector<std::string> names) override { config_.class_names = std::move(names); }
  Shape image_shape() const override { return {config_.num_channels, config_.image().rows, config_.image().columns}; }
  bool random_training() const override { return config_.random_training(); }
  // The observer gets hidden.0 ... hidden.L (B, T, D), final_norm, pooled (B, D), fixed position_embeddings (P, D)
  // and what the blocks pass.
  Tensor logits(const Tensor& pixel_values, const nn::ActivationObserver* observer = nullptr) const override {
    return forward(pixel_values, {.observer = observer, .recompute = recompute_});
  }
  Tensor loss_sum(const Batch& batch) const override;

  std::vector<std::string> elementwise_parameters() const override {
    return {"patches.*", "class_token", "positions", "classifier.*"};
  }
  void set_recompute(bool on) override { recompute_ = on; }
  void set_attention_workspace(int64_t bytes) override {
    for (VitBlock& block : layers_) block.attention_workspace(bytes);
  }
  void to(DType dtype) override;
  void to(Device device) override;
  std::unique_ptr<const ModelSpec> spec() const override;
  const VitConfig& config() const { return config_; }
  DType dtype() const override { return norm_.weight().dtype(); }
  Device device() const override { return norm_.weight().device(); }
  void visit(nn::Visitor& v) const override;

 private:
  Tensor forward(const Tensor& pixel_values, const nn::Pass& pass) const;
  Tensor embed(const Tensor& pixel_values) const;
  void make_tables(DType dtype, Device device);

  VitConfig config_;
  VitStem stem_;                      // may be empty
  Tensor patch_weight_, patch_bias_;  // (D, C, ph, pw) of what the stem leaves, (D)
  Tensor class_token_;                // (1, 1, D) or empty
  Tensor positions_;                  // (1, T, D): a parameter, or the table of sincos2d
  std::vector<VitBlock> layers_;
  nn::LayerNorm norm_;
  nn::Linear pre_logits_, classifier_;
  bool recompute_ = false;
};

// Fixed positions (1, grid, D), row by row: sin(x w), cos(x w), sin(y w), cos(y w) of column x and row y, each D/4
// wide, w_j = 10000^(-j / (D/4 - 1)).
Tensor sincos_positions(const Pixels& grid, int64_t width, DType dtype);

}  // namespace braid::models
