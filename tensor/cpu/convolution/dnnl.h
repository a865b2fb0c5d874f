// Convolution in f32 by oneDNN, in pieces that threads share: images, groups and blocks of channels. The pieces depend
// on the shape alone, one thread computes a piece, and partial sums are added in order, so that no bit depends on the
// number of threads. Only where BRAID_HAVE_DNNL is defined.
#pragma once
#include "braid/tensor/kernels/convolution.h"

namespace braid::cpu {

// As the members of ConvolutionKernels; false for small or huge images, and where oneDNN has no fast code.
bool convolve_dnnl(In x, In weight, const ConvolutionShape& s, Out y);
bool input_gradient_dnnl(In dy, In weight, const ConvolutionShape& s, Out dx);
bool weight_gradient_dnnl(In dy, In x, const ConvolutionShape& s, Out dweight);

}  // namespace braid::cpu
