// Attention on the GPU: which kernels compute a call. Decided once per call, in plan().
//
//   a few query rows, no derivative       decode.h
//   bf16 or f16, no heads mixed           sdpa_cudnn.h, where cuDNN is there
//   bf16, 16 or 32 heads mixed            tensor_core.h
//   everything else                       generic.h
#include "braid/cuda/attention/decode.h"
#include "braid/cuda/attention/generic.h"
#include "braid/cuda/attention/sdpa_cudnn.h"
#include "braid/cuda/attention/tensor_core.h"

namespace braid::cuda {

namespace {

int64_t workspace_of(const DcmhaInputs& x) { return x.workspace > 0 ? x.workspace : kAttentionWorkspace; }

// Heads that are not mixed are as many groups: more blocks, less memory for each.
DcmhaInputs split_unmixed(DcmhaInputs x) {
  if (x.pre.empty() && x.post.empty()) x.groups = x.q.dim(2);
  return x;
}

}  // namespace

static AttentionPlan plan(const DcmhaInputs& x, bool derivative) {
  using namespace attention;
  const DcmhaInputs groups = split_unmixed(x);
  AttentionPlan chosen;
  if (!tensor_core::unsupported_reason(x)) {
    chosen.forward = chosen.backward = AttentionKernel::tensor_core;
  } else {
    chosen.unsupported_reason = generic::unsupported_reason(groups);
  }
  if (!sdpa_cudnn::unsupported_reason(x)) {
    chosen.forward = AttentionKernel::sdpa_cudnn;
    if (!sdpa_cudnn::backward_unsupported_reason(x, workspace_of(x))) chosen.backward = AttentionKernel::sdpa_cudnn;
  }
  if (!derivative && decode::supports(groups)) chosen.forward = AttentionKernel::decode;
  return chosen;
}

static void dcmha_forward(const AttentionPlan& plan, const DcmhaInputs& x, Out y, Out lse) {
  using namespace attention;
  switch (plan.forward) {
    case AttentionKernel::decode:
      return decode::forward(split_unmixed(x), y);
    case AttentionKernel::tensor_core:
      return tensor_core::forward(x, y, lse, workspace_of(x));
    case AttentionKernel::generic:
      return generic::forward(split_unmixed(x), y, lse, workspace_of(x));
    case AttentionKernel::sdpa_cudnn:
      const std::optional<std::string> no_cudnn_plan = sdpa_cudnn::forward(x, y, lse);
      if (no_cudnn_plan) generic::forward(split_unmixed(x), y, lse, workspace_of(x));
      return;
  }
}

static void dcmha_backward(const AttentionPlan& plan, const DcmhaInputs& x, In y, In lse, In dy,
                           DcmhaGradients& gradients) {
  using namespace attention;
  switch (plan.backward) {
    case AttentionKernel::tensor_core:
      return tensor_core::backward(x, y, lse, dy, gradients, workspace_of(x));
    case AttentionKernel::sdpa_cudnn: {
      const std::optional<std::string> no_cudnn_plan = sdpa_cudnn::backward(x, y, lse, dy, gradients, workspace_of(x));
      if (!no_cudnn_plan) return;
      break;
    }
    default:
      break;
  }
  generic::backward(split_unmixed(x), lse, dy, gradients, workspace_of(x));
}

constinit const AttentionKernels attention_kernels{
    .plan = plan,
    .forward = dcmha_forward,
    .backward = dcmha_backward,
    .takes_16_bits = true,
};

}  // namespace braid::cuda
