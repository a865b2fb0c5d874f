#include "braid/autograd/integers.h"

#include <cmath>
#include <limits>

#include "braid/autograd/detail/check.h"
#include "braid/autograd/detail/integer.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/kernels/backend.h"

namespace braid {

namespace {

struct Range {
  double least, greatest;
};

// The integers that a type and a double hold both.
Range exact_range(DType t) {
  if (t == DType::u8) return {0, 255};
  if (t == DType::i32) return {std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
  return {-0x1p53, 0x1p53};
}

// Waits for the device.
void check_divisors(const char* op, const Tensor& y) {
  if (y.device() == kMeta) return;
  const Tensor values = y.to(kCpu).contiguous();
  integer::visit_type(values.dtype(), op, [&]<class T>() {
    const T* v = values.data<T>();
    for (int64_t i = 0; i < values.numel(); ++i)
      check(v[i] != 0, op, [&] { return str("divides by 0: element ", i, " of the divisor ", y.shape()); });
  });
}

}  // namespace

Tensor number_like(const char* op, double y, const Tensor& x) {
  if (!is_float(x.dtype())) {
    const Range range = exact_range(x.dtype());
    check(y == std::floor(y) && y >= range.least && y <= range.greatest, op, [&] {
      return str(detail::shortest(y), " is not a number of ", x.dtype(), "; cast the tensor, for example to f32");
    });
  }
  return full({}, y, x.dtype(), x.device());
}

Tensor integer_binary(const char* op, IntegerOp kind, const Tensor& x, const Tensor& y) {
  check_same(op, x, y);
  check(!is_float(x.dtype()), op,
        [&] { return str("needs integers (i64, i32 or u8), got ", x.dtype(), "; cast() the tensors"); });
  const Shape shape = broadcast(x.shape(), y.shape(), op);
  if (kind == IntegerOp::floor_divide || kind == IntegerOp::remainder) check_divisors(op, y);
  Tensor z = empty(shape, x.dtype(), x.device());
  backend(x.device()).integer.binary(kind, x.expanded(shape).contiguous(), y.expanded(shape).contiguous(), z);
  return z;
}

Tensor bitwise_and(const Tensor& x, const Tensor& y) {
  return integer_binary("bitwise_and", IntegerOp::bitwise_and, x, y);
}
Tensor bitwise_or(const Tensor& x, const Tensor& y) {
  return integer_binary("bitwise_or", IntegerOp::bitwise_or, x, y);
}
Tensor bitwise_xor(const Tensor& x, const Tensor& y) {
  return integer_binary("bitwise_xor", IntegerOp::bitwise_xor, x, y);
}
Tensor bitwise_invert(const Tensor& x) {
  const double ones = x.dtype() == DType::u8 ? 255 : -1;  // all bits set
  return integer_binary("bitwise_invert", IntegerOp::bitwise_xor, x, number_like("bitwise_invert", ones, x));
}
Tensor bitwise_left_shift(const Tensor& x, const Tensor& count) {
  return integer_binary("bitwise_left_shift", IntegerOp::left_shift, x, count);
}
Tensor bitwise_right_shift(const Tensor& x, const Tensor& count) {
  return integer_binary("bitwise_right_shift", IntegerOp::right_shift, x, count);
}

Tensor maximum(const Tensor& x, double y) { return maximum(x, number_like("maximum", y, x)); }
Tensor minimum(const Tensor& x, double y) { return minimum(x, number_like("minimum", y, x)); }
Tensor floor_divide(const Tensor& x, double y) { return floor_divide(x, number_like("floor_divide", y, x)); }
Tensor remainder(const Tensor& x, double y) { return remainder(x, number_like("remainder", y, x)); }
Tensor where(const Tensor& mask, const Tensor& x, double y) { return where(mask, x, number_like("where", y, x)); }
Tensor where(const Tensor& mask, double x, const Tensor& y) { return where(mask, number_like("where", x, y), y); }

}  // namespace braid
