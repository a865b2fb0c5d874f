// Intermediate results of a forward pass, for people and for comparison with other implementations.
#pragma once
#include <functional>
#include <string>
#include <utility>

#include "braid/tensor/tensor.h"

namespace braid::nn {

struct ActivationObserver {
  // Called with the name of an intermediate result and its value, in the order of computation.
  std::function<void(const std::string& name, const Tensor& value)> receive;
  // Results that the pass does not form by itself, such as attention maps, are computed where this holds for the name
  // "attention_maps"; empty: nowhere.
  std::function<bool(const std::string& name)> requests = nullptr;

  void operator()(const std::string& name, const Tensor& value) const { receive(name, value); }
  bool requested(const std::string& name) const { return requests && requests(name); }
};

// Passes the value to the observer, if there is one; returns the value.
inline const Tensor& observe(const ActivationObserver* observer, const std::string& name, const Tensor& value) {
  if (observer) (*observer)(name, value);
  return value;
}

// The observer of a part: names get the prefix. `whole` must outlive the result.
inline ActivationObserver observer_of_part(const ActivationObserver& whole, const std::string& prefix) {
  return {[&whole, prefix](const std::string& name, const Tensor& value) { whole(prefix + name, value); },
          [&whole, prefix](const std::string& name) { return whole.requested(prefix + name); }};
}

}  // namespace braid::nn
