#include "braid/autograd/ops/attention_call.h"

namespace braid::attention {

Tensor zeros_for_sum(const Tensor& input) {
  return zeros(input.shape(), accumulate_type(input.dtype()), input.device());
}

Grads gradients_of_type(DType dtype, const DcmhaGradients& gradients) {
  Grads list = list_of(gradients);
  for (Tensor& g : list) {
    if (g) g = g.to(dtype);
  }
  return list;
}

Call::Call(const char* name, const DcmhaInputs& x, const AttentionExtras& with)
    : op(name), recorded(list_of(x)), inputs(map_tensors(x, [](const Tensor& t) { return t.detach(); })), extras(with) {
  if (!with.empty()) recorded.insert(recorded.end(), {with.bias, with.attend});
  if (with.bias) extras.bias = with.bias.detach();
  for (const Tensor& t : recorded) {
    required.push_back(requires_grad(t));
    histories.emplace_back(t);
  }
}

Grads recorded_gradients(const DcmhaInputs& x, const AttentionExtras& extras,
                         const std::vector<detail::History>& histories, const std::vector<CallPart>& parts,
                         const Tensor& dy) {
  TensorList inputs = list_of(x);
  if (!extras.empty()) inputs.push_back(extras.bias);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i]) inputs[i] = histories[i].on(inputs[i]);
  const auto definition = [&](const TensorList& list) {
    DcmhaInputs call = x;
    AttentionExtras with = extras;
    size_t i = 0;
    for_each_tensor([&](const AttentionRole&, Tensor& t) { t = list[i++]; }, call);
    if (i < list.size()) with.bias = list[i];
    return TensorList{attention_reference(call, parts, with)};
  };
  Grads gradients = detail::composed_gradients(inputs, definition, {dy});
  if (!extras.empty()) gradients.emplace_back();  // of attend
  return gradients;
}

}  // namespace braid::attention
