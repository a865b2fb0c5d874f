// Runs a model once and keeps what it tells of itself on the way, by name: hidden.<i>, the residual stream before layer
// i; layers.<i>.attn_out, layers.<i>.dyn.pre.w, ...; apps/dump/names.md explains them all. `braid dump`, `braid serve`
// and `braid analyze` look into models through it alone.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "braid/models/image_model.h"
#include "braid/models/language_model.h"
#include "braid/nn/attention/composition_scale.h"
#include "braid/tensor/io/safetensors.h"

namespace braid::models {

// The results of one layer, by name without "layers.<i>.".
using LayerTensors = std::map<std::string, Tensor>;

struct CaptureRequest {
  // The layers whose q, k, v and attention maps are formed too, which a pass does without; empty: none.
  std::function<bool(int64_t layer)> maps = nullptr;
  // Factors of the terms of Compose, by layer; the layers behind the last entry have factors of 1.
  std::vector<nn::CompositionScale> scales = {};
  // With one of these nothing is kept: memory is that of one layer. stream: (B, T, D) before layer i, and at last the
  // stream after all of them; layer: what layer i told, when it has ended.
  std::function<void(int64_t i, const Tensor& x)> stream = nullptr;
  std::function<void(int64_t i, const LayerTensors& tensors)> layer = nullptr;
};

struct Capture {
  Tensor out;                // the last hidden state (B, T, D); of an image model the logits (B, K)
  io::NamedTensors tensors;  // in the order of computation, without history; on the CPU
};

// ids (B, T), pixel_values (B, C, H, W), on the model's device. The model must pass hidden.<i> to its observer for
// scales, stream and layer. `out` has a history where gradients are recorded.
Capture capture(const LanguageModel& model, const Tensor& ids, const CaptureRequest& what = {});
Capture capture(const ImageModel& model, const Tensor& pixel_values, const CaptureRequest& what = {});

// hidden() of a model whose terms of Compose are scaled, one entry for each layer: ids (1, T) -> (1, T, D).
Tensor scaled_hidden(const LanguageModel& model, const Tensor& ids, const std::vector<nn::CompositionScale>& scales);

// Whether the layer has weights of Compose.
bool mixes_heads(const LayerTensors& tensors);
// Whether some layer of the model does: one token tells.
bool mixes_heads(const LanguageModel& model);

}  // namespace braid::models
