#include "braid/autograd/detail/check.h"
#include "braid/autograd/detail/matrices.h"
#include "braid/autograd/ops.h"
#include "braid/autograd/saved.h"
#include "braid/tensor/kernels/backend.h"

namespace braid {

namespace {

// y = x z; the batch axes broadcast. No history.
Tensor product(const Tensor& x, const Tensor& z) {
  Shape batch = broadcast(matrices::batch_of(x), matrices::batch_of(z), "matmul");
  Tensor y = empty(matrices::with_matrix(batch, x.dim(-2), z.dim(-1)), x.dtype(), x.device());
  backend(x.device())
      .matmul.product(x.detach().expanded(matrices::with_matrix(batch, x.dim(-2), x.dim(-1))),
                      z.detach().expanded(matrices::with_matrix(batch, z.dim(-2), z.dim(-1))), false, y);
  return y;
}

}  // namespace

// y = x z, (..., M, K) (..., K, N) -> (..., M, N).
// dx = dy z^T and dz = x^T dy, summed over the batch axes along which x or z was repeated.
Tensor matmul(const Tensor& x, const Tensor& z) {
  check_same("matmul", x, z);
  check(x.rank() >= 2 && z.rank() >= 2, "matmul",
        [&] { return str("needs two matrices (batch axes may come first), got ", x.shape(), " x ", z.shape()); });
  check(x.dim(-1) == z.dim(-2), "matmul", [&] {
    return str("inner sizes differ: ", x.shape(), " x ", z.shape(),
               "; needs (..., M, K) x (..., K, N): does one of them want transpose()?");
  });
  Tensor y = product(x, z);
  const Saved kept_x = requires_grad(z) ? Saved(x) : Saved(), kept_z = requires_grad(x) ? Saved(z) : Saved();
  Shape shape_x = x.shape(), shape_z = z.shape();
  return record(
      "matmul", y, {x, z}, differentiable([kept_x, kept_z, shape_x, shape_z](const Tensor& dy) -> Grads {
        Tensor dx, dz;
        if (recording()) {
          if (kept_z) dx = sum_to(matmul(dy, transpose(kept_z.get())), shape_x);
          if (kept_x) dz = sum_to(matmul(transpose(kept_x.get()), dy), shape_z);
          return {dx, dz};
        }
        if (kept_z) dx = sum_to(product(dy, kept_z.get().detach().transposed()), shape_x);
        if (kept_x) {
          int64_t k = shape_z[-2], n = shape_z[-1];
          if (numel(shape_z) == k * n && dy.rank() > 2) {
            // One z for all of the batch: the sum over the batch is the inner sum of a single product.
            Tensor rows_x = kept_x.get()
                                .detach()
                                .expanded(matrices::with_matrix(matrices::batch_of(dy), shape_x[-2], k))
                                .contiguous();
            Tensor rows_dy = dy.contiguous();
            int64_t rows = dy.numel() / (n > 0 ? n : 1);
            if (n == 0 || k == 0) return {dx, zeros(shape_z, dy.dtype(), dy.device())};
            dz = product(rows_x.reshaped({rows, k}).transposed(), rows_dy.reshaped({rows, n})).reshaped(shape_z);
          } else {
            dz = sum_to(product(kept_x.get().detach().transposed(), dy), shape_z);
          }
        }
        return {dx, dz};
      }));
}

}  // namespace braid
