// Arithmetic of integers for the ops that take floating-point tensors too. For autograd/ops/*.cpp.
#pragma once
#include "braid/tensor/kernels/integer.h"
#include "braid/tensor/tensor.h"

namespace braid {

// z = f(x, y) of two integer tensors of one type, broadcast. Division by 0 throws.
Tensor integer_binary(const char* op, IntegerOp kind, const Tensor& x, const Tensor& y);

// The number as a 0-d tensor of x's type, which must hold it exactly.
Tensor number_like(const char* op, double y, const Tensor& x);

}  // namespace braid
