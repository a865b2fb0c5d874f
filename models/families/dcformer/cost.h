// The parts of a model: parameters by what they are for, FLOPs, and the memory of the cache.
//
// Letters: B batch, T positions, D width, N heads, Nkv key/value heads, d head size, G groups of M = N/G heads, R rank,
// K = 2 R M hidden width of the weight generator, C branches, F FFN width, E gates of mgate, V vocabulary, L layers.
#pragma once
#include <string>
#include <vector>

#include "braid/distributed/comm/process_mesh.h"
#include "braid/models/families/dcformer/config.h"

namespace braid::models {

class Dcformer;

// The model of a resolved configuration on kMeta: names, shapes and types of its parameters, no memory.
Dcformer shape_only_model(const DcformerConfig& config, const dist::ProcessMesh& mesh = {});
// Its parameters in the model's order, by the names of published folders ("layers.0.attention.wqkv.weight").
std::vector<nn::NamedTensor> shape_only_parameters(const DcformerConfig& config);

// The configuration is resolved first, here and in all functions below.

struct ParameterCounts {
  // of one layer, the largest where they differ
  int64_t attention = 0;  // wqkv, wo and their biases
  int64_t qk_norm = 0;
  int64_t dynamic = 0;  // dw1, qkw, dd of all branches, which are equal in size
  int64_t static_proj = 0;
  int64_t feed_forward = 0;  // with mgate
  int64_t norms = 0;
  int64_t other = 0;      // parameters under names that none of the above covers
  int64_t per_layer = 0;  // sum of the above
  // of the model
  int64_t layers = 0;
  int64_t final_norm = 0;
  int64_t depth = 0;          // connections over depth
  int64_t non_embedding = 0;  // layers, depth and final_norm
  int64_t embedding = 0;      // input table and output projection, which may be one parameter
  int64_t total = 0;
};
ParameterCounts count_parameters(DcformerConfig config);

// Forward FLOPs per token of the model as a trace counts them (tensor/trace_device.h), its products by their weights.
struct Flops {
  double projections = 0;   // wqkv, wo
  double feed_forward = 0;  // with mgate
  double attention = 0;     // q k and p v over unmasked keys
  double generation = 0;    // dynamic weights from the token
  double low_rank = 0;      // composition over unmasked keys, as the next two
  double diagonal = 0;
  double static_proj = 0;
  double logits = 0;
  double plain() const { return projections + feed_forward + attention + logits; }  // the same model without DCMHA
  double forward() const { return plain() + generation + low_rank + diagonal + static_proj; }
  double training() const { return 3 * forward(); }  // backward costs twice the forward
};
Flops flops_per_token(DcformerConfig config, int64_t seq_len);

// Bytes of the key/value cache: per position keys and values (2 Nkv d) and the factored key-side weights (per stage R
// factors of N twice and one gate: 10 N at R = 2). Local layers keep their window (their buffers hold twice as much, so
// that keys stay in one piece).
struct CacheSize {
  double per_token = 0;  // of a global layer's position, times the layers: what a token costs before windows are full
  double full = 0;       // of `batch` sequences of seq_len tokens
};
CacheSize cache_bytes(DcformerConfig config, int64_t batch, int64_t seq_len, int64_t bytes_per_element = 4);

}  // namespace braid::models
