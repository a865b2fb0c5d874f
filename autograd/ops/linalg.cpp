// Systems of equations, determinants and Cholesky's factor. Derivatives are written with these ops themselves.
#include "braid/autograd/linalg.h"

#include "braid/autograd/detail/check.h"
#include "braid/autograd/detail/matrices.h"
#include "braid/autograd/manipulate.h"

namespace braid {

namespace {

// x = a^-1 b, batches equal   db = a^-T dx   da = -db x^T
Tensor solve_batch(const Tensor& a, const Tensor& b) {
  Tensor x = empty_like(b);
  backend(a.device()).linalg.solve(a.detach().contiguous(), b.detach().contiguous(), x);
  return record("solve", x, {a, b}, differentiable([=](const Tensor& dx) -> Grads {
                  const Tensor db = solve_batch(transpose(a), dx);
                  if (!requires_grad(a)) return {Tensor(), db};
                  const Tensor again = recording({a, b, dx}) ? solve_batch(a, b) : x;
                  return {neg(matmul(db, transpose(again))), db};
                }));
}

// The same; only the triangle of a has a gradient.
Tensor solve_triangle(const Tensor& a, const Tensor& b, bool upper) {
  Tensor x = empty_like(b);
  backend(a.device()).linalg.solve_triangular(a.detach().contiguous(), b.detach().contiguous(), upper, x);
  return record("solve_triangular", x, {a, b}, differentiable([=](const Tensor& dx) -> Grads {
                  const Tensor db = solve_triangle(transpose(a), dx, !upper);
                  if (!requires_grad(a)) return {Tensor(), db};
                  const Tensor again = recording({a, b, dx}) ? solve_triangle(a, b, upper) : x;
                  const Tensor da = neg(matmul(db, transpose(again)));
                  return {upper ? triu(da) : tril(da), db};
                }));
}

// solver(a, b) with batches made equal; b may be one vector.
template <class F>
Tensor solve_any(const char* op, const Tensor& a, const Tensor& b, F&& solver) {
  const CalledOp called(op);
  matrices::check_square(op, a);
  check_same(op, a, b);
  if (b.rank() == 1) return squeeze(solve_any(op, a, unsqueeze(b, -1), solver), -1);
  check(b.rank() >= 2 && b.dim(-2) == a.dim(-1), op,
        [&] { return str("needs b (..., n, r) or (n) for a of shape ", a.shape(), ", got ", b.shape()); });
  const Shape batch = broadcast(matrices::batch_of(a), matrices::batch_of(b), op);
  const auto with_batch = [&](const Tensor& x) {
    return expand(x, matrices::with_matrix(batch, x.dim(-2), x.dim(-1)));
  };
  return matrices::factorised(a, [&](const Tensor& x) { return solver(with_batch(x), with_batch(to(b, x.device()))); });
}

}  // namespace

Tensor solve(const Tensor& a, const Tensor& b) { return solve_any("solve", a, b, solve_batch); }

Tensor solve_triangular(const Tensor& a, const Tensor& b, bool upper) {
  return solve_any("solve_triangular", a, b,
                   [upper](const Tensor& x, const Tensor& y) { return solve_triangle(x, y, upper); });
}

// y = a^-1   da = -y^T dy y^T
Tensor inverse(const Tensor& a) {
  matrices::check_square("inverse", a);
  return matrices::factorised(a, [](const Tensor& x) {
    Tensor y = empty_like(x);
    backend(x.device()).linalg.inverse(x.detach().contiguous(), y);
    return record("inverse", y, {x}, differentiable([=](const Tensor& dy) -> Grads {
                    const Tensor t = transpose(recording({x, dy}) ? inverse(x) : y);
                    return {neg(matmul(matmul(t, dy), t))};
                  }));
  });
}

// dlog -> da = dlog a^-T
SignAndLog slogdet(const Tensor& a) {
  const CalledOp called("slogdet");
  matrices::check_square("slogdet", a);
  const Shape batch = matrices::batch_of(a);
  const Tensor x = to(a, matrices::place_of(a));
  Tensor sign = empty(batch, a.dtype(), x.device()), log = empty_like(sign);
  backend(x.device()).linalg.slogdet(x.detach().contiguous(), sign, log);
  log = record("slogdet", log, {x}, differentiable([x](const Tensor& dlog) -> Grads {
                 return {mul(unsqueeze(unsqueeze(dlog, -1), -1), transpose(inverse(x)))};
               }));
  return {sign.to(a.device()), to(log, a.device())};
}

Tensor det(const Tensor& a) {
  const CalledOp called("det");
  const SignAndLog found = slogdet(a);
  return mul(found.sign, exp(found.log));
}

// With P the lower triangle of l^T dl and half its diagonal, S = l^-T P l^-1: da = (S + S^T) / 2, which counts each
// entry of the symmetric a for itself.
Tensor cholesky(const Tensor& a) {
  matrices::check_square("cholesky", a);
  return matrices::factorised(a, [](const Tensor& x) {
    Tensor l = empty_like(x);
    backend(x.device()).linalg.cholesky(x.detach().contiguous(), l);
    return record("cholesky", l, {x}, differentiable([=](const Tensor& dl) -> Grads {
                    const Tensor factor = recording({x, dl}) ? cholesky(x) : l, up = transpose(factor);
                    const Tensor m = tril(matmul(up, dl)), p = sub(m, scale(diag_embed(diagonal(m)), 0.5));
                    const Tensor left = solve_triangular(up, p, true);                        // l^-T P
                    const Tensor s = transpose(solve_triangular(up, transpose(left), true));  // l^-T P l^-1
                    return {scale(add(s, transpose(s)), 0.5)};
                  }));
  });
}

}  // namespace braid
