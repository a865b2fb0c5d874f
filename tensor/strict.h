// Strict bits: results that do not depend on where and in which parts they are computed.
//
// While a StrictBits lives in this thread, the CPU takes kernels that have one order of every sum and one rounding of
// every step, on each instruction set and at any number of threads. What is computed in parts (samples of a step,
// ranks) is added as one tree over global positions. `braid train` opens the scope for run.strict.
#pragma once
#include "braid/tensor/scoped_value.h"

namespace braid {

namespace detail {
extern constinit thread_local bool strict;  // off at first
}

// Read by the op, in the thread that calls it; the threads that help with it need no scope of their own.
class [[nodiscard]] StrictBits {
 public:
  explicit StrictBits(bool on = true) : on_(detail::strict, on || detail::strict) {}

 private:
  ScopedValue<bool> on_;
};

inline bool strict_bits() { return detail::strict; }

}  // namespace braid
