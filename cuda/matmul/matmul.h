// Matrix products on the GPU: how a product of strided tensors becomes calls of a BLAS for column-major matrices with
// one batch axis.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "braid/tensor/kernels/matmul.h"

namespace braid::cuda {

// y = alpha x z + beta y, x (..., M, K), z (..., K, N), y (..., M, N) with equal batch axes.
// Batch axes may have any strides (0 repeats). Of the last two axes of each tensor one has stride 1, either of them.
// x and z have one dtype; y has the same, or f32 where theirs has 16 bits. Sums are f32, f64 for f64.
void matmul(In x, In z, double alpha, double beta, Out y);

// A column-major matrix; `transposed` when memory holds its transpose. `batch` is the stride of the batch axis.
struct BlasOperand {
  const Tensor* tensor = nullptr;
  bool transposed = false;
  int64_t leading = 1, batch = 0;
};

// c (rows, columns) = alpha a (rows, inner) b (inner, columns) + beta c for every entry of one batch axis; once for
// each of `calls`, with the three tensors starting that many elements behind their first one.
struct MatmulPlan {
  int64_t rows = 0, columns = 0, inner = 0, batch = 1;
  BlasOperand a, b, c;           // c is not transposed
  const Tensor* bias = nullptr;  // (rows), at a multiple of 16 bytes: added to every column of c before it is rounded
  struct Offsets {
    int64_t a, b, c;
  };
  std::vector<Offsets> calls;
};

inline constexpr int64_t kBlasWorkspace = 32 << 20;  // of a GPU; enough for the best algorithms on sm_90

// True when BLAS can read or write x: of the last two axes one has stride 1 and the other one steps over it.
bool is_matrix(const Tensor& x);

// y = x z as in matmul(); all three must be matrices (is_matrix). Batch axes along which z repeats and x
// and y continue their rows become rows; the longest of the others is the batch axis, the rest become calls.
MatmulPlan plan_matmul(In x, In z, In y);

// Everything that the choice of an algorithm for one call of a plan may depend on: types, sizes, layouts, and the
// powers of two, up to 256, that the addresses are multiples of. `adds`: beta is not 0.
using ProductKey = std::array<int64_t, 19>;
ProductKey key_of(const MatmulPlan& plan, const MatmulPlan::Offsets& call, bool adds);

std::string text_of(const MatmulPlan& plan);  // "(256, 64) x (64, 128) of bf16", for messages

// A BLAS chooses an algorithm when a product is new, which a driver may forbid while it captures: throws Error(misuse)
// then. A product that ran once before has its algorithm.
void check_may_choose(const MatmulPlan& plan);

// cuda/matmul/blas.cpp, or its emulation. Returns false, without effect, when it cannot add the bias to this product,
// which must be one call. Throws as check_may_choose when the product is new.
bool execute(const MatmulPlan& plan, double alpha, double beta);

}  // namespace braid::cuda
