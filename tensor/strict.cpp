#include "braid/tensor/strict.h"

namespace braid::detail {

constinit thread_local bool strict = false;

}  // namespace braid::detail
