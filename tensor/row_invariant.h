// Matrix products in which the bits of a row do not depend on the other rows.
//
// While a RowInvariantProducts lives in this thread, every matrix product of the CPU gives each row of y = x W (+ bias)
// bits that depend on that row of x, on W and on the bias alone: the number of rows, their order and the number of
// threads do not matter. So a request gets the same bits alone and in any batch. Outside of it products take the kernel
// that is fastest for their whole shape, and a row's last digits may change with the number of rows beside it.
//
// Every kernel of the CPU that works row by row (norms, softmax, pointwise functions, rope, products with 8-bit
// weights) always has this property. It holds on one type of processor: other instruction sets round differently.
#pragma once
#include "braid/tensor/scoped_value.h"

namespace braid {

namespace detail {
extern constinit thread_local bool row_invariant;  // off at first
}

// Read by the op, in the thread that calls it; the threads that help with it need no scope of their own.
class [[nodiscard]] RowInvariantProducts {
 public:
  RowInvariantProducts() : on_(detail::row_invariant, true) {}

 private:
  ScopedValue<bool> on_;
};

inline bool row_invariant_products() { return detail::row_invariant; }

}  // namespace braid
