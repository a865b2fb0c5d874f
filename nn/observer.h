// Intermediate results of a forward pass, for people and for comparison with other implementations.
#pragma once
#include <functional>
#include <string>

#include "braid/tensor/tensor.h"

namespace braid::nn {

// Called with the name of an intermediate result and its value, in the order of computation.
using ActivationObserver = std::function<void(const std::string& name, const Tensor& value)>;

// Passes the value to the observer, if there is one; returns the value.
inline const Tensor& observe(const ActivationObserver* observer, const std::string& name, const Tensor& value) {
  if (observer) (*observer)(name, value);
  return value;
}

}  // namespace braid::nn
