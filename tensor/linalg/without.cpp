// What a build without LAPACK has in the place of linalg.cpp.
#include "braid/tensor/kernels/linalg.h"

namespace braid::cpu {

namespace {
template <class... Tensors>
void missing(Tensors...) {
  fail(detail::running_kernel(),
       "this build of Braid has no LAPACK: install liblapack-dev, configure with BRAID_LAPACK=ON and build again");
}
}  // namespace

bool has_lapack() { return false; }
constinit const LinalgKernels linalg_kernels{missing, missing, missing, missing, missing, missing, missing, missing};

}  // namespace braid::cpu
