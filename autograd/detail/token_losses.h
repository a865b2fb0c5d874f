// The terms of a loss that an op sums (linear_cross_entropy and its vocabulary-parallel form), for who needs the sums
// of parts of a batch too: the op has them in any case.
#pragma once
#include "braid/tensor/scoped_value.h"
#include "braid/tensor/tensor.h"

namespace braid {

namespace detail {
extern constinit thread_local Tensor* token_losses;
}

// While it lives, the last such loss of this thread leaves its terms here.
class TokenLosses {
 public:
  // (R): of each target in its order, 0 where it is not counted, without derivative; an empty handle before a loss.
  const Tensor& terms() const { return terms_; }

  static bool wanted() { return detail::token_losses != nullptr; }
  static void keep(const Tensor& terms) {
    if (wanted()) *detail::token_losses = terms;
  }

 private:
  Tensor terms_;
  ScopedValue<Tensor*> scope_{detail::token_losses, &terms_};
};

}  // namespace braid
