// Intermediate results of a forward pass, for people and for comparison with other implementations.
#pragma once
#include <functional>
#include <string>

#include "braid/tensor/tensor.h"

namespace braid::nn {

struct ActivationObserver {
  // Called with the name of an intermediate result and its value, in the order of computation.
  std::function<void(const std::string& name, const Tensor& value)> receive;
  // Whether to compute results that the pass does not form by itself: the attention maps where this is true for the
  // name "layers.0.attention_maps". Empty: none.
  std::function<bool(const std::string& name)> requests = nullptr;

  void operator()(const std::string& name, const Tensor& value) const { receive(name, value); }
  bool requested(const std::string& name) const { return requests && requests(name); }
};

}  // namespace braid::nn
