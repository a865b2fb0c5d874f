// The CUDA device of a build without CUDA: it does not exist, and says so.
#include "tensor/backend.h"

namespace braid {

int cuda_device_count() { return 0; }
const Backend& cuda_backend(int) { fail("cuda", "this build has no CUDA support"); }

}  // namespace braid
