// Activation recomputation ("gradient checkpointing"): run a segment again in the backward pass instead of keeping its
// activations.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "braid/autograd/record.h"

namespace braid {

// y = f(inputs), keeping only the inputs alive until backward(), which runs f again with recording on. f must be a pure
// function of its inputs and of the tensors it captures, parameters or results of ops, which get their gradients as
// usual. Dropout inside f is fine: it is a function of its key. Costs one more forward pass of f.
using Segment = std::function<Tensor(const std::vector<Tensor>& inputs)>;

// The FLOPs of the derivative in a trace (tensor/trace_device.h): those that it computes, with f again; less those
// of f, for a segment that always recomputes; or twice those of f, for one that stands for an op and captures
// parameters alone.
enum class SegmentCost : uint8_t { computed, once, twice };
Tensor recompute(Segment f, const std::vector<Tensor>& inputs, SegmentCost cost = SegmentCost::computed);

}  // namespace braid
