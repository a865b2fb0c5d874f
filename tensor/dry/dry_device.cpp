// Apart from the device itself, so that programs without a dry device link none of it.
#include "braid/tensor/dry/dry_device.h"

namespace braid {

const Backend* detail::dry_backend = nullptr;

}  // namespace braid
