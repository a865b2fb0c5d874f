// LoRA (Hu et al. 2021) on a model of any family: linear layers get a pair of small matrices (nn/layers/linear.h),
// which are trained while the weights of the model are frozen.
//
//   y = x W^T + b + alpha / rank (x A^T) B^T     A (rank, in): normal, B (out, rank): 0 at first, so y is unchanged
//
// A pair belongs to the layer's weight: over tensor ranks it is sharded as the weight is. Where the files of a family
// store parts of a weight as layers of their own (q_proj, k_proj, v_proj of wqkv), each of them may have a pair
// instead.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "braid/distributed/comm/process_mesh.h"
#include "braid/models/folders/folder.h"
#include "braid/models/model.h"
#include "braid/nn/layers/linear.h"
#include "braid/tensor/random.h"

namespace braid::models {

struct LoraOptions {
  int64_t rank = 8;
  double alpha = 16;
  // Names of linear layers, in the model or in its files, complete or without their beginning: "layers.0.attention.wo",
  // "wo", "o_proj"; or patterns of them (nn/name_pattern.h).
  std::vector<std::string> targets = {"*"};
};

struct LinearLayer {
  std::string name;  // "layers.0.attention.wqkv"
  nn::Linear* layer;
  Shape shape;                      // of the complete weight: (out, in)
  std::string stored;               // the name in files; empty where these have the parts only
  std::vector<Folder::Part> parts;  // most often none
};
// The linear layers that may get a pair, in the model's order: all but those whose weight is used without the layer
// (the output projection).
std::vector<LinearLayer> lora_candidates(Model& model);

// A pair of complete tensors: A (r, in), B (outputs of the part, r).
struct LoraPair {
  std::string part;  // "": of the layer
  Tensor a, b;
};
// Gives the layer its pairs, over a mesh this rank's shards of them.
void set_pairs(Model& model, const LinearLayer& layer, const std::vector<LoraPair>& pairs, double alpha,
               const dist::ProcessMesh& mesh);

// Adds a pair to every layer that a target matches, else to those of its parts that one matches, on the device and in
// the type of the weight. The first values depend on the key and the name alone, whatever the mesh. Error(setting) when
// a target matches no layer.
void add_lora(Model& model, const LoraOptions& options, RandomKey key, const dist::ProcessMesh& mesh = {});
// Adds the pairs to the weights and removes them.
void merge_lora(Model& model);
// Rank, alpha and the names of the layers and parts (targets) of the pairs in the model; none where it has no pair.
std::optional<LoraOptions> lora_of(Model& model);

// Is this the name of a parameter of a pair? "layers.0.attention.wqkv.lora_A.weight"
bool is_lora(const std::string& parameter);

}  // namespace braid::models
