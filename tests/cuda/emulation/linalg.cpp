// A cuSOLVER that is LAPACK: the emulated GPU's memory is the CPU's.
#include "braid/tensor/kernels/linalg.h"

#include "tests/cuda/emulation/memory.h"

namespace braid::cuda {

namespace {

// The CPU's kernel `member`, as the GPU.
template <auto member>
struct OnGpu {
  template <class... Args>
  static void run(Args... args) {
    const emulated::OnTheGpu on;
    (cpu::linalg_kernels.*member)(args...);
  }
};

using L = LinalgKernels;

}  // namespace

constinit const LinalgKernels linalg_kernels{.cholesky = OnGpu<&L::cholesky>::run<In, Out>,
                                             .solve = OnGpu<&L::solve>::run<In, In, Out>,
                                             .solve_triangular = OnGpu<&L::solve_triangular>::run<In, In, bool, Out>,
                                             .inverse = OnGpu<&L::inverse>::run<In, Out>,
                                             .slogdet = OnGpu<&L::slogdet>::run<In, Out, Out>,
                                             .qr = OnGpu<&L::qr>::run<In, Out, Out>,
                                             .eigh = OnGpu<&L::eigh>::run<In, Out, Out>,
                                             .svd = OnGpu<&L::svd>::run<In, Out, Out, Out>};

}  // namespace braid::cuda
