// The plan of a call of attention, apart from running it: it can be built for a card that is not there.
#pragma once
#include "braid/cuda/attention/cudnn_graph.h"
#include "braid/cuda/attention/sdpa_cudnn.h"

namespace braid::cuda::attention::sdpa_cudnn {

// Only the types, shapes and strides of the call's tensors matter. Throws what cuDNN says when it has no plan.
void build_plan(CudnnGraph& graph, const AttentionCall& call, const CudnnCard& card);

}  // namespace braid::cuda::attention::sdpa_cudnn
