// Products over chosen axes, each one matrix product or one sum of a product.
#include "braid/autograd/contract.h"

#include <algorithm>

#include "braid/autograd/detail/check.h"
#include "braid/autograd/manipulate.h"

namespace braid {

Tensor outer(const Tensor& x, const Tensor& y) {
  const CalledOp called("outer");
  check(x.rank() == 1 && y.rank() == 1, "outer",
        [&] { return str("needs two vectors, got ", x.shape(), " and ", y.shape()); });
  return mul(unsqueeze(x, 1), unsqueeze(y, 0));
}

Tensor inner(const Tensor& x, const Tensor& y) {
  const CalledOp called("inner");
  check(x.rank() >= 1 && y.rank() >= 1, "inner",
        [&] { return str("needs at least one axis, got ", x.shape(), " and ", y.shape()); });
  return tensordot(x, y, {-1}, {-1});
}

Tensor dot(const Tensor& x, const Tensor& y) {
  const CalledOp called("dot");
  check(x.rank() == 1 && x.shape() == y.shape(), "dot",
        [&] { return str("needs two vectors of one size, got ", x.shape(), " and ", y.shape()); });
  return reshape(sum_product(x, y, {0}), {});
}

Tensor vecdot(const Tensor& x, const Tensor& y, int axis) {
  const CalledOp called("vecdot");
  const int rank = std::max(x.rank(), y.rank()), a = normal_axis(axis, rank, "vecdot") - rank;
  check(-a <= x.rank() && -a <= y.rank() && x.dim(a) == y.dim(a), "vecdot",
        [&] { return str("axis ", axis, " of ", x.shape(), " and ", y.shape(), " is not the same"); });
  return squeeze(sum_product(x, y, {a}), a);
}

Tensor tensordot(const Tensor& x, const Tensor& y, int count) {
  const CalledOp called("tensordot");
  check(count >= 0 && count <= x.rank() && count <= y.rank(), "tensordot",
        [&] { return str("needs a count of axes that ", x.shape(), " and ", y.shape(), " have, got ", count); });
  std::vector<int> last, first;
  for (int i = 0; i < count; ++i) {
    last.push_back(x.rank() - count + i);
    first.push_back(i);
  }
  return tensordot(x, y, last, first);
}

// (M, K) (K, N): the summed axes of x behind its others, those of y before.
Tensor tensordot(const Tensor& x, const Tensor& y, Axes axes_x, Axes axes_y) {
  const CalledOp called("tensordot");
  check(axes_x.size() == axes_y.size(), "tensordot",
        [&] { return str("needs as many axes of x as of y, got ", axes_x.size(), " and ", axes_y.size()); });
  std::vector<int> summed_x, summed_y, order_x, order_y;
  Shape shape;
  int64_t K = 1, M = 1, N = 1;
  for (size_t i = 0; i < axes_x.size(); ++i) {
    summed_x.push_back(normal_axis(axes_x[i], x.rank(), "tensordot"));
    summed_y.push_back(normal_axis(axes_y[i], y.rank(), "tensordot"));
    check(std::count(summed_x.begin(), summed_x.end(), summed_x.back()) == 1 &&
              std::count(summed_y.begin(), summed_y.end(), summed_y.back()) == 1,
          "tensordot", [&] { return str("axis ", axes_x[i], " of x or ", axes_y[i], " of y stands twice"); });
    const int64_t n = x.dim(summed_x.back());
    check(n == y.dim(summed_y.back()), "tensordot", [&] {
      return str("axis ", axes_x[i], " of ", x.shape(), " and axis ", axes_y[i], " of ", y.shape(), " differ in size");
    });
    K *= n;
  }
  const int axes = x.rank() + y.rank() - 2 * static_cast<int>(axes_x.size());
  check(axes <= Shape::max_rank, "tensordot",
        [&] { return str("the product of ", x.shape(), " and ", y.shape(), " has ", axes, " axes"); });
  for (int a = 0; a < x.rank(); ++a) {
    if (std::find(summed_x.begin(), summed_x.end(), a) != summed_x.end()) continue;
    order_x.push_back(a);
    shape.push_back(x.dim(a));
    M *= x.dim(a);
  }
  order_x.insert(order_x.end(), summed_x.begin(), summed_x.end());
  order_y = summed_y;
  for (int a = 0; a < y.rank(); ++a) {
    if (std::find(summed_y.begin(), summed_y.end(), a) != summed_y.end()) continue;
    order_y.push_back(a);
    shape.push_back(y.dim(a));
    N *= y.dim(a);
  }
  return reshape(matmul(reshape(permute(x, order_x), {M, K}), reshape(permute(y, order_y), {K, N})), shape);
}

// z_i = x_j y_k - x_k y_j, (i, j, k) in cyclic order
Tensor cross(const Tensor& x, const Tensor& y, int axis) {
  const CalledOp called("cross");
  const int rank = std::max(x.rank(), y.rank()), a = normal_axis(axis, rank, "cross") - rank;
  check(-a <= x.rank() && -a <= y.rank() && x.dim(a) == 3 && y.dim(a) == 3, "cross",
        [&] { return str("needs size 3 along axis ", axis, ", got ", x.shape(), " and ", y.shape()); });
  return sub(mul(roll(x, -1, a), roll(y, 1, a)), mul(roll(x, 1, a), roll(y, -1, a)));
}

Tensor bilinear(const Tensor& x, const Tensor& z, const Tensor& weight, const Tensor& bias) {
  const CalledOp called("bilinear");
  check(weight.rank() == 3 && x.rank() >= 1 && x.rank() == z.rank() && x.dim(-1) == weight.dim(1) &&
            z.dim(-1) == weight.dim(2),
        "bilinear", [&] {
          return str("needs x (..., i), z (..., j) and weight (o, i, j), got ", x.shape(), ", ", z.shape(), " and ",
                     weight.shape());
        });
  const Tensor y = einsum("...i,oij,...j->...o", {x, weight, z});
  return bias ? add(y, bias) : y;
}

// By the binary digits of n, from the lowest.
Tensor matrix_power(const Tensor& x, int64_t n) {
  const CalledOp called("matrix_power");
  check_float("matrix_power", x);
  check(x.rank() >= 2 && x.dim(-1) == x.dim(-2), "matrix_power",
        [&] { return str("needs square matrices, got ", x.shape()); });
  check(n >= 0, "matrix_power", [&] { return str("needs an exponent of at least 0, got ", n, "; see inverse"); });
  if (n == 0) return where(zeros({}, DType::u8, x.device()), x, eye(x.dim(-1), x.dtype(), x.device()));
  Tensor power = x, y;
  for (; n > 0; n /= 2) {
    if (n % 2 == 1) y = y ? matmul(y, power) : power;
    if (n > 1) power = matmul(power, power);
  }
  return y;
}

}  // namespace braid
