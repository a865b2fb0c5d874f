// Convolution of images x (B, C, H, W) by kernels weight (O, C / groups, kh, kw) to y (B, O, Ph, Pw):
//   y[b, o, i, j] = sum_{c, u, v} weight[o, c, u, v] x[b, c, i stride + u dilation - before, j stride + v ...]
// over the channels c of the group of o; x is 0 outside of the image. All tensors contiguous, of one float type.
//
// A kernel returns false, and leaves its output as it was, where it has no code for a shape or type that is faster than
// windows as columns and matrix products; the op does that then (autograd/ops/convolution.cpp).
#pragma once
#include "braid/tensor/kernels/kernel.h"

namespace braid {

// Window i of an axis begins at pixel i stride - before; its elements are `dilation` pixels apart.
struct ConvolutionAxis {
  int64_t size, kernel, stride, dilation;  // size: H or W
  int64_t before;                          // zeros in front of the image
  int64_t count;                           // Ph or Pw
};
struct ConvolutionShape {
  ConvolutionAxis rows, columns;
  int64_t groups;
  int64_t window() const { return rows.kernel * columns.kernel; }
  int64_t pixels() const { return rows.size * columns.size; }     // of an image
  int64_t windows() const { return rows.count * columns.count; }  // of an image
};

struct ConvolutionKernels {
  Kernel<"convolution", bool(In x, In weight, const ConvolutionShape& s, Out y)> forward;
  Kernel<"convolution_dx", bool(In dy, In weight, const ConvolutionShape& s, Out dx)> input_gradient;
  Kernel<"convolution_dweight", bool(In dy, In x, const ConvolutionShape& s, Out dweight)> weight_gradient;
};

namespace cpu {
extern constinit const ConvolutionKernels convolution_kernels;  // tensor/cpu/convolution/convolution.cpp
}

}  // namespace braid
