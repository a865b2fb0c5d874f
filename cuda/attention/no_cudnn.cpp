// Stands in for cudnn_attention.cpp where Braid is built without cuDNN.
#include "braid/cuda/attention/sdpa_cudnn.h"

namespace braid::cuda::attention::sdpa_cudnn {

std::optional<std::string> run_attention(const AttentionCall&) { return "Braid was built without cuDNN"; }

}  // namespace braid::cuda::attention::sdpa_cudnn
