// The contract of a device's attention kernels: what a call is given, how it is planned, how its query rows are cut.
//
// One op serves dynamically composed attention (DCMHA) and, with both mixings empty, plain attention.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "braid/tensor/attention_operands.h"
#include "braid/tensor/kernels/kernel.h"
#include "braid/tensor/paged_rows.h"

namespace braid {

// Bytes of scores that a GPU holds at a time where DcmhaInputs::workspace leaves it the choice: enough for the backward
// pass of 8 samples of 2048 tokens with 16 heads, three tensors of scores of 1 GiB. Fewer samples at a time mean as
// many more launches.
inline constexpr int64_t kAttentionWorkspace = int64_t{3584} << 20;

// q (B, T, N, d); k, v (B, S, Nkv, d). The last axis of every tensor is contiguous, the others may have any strides.
struct DcmhaInputs {
  Tensor q, k, v;
  HeadMixing pre, post;
  int64_t groups = 1;  // G
  AttentionMask mask = {};
  double scale = 1;       // of the scores
  int64_t workspace = 0;  // bytes of scores that a GPU may hold at a time; 0: kAttentionWorkspace
};

// Gradients, shaped like the inputs, contiguous; with AttentionKernel::tensor_core those of q, k and v in any memory
// whose last axis is contiguous. An empty handle: not required.
struct DcmhaGradients {
  Tensor q, k, v;
  HeadMixing pre, post;
};

// Calls f(role, tensors...) for the seventeen tensors of a call, in a fixed order, with that tensor of each of `calls`
// (DcmhaInputs, DcmhaGradients).
template <class F, class... Calls>
void for_each_tensor(F&& f, Calls&... calls) {
  using enum AttentionRole::Positions;
  f(AttentionRole{"", "q", queries}, calls.q...);
  f(AttentionRole{"", "k", keys}, calls.k...);
  f(AttentionRole{"", "v", keys}, calls.v...);
  HeadMixing::for_each("pre", f, calls.pre...);
  HeadMixing::for_each("post", f, calls.post...);
}

// The families of kernels that a device may have.
enum class AttentionKernel : uint8_t {
  generic,      // any call
  decode,       // a few query rows against a cache, without derivative
  sdpa_cudnn,   // no heads mixed, 16 bits: cuDNN's scaled dot-product attention
  tensor_core,  // heads mixed, bf16
};

// How a device computes a call. Chosen once, before forward, from the inputs alone; backward uses the same plan.
struct AttentionPlan {
  AttentionKernel forward = AttentionKernel::generic, backward = AttentionKernel::generic;
  std::optional<std::string> unsupported_reason = {};     // why the device has no kernel for the call
  std::string forward_reason = {}, backward_reason = {};  // why not faster kernels, where there are some
};

// The kernels that computed attention in this process: a record for logs and measurements, in the order of first use. A
// replayed graph adds nothing to it.
struct AttentionUse {
  std::string pass;    // "forward" or "backward"
  std::string kernel;  // "tensor_core", "sdpa_cudnn", "generic", "decode", or "chunked" (composed of other ops)
  std::string reason;  // why not faster kernels: "cuDNN 9.16 or newer is needed, ..."; empty for those of the plan
  int64_t calls = 0;
};
std::vector<AttentionUse> attention_uses();
void add_attention_use(const char* pass, const char* kernel, const std::string& reason);  // from any thread
// "forward by tensor_core; backward by generic (reason)": the record in one line; "" when it is empty.
std::string text_of(const std::vector<AttentionUse>& uses);
const char* name(AttentionKernel kernel);

// Some samples, some of their query rows, and the keys that are unmasked for some of these rows.
struct QueryBlock {
  int64_t b0, samples;  // samples [b0, b0 + samples)
  int64_t t0, rows;     // query rows [t0, t0 + rows)
  int64_t s0, keys;     // keys [s0, s0 + keys)

  // The block's part of a tensor of that role, or of its gradient, as a raw view.
  Tensor part(const Tensor& x, AttentionRole::Positions positions) const {
    if (!x || positions == AttentionRole::Positions::none) return x;
    const bool queries = positions == AttentionRole::Positions::queries;
    return x.sliced(0, b0, b0 + samples).sliced(1, queries ? t0 : s0, queries ? t0 + rows : s0 + keys);
  }
};

// Cuts B samples with T query rows and S keys into blocks of at most `samples` samples and `rows` rows; the blocks of
// the same samples follow each other, in ascending order of rows.
std::vector<QueryBlock> split_queries(int64_t B, int64_t T, int64_t S, const AttentionMask& mask, int64_t samples,
                                      int64_t rows);

// The plan of a call comes first; forward and backward take it. No kernel holds more than some rows of scores at a
// time. They take tensors of 16 bits as they are. lse (B, T, N), f32 (f64 for f64): log of the sum of exp(scores), +inf
// where all keys of a row are masked; an empty handle when no derivative is needed.
struct AttentionKernels {
  Kernel<"dcmha_plan", AttentionPlan(const DcmhaInputs& x, bool derivative)> plan;
  Kernel<"dcmha_forward", void(const AttentionPlan& plan, const DcmhaInputs& x, Out y, Out lse)> forward;
  Kernel<"dcmha_backward",
         void(const AttentionPlan& plan, const DcmhaInputs& x, In y, In lse, In dy, DcmhaGradients& gradients)>
      backward;
  // The rows of x.q (1, R, N, d) against keys in blocks, k and v (1, S, Nkv, d), of 16 bits also where the rest is f32;
  // x.mask is not read. A row's bits depend on it, its keys and their positions alone: not on other rows or on places.
  Kernel<"paged_attention", void(const DcmhaInputs& x, const PagedRows& rows, Out y)> paged;
};

namespace cpu {
extern constinit const AttentionKernels attention_kernels;  // tensor/cpu/attention/attention.cpp
}
namespace cuda {
extern constinit const AttentionKernels attention_kernels;  // cuda/attention/dispatch.cpp
}

}  // namespace braid
