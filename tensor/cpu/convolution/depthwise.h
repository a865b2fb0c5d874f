// Convolution of every channel by itself, in all types: direct loops over images that are padded in a buffer.
#pragma once
#include "braid/tensor/kernels/convolution.h"

namespace braid::cpu {

// As the members of ConvolutionKernels, for groups of one channel and one output.
void convolve_depthwise(In x, In weight, const ConvolutionShape& s, Out y);
void input_gradient_depthwise(In dy, In weight, const ConvolutionShape& s, Out dx);
void weight_gradient_depthwise(In dy, In x, const ConvolutionShape& s, Out dweight);

}  // namespace braid::cpu
