// LoRA (Hu et al. 2021) on a model of any family: linear layers get a pair of small matrices (nn/layers/linear.h),
// which are trained while the weights of the model are frozen.
//
//   y = x W^T + b + alpha / rank (x A^T) B^T     A (rank, in): normal, B (out, rank): 0 at first, so y is unchanged
//
// A pair belongs to the layer's weight: over tensor ranks it is sharded as the weight is.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "braid/distributed/comm/process_mesh.h"
#include "braid/models/model.h"
#include "braid/nn/layers/linear.h"
#include "braid/tensor/random.h"

namespace braid::models {

struct LoraOptions {
  int64_t rank = 8;
  double alpha = 16;
  std::vector<std::string> targets = {"*"};  // patterns of names of linear layers (nn/name_pattern.h)
};

struct LinearLayer {
  std::string name;  // "layers.0.attention.wqkv"
  nn::Linear* layer;
};
// The linear layers that may get a pair, in the model's order: all but those whose weight is used without the layer
// (the output projection).
std::vector<LinearLayer> lora_candidates(Model& model);

// Adds a pair to every layer that a target matches, on the device and in the type of its weight. The first values
// depend on the key and the layer's name alone, whatever the mesh. Error(setting) when a target matches no layer.
void add_lora(Model& model, const LoraOptions& options, RandomKey key, const dist::ProcessMesh& mesh = {});
// Adds the pairs to the weights and removes them.
void merge_lora(Model& model);
// Rank, alpha and the names of the layers (targets) of the pairs in the model; none where it has no pair.
std::optional<LoraOptions> lora_of(Model& model);

// Is this the name of a parameter of a pair? "layers.0.attention.wqkv.lora_A.weight"
bool is_lora(const std::string& parameter);

}  // namespace braid::models
