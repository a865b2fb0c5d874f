#include "braid/models/families/vit/model.h"

#include <cmath>

#include "braid/autograd.h"
#include "braid/models/families/vit/family.h"
#include "braid/tensor/layer_scope.h"

namespace braid::models {

Vit::Vit(const VitConfig& config, RandomKey key, const dist::ProcessMesh& mesh) : config_(config) {
  check(mesh.tensor.size() == 1 && mesh.context.size() == 1, ErrorKind::setting, [&] {
    return str("a model of type vit is not sharded: expected parallel.tensor=1 and parallel.context=1, found ",
               mesh.tensor.size(), " and ", mesh.context.size(), "; use parallel.data");
  });
  const VitConfig& c = config_;
  const int64_t D = c.hidden_size;
  std::vector<int64_t> channels = {c.num_channels};
  channels.insert(channels.end(), c.stem_channels.begin(), c.stem_channels.end());
  stem_ = VitStem(c.image(), channels, c.layer_norm_eps, child(key, "stem"));
  const int64_t C = c.patch_channels();
  const Pixels patch = c.stem_patch();
  const double pixels = static_cast<double>(C * patch.rows * patch.columns);
  patch_weight_ = nn::parameter(
      nn::Init::normal(1 / std::sqrt(pixels)).make({D, C, patch.rows, patch.columns}, child(key, "patches")));
  patch_bias_ = nn::parameter(nn::Init::constant(0).make({D}, child(key, "patch_bias")));
  if (c.class_token()) class_token_ = nn::parameter(nn::Init::constant(0).make({1, 1, D}, child(key, "class_token")));
  if (c.posemb == "learn")
    positions_ = nn::parameter(nn::Init::normal(0.02).make({1, c.tokens(), D}, child(key, "positions")));
  const RandomKey layers = child(key, "layers");
  for (int64_t i = 0; i < c.num_hidden_layers; ++i) layers_.emplace_back(c, i, child(layers, i));
  norm_ = nn::LayerNorm(D, c.layer_norm_eps);
  if (c.rep_size) pre_logits_ = nn::Linear(D, D, {.bias = true}, child(key, "pre_logits"));
  classifier_ = nn::Linear(D, c.num_labels, {.bias = true, .init = nn::Init::constant(0), .takes_lora = false},
                           child(key, "classifier"));
  make_tables(DType::f32, kCpu);
}

void Vit::make_tables(DType dtype, Device device) {
  if (nn::ShapeOnlyScope::active()) return;
  stem_.make_windows(device);
  if (config_.posemb == "learn") return;
  positions_ = sincos_positions(config_.grid(), config_.hidden_size, dtype).to(device);
}

void Vit::to(DType dtype) {
  nn::to(*this, dtype);
  make_tables(dtype, device());
}

void Vit::to(Device device) {
  nn::to(*this, device);
  make_tables(dtype(), device);
}

Tensor sincos_positions(const Pixels& grid, int64_t width, DType dtype) {
  const int64_t quarter = width / 4;
  std::vector<double> table;
  table.reserve(static_cast<size_t>(grid.rows * grid.columns * width));
  for (int64_t y = 0; y < grid.rows; ++y)
    for (int64_t x = 0; x < grid.columns; ++x)
      for (const int64_t at : {x, y})
        for (const bool cosine : {false, true})
          for (int64_t j = 0; j < quarter; ++j) {
            const double angle =
                static_cast<double>(at) * std::pow(10000.0, -static_cast<double>(j) / static_cast<double>(quarter - 1));
            table.push_back(cosine ? std::cos(angle) : std::sin(angle));
          }
  return from_vector(table, {1, grid.rows * grid.columns, width}).to(dtype);
}

// (B, C, H, W) -> (B, T, D)
Tensor Vit::embed(const Tensor& pixel_values) const {
  const LayerScope layer("embedding");
  const Pixels patch = config_.stem_patch();
  const Tensor rows = unfold(stem_(cast(pixel_values, dtype())), patch, {.stride = patch});  // (B, P, C ph pw)
  Tensor x = linear(rows, reshape(patch_weight_, {config_.hidden_size, rows.dim(2)}), patch_bias_);
  if (class_token_) x = concat({expand(class_token_, {x.dim(0), 1, x.dim(2)}), x}, 1);
  return add(x, cast(positions_, dtype()));  // the table stays in f32 where the arithmetic is bf16
}

Tensor Vit::forward(const Tensor& pixel_values, const nn::Pass& pass) const {
  if (config_.posemb != "learn")
    pass.observe(positions_.reshaped({config_.patches(), config_.hidden_size}), "position_embeddings");
  const Tensor embedded = pass.random.child("embedding").dropout(embed(pixel_values), config_.hidden_dropout_prob);
  nn::ResidualStream x = pass.observe(embedded, "hidden.0");
  for (size_t i = 0; i < layers_.size(); ++i) {
    x = layers_[i](x, pass.layer(i));
    x.observe(pass, "hidden.", i + 1);
  }
  const Tensor y = pass.observe(x.with(norm_).y, "final_norm");  // (B, T, D)
  Tensor pooled = config_.class_token() ? squeeze(slice(y, 1, 0, 1), 1) : mean(y, {1});
  if (config_.rep_size) pooled = tanh(pre_logits_(pooled));
  const LayerScope layer("head");
  return classifier_(pass.observe(pooled, "pooled"));
}

Tensor Vit::loss_sum(const Batch& batch) const {
  const nn::Pass pass{.random = random_training() ? sample_random(batch) : nn::SampleRandom(), .recompute = recompute_};
  return loss_of(forward(batch.at("pixel_values"), pass), batch);
}

void Vit::visit(nn::Visitor& v) const {
  v("stem", stem_);
  v("patches.weight", patch_weight_);
  v("patches.bias", patch_bias_);
  v("class_token", class_token_);
  if (config_.posemb == "learn") v("positions", positions_);
  for (size_t i = 0; i < layers_.size(); ++i) v(str("layers.", i), layers_[i]);
  v("norm", norm_);
  if (config_.rep_size) v("pre_logits", pre_logits_);
  v("classifier", classifier_);
}

}  // namespace braid::models
