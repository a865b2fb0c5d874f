// Stands in for cusolver.cpp where Braid is built without cuSOLVER: the host factorises.
#include "braid/tensor/kernels/linalg.h"

namespace braid::cuda {

constinit const LinalgKernels linalg_kernels{};

}  // namespace braid::cuda
