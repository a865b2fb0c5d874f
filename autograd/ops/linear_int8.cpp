#include "braid/autograd/detail/check.h"
#include "braid/autograd/int8.h"
#include "braid/autograd/ops.h"
#include "braid/tensor/kernels/backend.h"

namespace braid {

Int8Weight quantize_int8(const Tensor& weight) {
  check(weight.rank() == 2, "quantize_int8", [&] { return str("needs a weight (out, in), got ", weight.shape()); });
  check_float("quantize_int8", weight);
  no_gradient("quantize_int8", weight);
  Int8Weight w{empty(weight.shape(), DType::u8, weight.device()), empty({weight.dim(0)}, DType::f32, weight.device())};
  backend(weight.device()).int8.quantize(weight.contiguous(), w.values, w.scale);
  return w;
}

Tensor dequantize_int8(const Int8Weight& weight) {
  return affine(cast(weight.values, DType::f32), 1, -128) * unsqueeze(weight.scale, 1);
}

Tensor linear_int8(const Tensor& x, const Int8Weight& weight, const Tensor& bias) {
  const Tensor &q = weight.values, &s = weight.scale;
  check(x.dtype() == DType::f32, "linear_int8",
        [&] { return str("8-bit weights multiply activations of f32, got ", x.dtype()); });
  check(x.device() == q.device(), "linear_int8",
        [&] { return str("the inputs are on ", x.device(), " and ", q.device(), "; move one of them"); });
  check(x.rank() >= 1 && q.rank() == 2 && x.dim(-1) == q.dim(1) && s.shape() == Shape{q.dim(0)}, "linear_int8", [&] {
    return str("input ", x.shape(), " does not fit weight ", q.shape(), " with scale ", s.shape(),
               ": needs (..., in), (out, in) and (out)");
  });
  check(q.dtype() == DType::u8 && s.dtype() == DType::f32, "linear_int8",
        [&] { return str("needs a weight of u8 and a scale of f32, got ", q.dtype(), " and ", s.dtype()); });
  if (bias) {
    check_same("linear_int8", x, bias);
    check(bias.shape() == s.shape(), "linear_int8",
          [&] { return str("bias ", bias.shape(), " does not fit weight ", q.shape(), ": needs (out)"); });
    no_gradient("linear_int8", bias);
  }
  no_gradient("linear_int8", x);
  Shape shape = x.shape();
  shape[-1] = q.dim(0);
  int64_t rows = 1;
  for (int a = 0; a < x.rank() - 1; ++a) rows *= x.dim(a);
  Tensor y = empty({rows, q.dim(0)}, DType::f32, x.device());
  backend(x.device())
      .int8.linear(x.detach().contiguous().reshaped({rows, q.dim(1)}), q.contiguous(), s.contiguous(),
                   bias ? bias.detach().contiguous() : bias, y);
  return y.reshaped(shape);
}

}  // namespace braid
