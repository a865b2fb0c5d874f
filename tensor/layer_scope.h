// The kind of layer that this thread computes: what measurements of kernels are summed by.
#pragma once
#include "braid/tensor/scoped_value.h"

namespace braid {

namespace detail {
extern constinit thread_local const char* running_layer;  // "": none
}

// While it lives, kernels that this thread calls belong to layers of that kind; the innermost one counts. Derivatives
// belong to the kind in which their op was recorded.
class [[nodiscard]] LayerScope {
 public:
  explicit LayerScope(const char* kind) : running_(detail::running_layer, kind) {}

 private:
  ScopedValue<const char*> running_;
};

}  // namespace braid
