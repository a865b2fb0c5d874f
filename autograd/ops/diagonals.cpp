// Triangles and diagonals, and windows: views with strides of their own.
#include <algorithm>
#include <cstdlib>

#include "braid/autograd/create.h"
#include "braid/autograd/detail/check.h"
#include "braid/autograd/manipulate.h"
#include "braid/tensor/kernels/backend.h"

namespace braid {

namespace {

// Diagonal k of two axes as a raw view.
Tensor diagonal_view(const Tensor& x, int64_t k, int a, int b) {
  const int64_t n = std::max(int64_t{0}, k >= 0 ? std::min(x.dim(a), x.dim(b) - k) : std::min(x.dim(a) + k, x.dim(b)));
  Shape shape;
  Strides strides;
  for (int i = 0; i < x.rank(); ++i) {
    if (i == a || i == b) continue;
    shape.push_back(x.dim(i));
    strides.push_back(x.strides()[i]);
  }
  shape.push_back(n);
  strides.push_back(x.strides()[a] + x.strides()[b]);
  return x.view(shape, strides, n == 0 ? 0 : k >= 0 ? k * x.strides()[b] : -k * x.strides()[a]);
}

// y = x on diagonal k of two axes of `shape`, 0 elsewhere   dx = diagonal k of dy
Tensor on_diagonal(const char* op, const Tensor& x, const Shape& shape, int64_t k, int a, int b) {
  Tensor y = zeros(shape, x.dtype(), x.device());
  diagonal_view(y, k, a, b).copy_(x);
  return record(op, y, {x}, differentiable([=](const Tensor& dy) -> Grads { return {diagonal(dy, k, a, b)}; }));
}

// The places (N, M) of the last two axes of x that lie on diagonal k or to one side of it: u8.
Tensor triangle_mask(const char* op, const Tensor& x, int64_t k, bool left) {
  check(x.rank() >= 2, op, [&] { return str("needs at least two axes, got ", x.shape()); });
  k = std::clamp(k, -x.dim(-2), x.dim(-1));  // the same triangle; k + row stays an i64
  const Tensor columns = arange(x.dim(-1), DType::i64, x.device());
  const Tensor edge = arange(k, x.dim(-2) + k, 1, DType::i64, x.device()).unsqueezed(1);
  return left ? le(columns, edge) : ge(columns, edge);
}

// dx[..., i step + j, ...] = sum over all i, j of dy[..., i, ..., j], `n` entries   ddy = windows of ddx
Tensor folded(const Tensor& dy, int axis, int64_t n, int64_t step) {
  const int64_t count = dy.dim(axis), size = dy.dim(-1);
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < count; ++i)
    for (int64_t j = 0; j < size; ++j) ids.push_back(i * step + j);
  std::vector<int> order{axis, dy.rank() - 1}, back;
  Shape shape{n};
  for (int a = 0; a < dy.rank() - 1; ++a) {
    if (a == axis) continue;
    order.push_back(a);
    shape.push_back(dy.dim(a));
  }
  for (int a = 0; a < shape.rank(); ++a) back.push_back(a < axis ? a + 1 : a == axis ? 0 : a);
  Tensor dx = zeros(shape, dy.dtype(), dy.device());
  backend(dy.device())
      .index.add(dy.detach().permuted(order).contiguous(), from_vector(ids, {count, size}, dy.device()), dx);
  return record("windows", dx.permuted(back), {dy},
                differentiable([=](const Tensor& g) -> Grads { return {windows(g, axis, size, step)}; }));
}

}  // namespace

// y[..., i, ..., j] = x[..., i step + j, ...]   dx: folded(dy)
Tensor windows(const Tensor& x, int axis, int64_t size, int64_t step) {
  const int a = normal_axis(axis, x.rank(), "windows");
  const int64_t n = x.dim(a);
  check(size >= 1 && size <= n && step >= 1, "windows", [&] {
    return str("needs a size of 1 to ", n, " and a step of at least 1 for axis ", axis, " of ", x.shape(), ", got ",
               size, " and ", step);
  });
  check(x.rank() < Shape::max_rank, "windows",
        [&] { return str("needs at most ", Shape::max_rank - 1, " axes, got ", x.shape()); });
  Shape shape = x.shape();
  Strides strides = x.strides();
  shape[a] = (n - size) / step + 1;
  shape.push_back(size);
  strides.push_back(strides[a]);
  strides[a] *= step;
  return record("windows", x.detach().view(shape, strides, 0), {x},
                differentiable([=](const Tensor& dy) -> Grads { return {folded(dy, a, n, step)}; }));
}

Tensor tril(const Tensor& x, int64_t k) {
  const CalledOp called("tril");
  return where(triangle_mask("tril", x, k, true), x, zeros({}, x.dtype(), x.device()));
}

Tensor triu(const Tensor& x, int64_t k) {
  const CalledOp called("triu");
  return where(triangle_mask("triu", x, k, false), x, zeros({}, x.dtype(), x.device()));
}

// y[..., i] = x[..., i, i + k], for negative k x[..., i - k, i]   dx = dy on the diagonal, 0 elsewhere
Tensor diagonal(const Tensor& x, int64_t k, int axis0, int axis1) {
  const int a = normal_axis(axis0, x.rank(), "diagonal"), b = normal_axis(axis1, x.rank(), "diagonal");
  check(a != b, "diagonal", [&] { return str("needs two axes of ", x.shape(), ", got ", axis0, " and ", axis1); });
  return record("diagonal", diagonal_view(x.detach(), k, a, b), {x},
                differentiable([=, shape = x.shape()](const Tensor& dy) -> Grads {
                  return {on_diagonal("diagonal", dy, shape, k, a, b)};
                }));
}

Tensor diag_embed(const Tensor& x, int64_t k) {
  check(x.rank() >= 1 && x.rank() < Shape::max_rank, "diag_embed",
        [&] { return str("needs 1 to ", Shape::max_rank - 1, " axes, got ", x.shape()); });
  Shape shape = x.shape();
  shape[-1] += std::abs(k);
  shape.push_back(shape[-1]);
  return on_diagonal("diag_embed", x, shape, k, x.rank() - 1, x.rank());
}

Tensor diag(const Tensor& x, int64_t k) {
  const CalledOp called("diag");
  check(x.rank() == 1 || x.rank() == 2, "diag",
        [&] { return str("needs a vector or a matrix, got ", x.shape(), "; see diagonal and diag_embed"); });
  return x.rank() == 1 ? diag_embed(x, k) : diagonal(x, k);
}

Tensor trace(const Tensor& x) {
  const CalledOp called("trace");
  check(x.rank() >= 2, "trace", [&] { return str("needs at least two axes, got ", x.shape()); });
  return sum(diagonal(x), {-1});
}

Tensor block_diag(const std::vector<Tensor>& xs) {
  const CalledOp called("block_diag");
  check(!xs.empty(), "block_diag", "needs at least one matrix");
  std::vector<Tensor> rows;
  int64_t columns = 0, before = 0;
  for (const Tensor& x : xs) {
    check(x.rank() <= 2, "block_diag", [&] { return str("needs matrices, got ", x.shape()); });
    columns += x.rank() == 0 ? 1 : x.dim(-1);
  }
  for (const Tensor& x : xs) {
    const Tensor block = atleast_2d(x);
    rows.push_back(pad(block, {{1, before, columns - before - block.dim(1)}}));
    before += block.dim(1);
  }
  return concat(rows, 0);
}

// y[i c + k, j d + l] = x[i, j] y[k, l]
Tensor kron(const Tensor& x, const Tensor& y) {
  const CalledOp called("kron");
  const int rank = std::max(x.rank(), y.rank());
  check(2 * rank <= Shape::max_rank, "kron",
        [&] { return str("needs at most ", Shape::max_rank / 2, " axes, got ", x.shape(), " and ", y.shape()); });
  Shape outer, inner, shape;
  for (int a = 0; a < rank; ++a) {
    const int64_t m = a < rank - x.rank() ? 1 : x.dim(a - rank), n = a < rank - y.rank() ? 1 : y.dim(a - rank);
    outer.push_back(m);
    outer.push_back(1);
    inner.push_back(1);
    inner.push_back(n);
    shape.push_back(m * n);
  }
  return reshape(mul(reshape(x, outer), reshape(y, inner)), shape);
}

}  // namespace braid
