// A call of the attention ops as its implementations take it, and gradients in its shape.
#pragma once
#include <vector>

#include "braid/autograd/detail/composed_gradients.h"
#include "braid/autograd/ops/attention_inputs.h"
#include "braid/autograd/ops/attention_parts.h"

namespace braid::attention {

using TensorList = std::vector<Tensor>;  // in the order of for_each_tensor

template <class Call>
TensorList list_of(const Call& call) {
  TensorList list;
  for_each_tensor([&](const AttentionRole&, const Tensor& t) { list.push_back(t); }, call);
  return list;
}

// For the inputs whose gradient is required (flags in the order of for_each_tensor): make(role, input).
template <class Make>
DcmhaGradients gradients_for(const DcmhaInputs& x, const std::vector<bool>& required, Make&& make) {
  DcmhaGradients gradients;
  size_t i = 0;
  for_each_tensor(
      [&](const AttentionRole& role, const Tensor& input, Tensor& gradient) {
        if (required[i++]) gradient = make(role, input);
      },
      x, gradients);
  return gradients;
}

// For a gradient that several calls add to: a sum in 16 bits would lose what is small beside it.
Tensor zeros_for_sum(const Tensor& input);
Grads gradients_of_type(DType dtype, const DcmhaGradients& gradients);

// The op's name, the tensors that it records, and the same tensors without their history, so that a closure keeps no
// graph alive.
struct Call {
  const char* op;
  TensorList recorded;         // with extras then bias and attend, so that a change in place is noticed
  std::vector<bool> required;  // gradients
  DcmhaInputs inputs;
  AttentionExtras extras;
  std::vector<detail::History> histories;  // for closures, which keep no values but those of `inputs` and `extras`

  Call(const char* name, const DcmhaInputs& x, const AttentionExtras& with);
};

// The derivative by ops that record: that of the definition, part by part. histories: those of a Call.
Grads recorded_gradients(const DcmhaInputs& x, const AttentionExtras& extras,
                         const std::vector<detail::History>& histories, const std::vector<CallPart>& parts,
                         const Tensor& dy);

// AttentionImpl::chunked: the reference on blocks of query rows; `chunk` of SdpaOptions. No parts: the whole call.
Tensor chunked(const Call& call, const std::vector<CallPart>& parts, int64_t chunk);

}  // namespace braid::attention
