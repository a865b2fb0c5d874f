// Attention on the GPU: which kernels compute a call. Decided once per call, in plan().
//
//   a few query rows, no derivative       decode.h
//   bf16 or f16, no heads mixed           sdpa_cudnn.h, for the lengths that it names, where cuDNN is there
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

// All heads together where that fits, mixed or not: with one head a block has work for few of its threads.
DcmhaInputs for_decode(const DcmhaInputs& x) { return attention::decode::supports(x) ? x : split_unmixed(x); }

}  // namespace

static AttentionPlan plan(const DcmhaInputs& x, bool derivative) {
  using namespace attention;
  const DcmhaInputs groups = split_unmixed(x);
  const bool unmixed = x.pre.empty() && x.post.empty();
  AttentionPlan chosen;
  const std::optional<std::string> no_tensor_cores = tensor_core::unsupported_reason(x);
  if (!no_tensor_cores) {
    chosen.forward = chosen.backward = AttentionKernel::tensor_core;
  } else {
    chosen.unsupported_reason = generic::unsupported_reason(groups);
  }
  const std::optional<std::string> no_cudnn = sdpa_cudnn::unsupported_reason(x);
  if (!no_cudnn) {
    chosen.forward = AttentionKernel::sdpa_cudnn;
    const std::optional<std::string> no_backward = sdpa_cudnn::backward_unsupported_reason(x, workspace_of(x));
    if (!no_backward) chosen.backward = AttentionKernel::sdpa_cudnn;
    chosen.backward_reason = no_backward.value_or("");
  } else if (no_tensor_cores) {
    chosen.forward_reason = chosen.backward_reason = unmixed ? *no_cudnn : *no_tensor_cores;
  }
  if (!derivative && decode::supports(for_decode(x)))
    chosen.forward = AttentionKernel::decode, chosen.forward_reason = "";
  return chosen;
}

static void dcmha_forward(const AttentionPlan& plan, const DcmhaInputs& x, Out y, Out lse) {
  using namespace attention;
  if (plan.forward != AttentionKernel::sdpa_cudnn)
    add_attention_use("forward", name(plan.forward), plan.forward_reason);
  switch (plan.forward) {
    case AttentionKernel::decode:
      return decode::forward(for_decode(x), y);
    case AttentionKernel::tensor_core:
      return tensor_core::forward(x, y, lse, workspace_of(x));
    case AttentionKernel::generic:
      return generic::forward(split_unmixed(x), y, lse, workspace_of(x));
    case AttentionKernel::sdpa_cudnn:
      const std::optional<std::string> no_cudnn_plan = sdpa_cudnn::forward(x, y, lse);
      add_attention_use("forward", no_cudnn_plan ? "generic" : "sdpa_cudnn", no_cudnn_plan.value_or(""));
      if (no_cudnn_plan) generic::forward(split_unmixed(x), y, lse, workspace_of(x));
      return;
  }
}

static void dcmha_backward(const AttentionPlan& plan, const DcmhaInputs& x, In y, In lse, In dy,
                           DcmhaGradients& gradients) {
  using namespace attention;
  std::string reason = plan.backward_reason;
  switch (plan.backward) {
    case AttentionKernel::tensor_core:
      add_attention_use("backward", name(plan.backward), "");
      return tensor_core::backward(x, y, lse, dy, gradients, workspace_of(x));
    case AttentionKernel::sdpa_cudnn: {
      const std::optional<std::string> no_cudnn_plan = sdpa_cudnn::backward(x, y, lse, dy, gradients, workspace_of(x));
      if (!no_cudnn_plan) return add_attention_use("backward", name(plan.backward), "");
      reason = *no_cudnn_plan;
      break;
    }
    default:
      break;
  }
  add_attention_use("backward", "generic", reason);
  const bool of_cudnn = plan.forward == AttentionKernel::sdpa_cudnn;
  generic::backward(split_unmixed(x), of_cudnn ? Tensor() : Tensor(lse), dy, gradients, workspace_of(x));
}

constinit const AttentionKernels attention_kernels{
    .plan = plan,
    .forward = dcmha_forward,
    .backward = dcmha_backward,
};

}  // namespace braid::cuda
