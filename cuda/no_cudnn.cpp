// Stands in for cudnn_attention.cpp where Braid is built without cuDNN.
#include "cuda/plain_attention.h"

namespace braid::cuda {

std::string run_attention(const AttentionCall&) { return "Braid was built without cuDNN"; }

}  // namespace braid::cuda
