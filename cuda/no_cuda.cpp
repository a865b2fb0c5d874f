// The CUDA device of a build without CUDA: every use throws.
#include "braid/tensor/kernels/backend.h"

namespace braid {

static const char* const kReason = "this build has no CUDA support; configure with -DBRAID_CUDA=ON";

int cuda_device_count() { return 0; }
std::string cuda_unsupported_reason(int) { return kReason; }
const Backend& cuda_backend(int) { fail("cuda", kReason); }

}  // namespace braid
