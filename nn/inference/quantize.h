// Replaces the weights of linear layers by 8-bit ones, for inference on the CPU (autograd/int8.h).
#pragma once
#include "braid/nn/module.h"

namespace braid::nn {

// Replaces the weight of every Linear in m, one after the other. Other parameters stay: biases, norms, embedding
// tables, the generator of Compose. All are frozen: m cannot be trained, saved or moved to another device. Over tensor
// ranks each rank quantises its shards.
void quantize_weights(Module& m);
bool is_quantized(const Module& m);
// Bytes of the parameters of m after that, with the others in f32. m may be on kMeta.
int64_t quantized_bytes(const Module& m);

}  // namespace braid::nn
