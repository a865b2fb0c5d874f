#include "braid/autograd/detail/check.h"
#include "braid/autograd/int8.h"
#include "braid/autograd/ops.h"
#include "braid/tensor/base/integers.h"
#include "braid/tensor/kernels/backend.h"

namespace braid {

namespace {

void check_weight(const char* op, const Tensor& weight) {
  check(weight.rank() == 2, op, [&] { return str("needs a weight (out, in), got ", weight.shape()); });
  check_float(op, weight);
  no_gradient(op, weight);
}

// x W^T + bias by kernel(x, bias, y) of rows (n, in). `fits`: the shapes of values and scale fit x.
template <class KernelCall>
Tensor product(const char* op, const Tensor& x, const Tensor& q, const Tensor& s, DType scale_type, bool fits,
               const Tensor& bias, KernelCall kernel) {
  check(x.dtype() == DType::f32, op,
        [&] { return str("quantised weights multiply activations of f32, got ", x.dtype()); });
  check(x.device() == q.device(), op,
        [&] { return str("the inputs are on ", x.device(), " and ", q.device(), "; move one of them"); });
  check(fits, op,
        [&] { return str("input ", x.shape(), " does not fit weight ", q.shape(), " with scale ", s.shape()); });
  check(q.dtype() == DType::u8 && s.dtype() == scale_type, op, [&] {
    return str("needs a weight of u8 and a scale of ", scale_type, ", got ", q.dtype(), " and ", s.dtype());
  });
  if (bias) {
    check_same(op, x, bias);
    check(bias.shape() == Shape{q.dim(0)}, op,
          [&] { return str("bias ", bias.shape(), " does not fit weight ", q.shape(), ": needs (out)"); });
    no_gradient(op, bias);
  }
  no_gradient(op, x);
  Shape shape = x.shape();
  shape[-1] = q.dim(0);
  int64_t rows = 1;
  for (int a = 0; a < x.rank() - 1; ++a) rows *= x.dim(a);
  Tensor y = empty({rows, q.dim(0)}, DType::f32, x.device());
  kernel(x.detach().contiguous().reshaped({rows, x.dim(-1)}), bias ? bias.detach().contiguous() : bias, y);
  return y.reshaped(shape);
}

int64_t groups_of(int64_t in) { return detail::ceil_div(in, kGroup); }

}  // namespace

Int8Weight quantize_int8(const Tensor& weight) {
  check_weight("quantize_int8", weight);
  Int8Weight w{empty(weight.shape(), DType::u8, weight.device()), empty({weight.dim(0)}, DType::f32, weight.device())};
  backend(weight.device()).int8.quantize(weight.contiguous(), w.values, w.scale);
  return w;
}

Tensor dequantize_int8(const Int8Weight& weight) {
  return affine(cast(weight.values, DType::f32), 1, -128) * unsqueeze(weight.scale, 1);
}

Tensor linear_int8(const Tensor& x, const Int8Weight& weight, const Tensor& bias) {
  const Tensor &q = weight.values, &s = weight.scale;
  const bool fits = x.rank() >= 1 && q.rank() == 2 && x.dim(-1) == q.dim(1) && s.shape() == Shape{q.dim(0)};
  return product("linear_int8", x, q, s, DType::f32, fits, bias, [&](In rows, In b, Out y) {
    backend(x.device()).int8.linear(rows, q.contiguous(), s.contiguous(), b, y);
  });
}

GroupWeight quantize_groups(const Tensor& weight, int bits) {
  check_weight("quantize_groups", weight);
  check(bits == 8 || bits == 4, "quantize_groups", [&] { return str("needs 8 or 4 bits, got ", bits); });
  const int64_t groups = groups_of(weight.dim(1));
  GroupWeight w{empty({weight.dim(0), groups * kGroup}, DType::u8, weight.device()),
                empty({weight.dim(0), groups}, DType::f16, weight.device()), bits};
  backend(weight.device()).int8.quantize_groups(weight.contiguous(), bits, w.values, w.scale);
  const auto* s = w.scale.data<float16>();
  for (int64_t i = 0; i < w.scale.numel(); ++i)
    check((s[i].bits & 0x7c00) != 0x7c00, "quantize_groups",
          "a weight is too large or not finite: a scale of 16 bits is at most 65504");
  return w;
}

Tensor dequantize_groups(const GroupWeight& w, int64_t in) {
  check(w.values.rank() == 2 && w.scale.shape() == Shape{w.values.dim(0), groups_of(in)} &&
            w.values.dim(1) == kGroup * w.scale.dim(1),
        "dequantize_groups", [&] {
          return str("values ", w.values.shape(), " and scale ", w.scale.shape(), " are no weight (out, ", in, ")");
        });
  const Tensor values = w.values.contiguous(), scale = w.scale.contiguous();
  const int64_t out = values.dim(0);
  const uint8_t* q = values.data<uint8_t>();
  const auto* s = scale.data<float16>();
  Tensor y = empty({out, in}, DType::f32);
  auto* to = y.mutable_data<float>();
  for (int64_t o = 0; o < out; ++o)
    for (int64_t i = 0; i < in; ++i)
      to[o * in + i] = s[o * scale.dim(1) + i / kGroup] * static_cast<float>(q[o * values.dim(1) + i] - 128);
  return y;
}

Tensor linear_groups(const Tensor& x, const GroupPanels& w, const Tensor& bias) {
  const bool fits = x.rank() >= 1 && w.values.rank() == 2 &&
                    w.scale.shape() == Shape{w.values.dim(0), groups_of(x.dim(-1))} &&
                    w.values.dim(1) == 4 * w.bits() * w.scale.dim(1);
  return product("linear_groups", x, w.values, w.scale, DType::f16, fits, bias, [&](In rows, In b, Out y) {
    backend(x.device()).int8.linear_groups(rows, w.values.contiguous(), w.scale.contiguous(), b, y);
  });
}

}  // namespace braid
