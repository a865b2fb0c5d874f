// The choice of the code of a convolution: own loops where every channel is by itself, oneDNN in f32.
#include "braid/tensor/kernels/convolution.h"

#include "braid/tensor/cpu/convolution/depthwise.h"
#include "braid/tensor/trace_device.h"
#ifdef BRAID_HAVE_DNNL
#include "braid/tensor/cpu/convolution/dnnl.h"
#endif

namespace braid::cpu {

namespace {

using Code = void(In, In, const ConvolutionShape&, Out);
using Attempt = bool(In, In, const ConvolutionShape&, Out);

// weight: of the kernels' shape. y: of the result's.
bool convolve_by(Code depthwise, [[maybe_unused]] Attempt dnnl, In a, In b, In weight, In y, const ConvolutionShape& s,
                 Out out) {
  if (a.numel() == 0 || b.numel() == 0 || out.numel() == 0) return false;
  if (TraceDevice::current()) [[unlikely]] {
    // computes nothing
  } else if (weight.dim(1) == 1 && weight.dim(0) == s.groups) {
    depthwise(a, b, s, out);
  } else if (dnnl == nullptr || a.dtype() != DType::f32 || !dnnl(a, b, s, out)) {
    return false;
  }
  if (TracedFlops* flops = detail::counted_flops) [[unlikely]]
    flops->add_product(y.numel(), weight.dim(1) * s.window());
  return true;
}

#ifdef BRAID_HAVE_DNNL
constexpr Attempt *kForward = convolve_dnnl, *kOfInput = input_gradient_dnnl, *kOfWeight = weight_gradient_dnnl;
#else
constexpr Attempt *kForward = nullptr, *kOfInput = nullptr, *kOfWeight = nullptr;
#endif

bool forward(In x, In weight, const ConvolutionShape& s, Out y) {
  return convolve_by(convolve_depthwise, kForward, x, weight, weight, y, s, y);
}
bool input_gradient(In dy, In weight, const ConvolutionShape& s, Out dx) {
  return convolve_by(input_gradient_depthwise, kOfInput, dy, weight, weight, dy, s, dx);
}
bool weight_gradient(In dy, In x, const ConvolutionShape& s, Out dweight) {
  return convolve_by(weight_gradient_depthwise, kOfWeight, dy, x, dweight, dy, s, dweight);
}

}  // namespace

constinit const ConvolutionKernels convolution_kernels{
    .forward = forward,
    .input_gradient = input_gradient,
    .weight_gradient = weight_gradient,
};

}  // namespace braid::cpu
