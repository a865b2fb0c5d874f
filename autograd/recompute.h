// Activation recomputation ("gradient checkpointing"): run a segment again in the backward pass instead of keeping its
// activations.
#pragma once
#include <functional>
#include <vector>

#include "braid/autograd/record.h"

namespace braid {

// y = f(inputs), keeping only the inputs alive until backward(), which runs f again with recording on. f must be a pure
// function of its inputs and of parameters it captures; gradients reach those parameters as usual. Dropout inside f is
// fine: it is a function of its key. Costs one more forward pass of f.
using Segment = std::function<Tensor(const std::vector<Tensor>& inputs)>;
Tensor checkpoint(Segment f, const std::vector<Tensor>& inputs);

}  // namespace braid
