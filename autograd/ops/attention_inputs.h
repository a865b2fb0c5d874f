// The inputs of the attention ops: checked, completed and laid out as an implementation takes them.
#pragma once
#include "braid/autograd/dcmha.h"
#include "braid/autograd/ops/attention_reference.h"
#include "braid/tensor/kernels/attention.h"

namespace braid {

// The inputs of a call as its kernels take them; the scale by its default where the options leave it open.
DcmhaInputs inputs_of(const char* op, const Tensor& q, const Tensor& k, const Tensor& v, const HeadMixing& pre,
                      const HeadMixing& post, int64_t groups, const SdpaOptions& o);
// Throws where shapes, types or devices do not fit together.
// narrow_keys: keys and values may be of a 16-bit type where everything else is f32.
void check_inputs(const char* op, const DcmhaInputs& x, bool narrow_keys = false);
// The options that the definition alone serves, checked.
AttentionExtras extras_of(const char* op, const DcmhaInputs& x, const SdpaOptions& options);
// x with the last axis of every tensor contiguous, as the kernels require.
DcmhaInputs rows_contiguous(const DcmhaInputs& x);

// x with f(tensor) in place of every tensor that exists.
template <class F>
DcmhaInputs map_tensors(DcmhaInputs x, F&& f) {
  for_each_tensor(
      [&](const AttentionRole&, Tensor& t) {
        if (t) t = f(t);
      },
      x);
  return x;
}

}  // namespace braid
