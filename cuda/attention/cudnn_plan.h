// The plan of an attention call, without running it: it can be built for a GPU that is absent.
#pragma once
#include "braid/cuda/attention/cudnn_graph.h"
#include "braid/cuda/attention/sdpa_cudnn.h"

namespace braid::cuda::attention::sdpa_cudnn {

// Only the types, shapes and strides of the call's tensors matter. Throws what cuDNN says when it has no plan.
void build_plan(CudnnGraph& graph, const AttentionCall& call, const CudnnDevice& device);

}  // namespace braid::cuda::attention::sdpa_cudnn
