// Functions that are called when the gradient of a leaf arrives. That of a result is seen by tap() of composed.h.
#pragma once
#include <functional>
#include <memory>

#include "braid/tensor/tensor.h"

namespace braid {

using GradHook = std::function<void(const Tensor& gradient)>;

// One hook of one leaf.
class HookHandle {
 public:
  HookHandle() = default;
  HookHandle(std::weak_ptr<Node> leaf, std::weak_ptr<const GradHook> hook)
      : leaf_(std::move(leaf)), hook_(std::move(hook)) {}
  // From the next gradient on the hook is not called. Does nothing when it is removed already or the leaf is gone.
  void remove();

 private:
  std::weak_ptr<Node> leaf_;
  std::weak_ptr<const GradHook> hook_;
};

// Calls hook(gradient) during backward() as soon as this leaf's gradient of the pass is complete, with what earlier
// passes left added (data parallelism starts its reduction there): once per pass, however many ops and recomputed
// segments use the leaf, on the thread of the pass. Several hooks of a leaf are called in the order of their
// registration. A hook that writes to the gradient is an error: use tap(), or set_grad() after the pass. It must not
// capture the leaf itself: that would be a cycle. It lives as long as the leaf, or until remove() of the handle, which
// need not be kept.
HookHandle on_grad(const Tensor& leaf, GradHook hook);

}  // namespace braid
