// Matrix products of the emulated card: the CPU's, on the same memory.
#include "cuda/blas.h"

#include "tests/cuda/emulation/memory.h"

namespace braid::cuda {

void product(In x, In z, double alpha, double beta, Out y) {
  const emulated::OnTheCard on;
  const Backend& cpu = cpu_backend();
  const DType wide = y.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const auto widened = [&](In t) {
    Tensor copy = empty(t.shape(), wide);
    cpu.copy(t, copy);
    return copy;
  };
  Tensor xz = empty(y.shape(), wide);
  cpu.matmul(widened(x), widened(z), false, xz);
  cpu.unary(UnaryOp::affine, alpha, 0, xz, xz);
  if (beta != 0) {  // as BLAS has it: with beta = 0, y is not read
    Tensor before = widened(y);
    cpu.unary(UnaryOp::affine, beta, 0, before, before);
    cpu.binary(BinaryOp::add, xz, before, xz);
  }
  cpu.copy(xz, y);
}

}  // namespace braid::cuda
