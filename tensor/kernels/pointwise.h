// Kernels that compute each element of the result from one element of each input.
//
// Inputs have any strides (0 repeats an element); outputs are contiguous, and may be the very same view as an input.
// The functions behind UnaryOp and BinaryOp are listed in pointwise_ops.h, which few files include.
#pragma once
#include "braid/tensor/kernels/kernel.h"

namespace braid {

enum class UnaryOp : unsigned char;
enum class BinaryOp : unsigned char;
enum class CompareOp : unsigned char { eq, ne, lt, le };
struct AttentionMask;

struct PointwiseKernels {
  Kernel<"unary", void(UnaryOp op, double a, double b, In x, Out y)> unary;
  Kernel<"unary_backward", void(UnaryOp op, double a, double b, In x, In dy, Out dx)> unary_backward;
  Kernel<"binary", void(BinaryOp op, In x, In y, Out z)> binary;  // x, y expanded to z's shape; z: any strides
  // dx and dy have z's full shape (the op sums over repeated axes); either may be an empty handle.
  Kernel<"binary_backward", void(BinaryOp op, In x, In y, In dz, Out dx, Out dy)> binary_backward;
  // mask (u8) = 1 where op(x, y), otherwise 0. x, y of any dtype, expanded to the mask's shape.
  Kernel<"compare", void(CompareOp op, In x, In y, Out mask)> compare;
  // z = x where mask (u8) is not 0, otherwise y; of any dtype, expanded to z's shape.
  Kernel<"where", void(In mask, In x, In y, Out z)> where;
  Kernel<"masked_fill", void(In x, In mask, double value, Out y)> masked_fill;  // mask u8, expanded to x's shape
  // x (..., T, S): y = x where query t attends to key s, otherwise value.
  Kernel<"mask_scores", void(In x, const AttentionMask& mask, double value, Out y)> mask_scores;
};

namespace cpu {
extern constinit const PointwiseKernels pointwise_kernels;  // tensor/cpu/pointwise.cpp
}
namespace cuda {
extern constinit const PointwiseKernels pointwise_kernels;  // cuda/kernels/pointwise.cu
}

}  // namespace braid
