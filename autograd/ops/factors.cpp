// QR, eigenvalues, singular values, and what follows from them. The derivatives are those of Walter and Lehmann (2010),
// Giles (2008) and Townsend (2016), in the letters of each op.
#include <limits>

#include "braid/autograd/detail/check.h"
#include "braid/autograd/detail/matrices.h"
#include "braid/autograd/linalg.h"
#include "braid/autograd/manipulate.h"
#include "braid/autograd/reductions.h"

namespace braid {

namespace {

// x_j - x_i at (i, j), and 1 on the diagonal.
Tensor differences(const Tensor& x) {
  return add(sub(unsqueeze(x, -2), unsqueeze(x, -1)), eye(x.dim(-1), x.dtype(), x.device()));
}

// dx, or zeros where nothing used x.
Tensor or_zeros(const Tensor& dx, const Tensor& x) { return dx ? dx : zeros(x.shape(), x.dtype(), x.device()); }

Shape replaced(const Tensor& a, int64_t rows, int64_t columns) {
  return matrices::with_matrix(matrices::batch_of(a), rows, columns);
}

Tensor matrices_like(const Tensor& a, int64_t rows, int64_t columns) {
  return empty(replaced(a, rows, columns), a.dtype(), a.device());
}

// m >= n. With M = r dr^T - dq^T q, and M' its lower triangle mirrored upwards: da = (dq + q M') r^-T
QAndR tall_qr(const Tensor& a) {
  const int64_t m = a.dim(-2), n = a.dim(-1);
  Tensor q = matrices_like(a, m, n), r = matrices_like(a, n, n);
  backend(a.device()).linalg.qr(a.detach().contiguous(), q, r);
  const std::vector<Tensor> found =
      record_many("qr", {q, r}, {a}, differentiable([a, q, r](const std::vector<Tensor>& d) -> Grads {
                    const bool again = recording({a, d[0], d[1]});
                    const QAndR factors = again ? tall_qr(a) : QAndR{q, r};
                    const Tensor dq = or_zeros(d[0], q), dr = or_zeros(d[1], r);
                    const Tensor inner = sub(matmul(factors.r, transpose(dr)), matmul(transpose(dq), factors.q));
                    const Tensor mirrored = add(tril(inner), transpose(tril(inner, -1)));
                    const Tensor right = add(dq, matmul(factors.q, mirrored));
                    return {transpose(solve_triangular(factors.r, transpose(right), true))};
                  }));
  return {found[0], found[1]};
}

// a symmetric: a = v diag(w) v^T. With F_ij = 1 / (w_j - w_i), 0 on the diagonal:
// S = v (diag(dw) + F * (v^T dv)) v^T, da = (S + S^T) / 2
EigenPairs eigen_pairs(const Tensor& a) {
  Shape values = matrices::batch_of(a);
  values.push_back(a.dim(-1));
  Tensor w = empty(values, a.dtype(), a.device()), v = empty_like(a);
  backend(a.device()).linalg.eigh(a.detach().contiguous(), w, v);
  const std::vector<Tensor> found =
      record_many("eigh", {w, v}, {a}, differentiable([a, w, v](const std::vector<Tensor>& d) -> Grads {
                    const EigenPairs e = recording({a, d[0], d[1]}) ? eigen_pairs(a) : EigenPairs{w, v};
                    Tensor inner = diag_embed(or_zeros(d[0], w));
                    if (d[1]) {
                      const Tensor turns = matmul(transpose(e.vectors), d[1]);
                      const Tensor off = sub(turns, diag_embed(diagonal(turns)));
                      inner = add(inner, div(off, differences(e.values)));
                    }
                    const Tensor s = matmul(matmul(e.vectors, inner), transpose(e.vectors));
                    return {scale(add(s, transpose(s)), 0.5)};
                  }));
  return {found[0], found[1]};
}

// a = u diag(s) v^T, v = vh^T. With E_ij = s_j^2 - s_i^2, 1 on the diagonal, and X^- = X - X^T:
// da = u ((u^T du)^- / E * s_j + s_i (v^T dv)^- / E + diag(ds)) v^T
//      + (1 - u u^T) du s^-1 v^T, for m > k, + u s^-1 dv^T (1 - v v^T), for n > k
Svd thin_svd(const Tensor& a) {
  const int64_t m = a.dim(-2), n = a.dim(-1), k = std::min(m, n);
  Shape values = matrices::batch_of(a);
  values.push_back(k);
  Tensor u = matrices_like(a, m, k), s = empty(values, a.dtype(), a.device()), vh = matrices_like(a, k, n);
  backend(a.device()).linalg.svd(a.detach().contiguous(), u, s, vh);
  const std::vector<Tensor> found =
      record_many("svd", {u, s, vh}, {a}, differentiable([a, u, s, vh](const std::vector<Tensor>& d) -> Grads {
                    const Svd f = recording({a, d[0], d[1], d[2]}) ? thin_svd(a) : Svd{u, s, vh};
                    const Tensor ut = transpose(f.u), v = transpose(f.vh);
                    const Tensor row = unsqueeze(f.s, -2), column = unsqueeze(f.s, -1);
                    const auto skew = [](const Tensor& x) { return sub(x, transpose(x)); };
                    const Tensor gaps = d[0] || d[2] ? differences(square(f.s)) : Tensor();
                    Tensor inner = diag_embed(or_zeros(d[1], s)), outside;
                    if (d[0]) {
                      const Tensor projected = matmul(ut, d[0]);
                      inner = add(inner, mul(div(skew(projected), gaps), row));
                      if (u.dim(-2) > u.dim(-1)) outside = matmul(div(sub(d[0], matmul(f.u, projected)), row), f.vh);
                    }
                    if (d[2]) {
                      const Tensor projected = matmul(d[2], v);  // dv^T v
                      inner = add(inner, mul(column, div(skew(transpose(projected)), gaps)));
                      if (vh.dim(-1) > vh.dim(-2)) {
                        const Tensor rest = matmul(f.u, div(sub(d[2], matmul(projected, f.vh)), column));
                        outside = outside ? add(outside, rest) : rest;
                      }
                    }
                    const Tensor da = matmul(matmul(f.u, inner), f.vh);
                    return {outside ? add(da, outside) : da};
                  }));
  return {found[0], found[1], found[2]};
}

// Singular values at or below this part of the largest are 0.
double tolerance_of(const Tensor& a, double tolerance) {
  if (tolerance >= 0) return tolerance;
  const double epsilon = a.dtype() == DType::f64 ? std::numeric_limits<double>::epsilon()
                                                 : static_cast<double>(std::numeric_limits<float>::epsilon());
  return epsilon * static_cast<double>(std::max(a.dim(-1), a.dim(-2)));
}

// 1 where s (..., k) counts.
Tensor counted(const Tensor& a, const Tensor& s, double tolerance) {
  const Tensor values = s.detach();
  return gt(values, scale(slice(values, -1, 0, 1), tolerance_of(a, tolerance)));
}

}  // namespace

QAndR qr(const Tensor& a) {
  const CalledOp called("qr");
  matrices::check_matrices("qr", a);
  const Tensor x = to(a, matrices::place_of(a));
  const int64_t m = a.dim(-2), n = a.dim(-1);
  if (m >= n) {
    const QAndR found = tall_qr(x);
    return {to(found.q, a.device()), to(found.r, a.device())};
  }
  const std::vector<Tensor> parts = split(x, {m, n - m}, -1);  // (y | z) = q (r | q^T z)
  const QAndR found = tall_qr(parts[0]);
  return {to(found.q, a.device()), to(concat({found.r, matmul(transpose(found.q), parts[1])}, -1), a.device())};
}

EigenPairs eigh(const Tensor& a) {
  matrices::check_square("eigh", a);
  const EigenPairs found = eigen_pairs(to(a, matrices::place_of(a)));
  return {to(found.values, a.device()), to(found.vectors, a.device())};
}
Tensor eigvalsh(const Tensor& a) {
  const CalledOp called("eigvalsh");
  return eigh(a).values;
}

Svd svd(const Tensor& a) {
  matrices::check_matrices("svd", a);
  const Svd found = thin_svd(to(a, matrices::place_of(a)));
  return {to(found.u, a.device()), to(found.s, a.device()), to(found.vh, a.device())};
}
Tensor svdvals(const Tensor& a) {
  const CalledOp called("svdvals");
  return svd(a).s;
}

// m >= n: a = q r, x = r^-1 q^T b. m < n: a^T = q r, x = q r^-T b.
Tensor lstsq(const Tensor& a, const Tensor& b) {
  const CalledOp called("lstsq");
  matrices::check_matrices("lstsq", a);
  check(b.rank() >= 2 && b.dim(-2) == a.dim(-2), "lstsq",
        [&] { return str("needs b (..., m, r) for a of shape ", a.shape(), ", got ", b.shape()); });
  if (a.dim(-2) >= a.dim(-1)) {
    const QAndR f = qr(a);
    return solve_triangular(f.r, matmul(transpose(f.q), b), true);
  }
  const QAndR f = qr(transpose(a));
  return matmul(f.q, solve_triangular(transpose(f.r), b, false));
}

Tensor pinv(const Tensor& a, double tolerance) {
  const CalledOp called("pinv");
  const Svd f = svd(a);
  if (f.s.dim(-1) == 0) return zeros(replaced(a, a.dim(-1), a.dim(-2)), a.dtype(), a.device());
  const Tensor counts = counted(a, f.s, tolerance), one = ones(f.s.shape(), a.dtype(), a.device());
  const Tensor inverted = mul(reciprocal(where(counts, f.s, one)), cast(counts, a.dtype()));
  return matmul(mul(transpose(f.vh), unsqueeze(inverted, -2)), transpose(f.u));
}

Tensor matrix_rank(const Tensor& a, double tolerance) {
  const CalledOp called("matrix_rank");
  no_gradient("matrix_rank", a);
  const Tensor s = svd(a).s;
  if (s.dim(-1) == 0) return zeros(matrices::batch_of(a), DType::i64, a.device());
  return count_nonzero(counted(a, s, tolerance), {-1});
}

Tensor matrix_norm(const Tensor& a, MatrixNorm kind) {
  const CalledOp called("matrix_norm");
  matrices::check_matrices("matrix_norm", a);
  switch (kind) {
    case MatrixNorm::frobenius:
      return norm(a, 2, {-2, -1});
    case MatrixNorm::nuclear:
      return sum(svdvals(a), {-1});
    case MatrixNorm::spectral:
      return max(svdvals(a), -1);
    case MatrixNorm::one:
      return max(sum(abs(a), {-2}), -1);
    case MatrixNorm::infinity:
      return max(sum(abs(a), {-1}), -1);
  }
  return a;
}

}  // namespace braid
