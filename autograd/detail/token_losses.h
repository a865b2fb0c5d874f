// The terms of a loss that an op sums (linear_cross_entropy and its vocabulary-parallel form), for who needs the sums
// of parts of a batch too, or the sum without the z-loss: the op has them in any case.
#pragma once
#include "braid/tensor/scoped_value.h"
#include "braid/tensor/tensor.h"

namespace braid {

namespace detail {
struct KeptLosses {
  Tensor terms, sum_without_z;
};
extern constinit thread_local KeptLosses* token_losses;
}  // namespace detail

// While it lives, the last such loss of this thread leaves its terms here.
class TokenLosses {
 public:
  // (R): of each target in its order, 0 where it is not counted, without derivative; an empty handle before a loss.
  const Tensor& terms() const { return of_.terms; }
  // `loss`, which that loss gave, without its z-loss; if it has one, without derivative.
  const Tensor& without_z(const Tensor& loss) const { return of_.sum_without_z ? of_.sum_without_z : loss; }

  static bool wanted() { return detail::token_losses != nullptr; }
  static void keep(const Tensor& terms, const Tensor& sum_without_z = {}) {
    if (wanted()) *detail::token_losses = {terms, sum_without_z};
  }

 private:
  detail::KeptLosses of_;
  ScopedValue<detail::KeptLosses*> scope_{detail::token_losses, &of_};
};

}  // namespace braid
