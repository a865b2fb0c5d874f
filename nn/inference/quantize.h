// Replaces the weights of linear layers by 8-bit or 4-bit ones, for inference on the CPU (autograd/int8.h).
#pragma once
#include "braid/nn/module.h"

namespace braid::nn {

// Replaces the weight of every Linear in m, one after the other: 8 bits with a scale per row, or 4 bits in groups.
// Other parameters stay: biases, norms, embedding tables, the generator of Compose, and what is quantised already. All
// are frozen: m cannot be trained, saved or moved to another device. Over tensor ranks each rank quantises its shards.
void quantize_weights(Module& m, int bits = 8);
int quantized_bits(const Module& m);  // 8 or 4, the fewer where both are; 0: no layer is quantised
// Bytes of the parameters of m after that, with the others in f32. m may be on kMeta.
int64_t quantized_bytes(const Module& m, int bits = 8);

}  // namespace braid::nn
