#include "braid/tensor/row_invariant.h"

namespace braid::detail {

constinit thread_local bool row_invariant = false;

}  // namespace braid::detail
