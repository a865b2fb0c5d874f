// The factors of Compose from the products of their generator, and the derivative: norm over heads, copy and tanh of
// all branches in one pass over the positions.
//
//   down  y = x rstd,  rstd = 1 / sqrt(mean(x^2) + eps)    dx = rstd (dy - y mean(dy y))
//   up    y = x                                            dx = dy
//   gate  y = tanh(x)                                      dx = dy (1 - y^2)
//
// Rows are as short as M = 4 heads, so the usual numbers of heads are constants of the compiler. The sums are those of
// lane_sum in every bit.
#include "braid/tensor/kernels/compose_factors.h"

#include <algorithm>
#include <cmath>

#include "braid/tensor/cpu/ivdep.h"
#include "braid/tensor/cpu/lanes.h"
#include "braid/tensor/cpu/map.h"
#include "braid/tensor/kernels/pointwise_ops.h"
#include "braid/tensor/parallel.h"

namespace braid::cpu {

namespace {

// Sum of f(i) over a row of M = kHeads, or of n where kHeads = 0.
template <int kHeads, class A, class F>
A row_sum(int64_t n, F f) {
  if constexpr (kHeads == 0) {
    return lane_sum<A>(n, f);
  } else {
    A lanes[kHeads];
    for (int l = 0; l < kHeads; ++l) lanes[l] = f(l);
    for (int width = kHeads / 2; width > 0; width /= 2)
      for (int l = 0; l < width; ++l) lanes[l] += lanes[l + width];
    return lanes[0];
  }
}

// P positions, Z = G C branches of all groups, R ranks, M heads.
struct FactorShape {
  int64_t P, G, C, R, M;
  int64_t Z() const { return G * C; }
  // Offset of the first row in w (G, C, P, 2R, M), in y (P, G, C, 2R + 1, M), in gates (P, G, C, M).
  int64_t in_w(int64_t z, int64_t p) const { return (z * P + p) * 2 * R * M; }
  int64_t in_y(int64_t z, int64_t p) const { return (p * Z() + z) * (2 * R + 1) * M; }
  int64_t in_gates(int64_t z, int64_t p) const { return (p * Z() + z) * M; }
  // Offset in the gradient of a down or up factor (P, G, R, M), of a gate (P, G, M).
  int64_t in_factor(int64_t z, int64_t p) const { return (p * G + z / C) * R * M; }
  int64_t in_gate(int64_t z, int64_t p) const { return (p * G + z / C) * M; }
};

FactorShape shape_of(In w, In gates) {
  return {gates.dim(0), gates.dim(1), gates.dim(2), w ? w.dim(3) / 2 : 0, gates.dim(3)};
}

template <class T>
const T* optional(In x) {
  return x ? x.data<T>() : nullptr;
}

// open: tanh of the gates of this position (G, C, M)
template <class T, int kHeads>
void forward_position(const FactorShape& s, int64_t p, const T* w, const Accumulate<T>* open, Accumulate<T> eps, T* y) {
  using A = Accumulate<T>;
  const int64_t n = kHeads > 0 ? kHeads : s.M;
  for (int64_t z = 0; z < s.Z(); ++z) {
    const T* x = w + s.in_w(z, p);
    T* to = y + s.in_y(z, p);
    for (int64_t r = 0; r < s.R; ++r, x += n, to += n) {
      const A squares = row_sum<kHeads, A>(n, [x](int64_t i) { return A(x[i]) * A(x[i]); });
      const A rstd = A(1) / std::sqrt(squares / A(n) + eps);
      BRAID_IVDEP
      for (int64_t i = 0; i < n; ++i) to[i] = T(A(x[i]) * rstd);
    }
    std::copy_n(x, s.R * n, to);
    to += s.R * n;
    BRAID_IVDEP
    for (int64_t i = 0; i < n; ++i) to[i] = T(open[z * n + i]);
  }
}

// Gradients of the down, up and gate factors of one branch. Null: zeros.
template <class T>
struct FactorGradients {
  const T *down, *up, *gate;
};

template <class T, int kHeads>
void backward_position(const FactorShape& s, int64_t p, const T* w, const Accumulate<T>* open, Accumulate<T> eps,
                       const FactorGradients<T>* gradients, T* dw, T* dgates) {
  using A = Accumulate<T>;
  const int64_t n = kHeads > 0 ? kHeads : s.M;
  for (int64_t z = 0; z < s.Z(); ++z) {
    const FactorGradients<T>& dy = gradients[z % s.C];
    const T* x = w + s.in_w(z, p);
    T* dx = dw + s.in_w(z, p);
    if (!dy.down) {
      std::fill_n(dx, s.R * n, T(0));
    } else {
      const T* g = dy.down + s.in_factor(z, p);
      for (int64_t r = 0; r < s.R; ++r, g += n) {
        const T* row = x + r * n;
        T* to = dx + r * n;
        const A squares = row_sum<kHeads, A>(n, [row](int64_t i) { return A(row[i]) * A(row[i]); });
        const A dot = row_sum<kHeads, A>(n, [row, g](int64_t i) { return A(g[i]) * A(row[i]); });
        const A rstd = A(1) / std::sqrt(squares / A(n) + eps);
        const A factor = dot * rstd * rstd * rstd / A(n);  // y mean(dy y) rstd = x factor
        BRAID_IVDEP
        for (int64_t i = 0; i < n; ++i) to[i] = T(rstd * A(g[i]) - factor * A(row[i]));
      }
    }
    if (dy.up)
      std::copy_n(dy.up + s.in_factor(z, p), s.R * n, dx + s.R * n);
    else
      std::fill_n(dx + s.R * n, s.R * n, T(0));
    T* dgate = dgates + s.in_gates(z, p);
    if (!dy.gate) {
      std::fill_n(dgate, n, T(0));
      continue;
    }
    const T* g = dy.gate + s.in_gate(z, p);
    BRAID_IVDEP
    for (int64_t i = 0; i < n; ++i) {
      const A t = open[z * n + i];
      dgate[i] = T(A(g[i]) * (A(1) - t * t));
    }
  }
}

// body(number of heads as a constant, or 0 for any other)
template <class Body>
void with_heads(int64_t heads, Body&& body) {
  switch (heads) {
    case 4:
      return body(std::integral_constant<int, 4>());
    case 8:
      return body(std::integral_constant<int, 8>());
    case 16:
      return body(std::integral_constant<int, 16>());
    case 32:
      return body(std::integral_constant<int, 32>());
    default:
      return body(std::integral_constant<int, 0>());
  }
}

// body(first, last position, tanh of their gates (G, C, M)). The tanh of several positions is one loop, long enough for
// vectors.
template <class T, class Body>
void for_positions(const FactorShape& s, const T* gates, Body&& body) {
  using A = Accumulate<T>;
  const int64_t each = s.Z() * s.M, together = std::max<int64_t>(1, 512 / std::max<int64_t>(1, each));
  parallel_for(s.P, grain_for(each * (4 * s.R + 16)), [&](int64_t begin, int64_t end) {
    std::vector<A> open(static_cast<size_t>(together * each));
    for (int64_t first = begin; first < end; first += together) {
      const int64_t last = std::min(end, first + together), n = (last - first) * each;
      const T* gate = gates + first * each;
      A* to = open.data();
      BRAID_IVDEP
      for (int64_t i = 0; i < n; ++i) to[i] = pointwise::Unary<UnaryOp::tanh, A>::forward(A(gate[i]), A(0), A(0));
      body(first, last, to);
    }
  });
}

// The same shape of `count` positions.
FactorShape of_positions(FactorShape s, int64_t count) {
  s.P = count;
  return s;
}

// Positions [first, last) from tensors of 16 bits, through arrays in f32: a row of M is shorter than a vector.
template <class T, int kHeads>
void forward_positions(const FactorShape& s, int64_t first, int64_t last, const T* w, const Accumulate<T>* open,
                       Accumulate<T> eps, T* y) {
  using A = Accumulate<T>;
  const int64_t each = s.Z() * s.M, count = last - first;
  if constexpr (std::is_same_v<T, A>) {
    for (int64_t p = first; p < last; ++p) forward_position<T, kHeads>(s, p, w, open + (p - first) * each, eps, y);
  } else {
    const FactorShape part = of_positions(s, count);
    const int64_t of_branch = part.in_w(1, 0), of_all = part.in_y(0, count);
    std::vector<A> wide(static_cast<size_t>(s.Z() * of_branch + of_all));
    A* to = wide.data() + s.Z() * of_branch;
    for (int64_t z = 0; z < s.Z(); ++z) widen(of_branch, w + s.in_w(z, first), wide.data() + part.in_w(z, 0));
    for (int64_t p = 0; p < count; ++p) forward_position<A, kHeads>(part, p, wide.data(), open + p * each, eps, to);
    map(of_all, y + s.in_y(0, first), inputs(to), [](A x) { return x; });
  }
}

template <class T, int kHeads>
void backward_positions(const FactorShape& s, int64_t first, int64_t last, const T* w, const Accumulate<T>* open,
                        Accumulate<T> eps, const std::vector<FactorGradients<T>>& gradients, T* dw, T* dgates) {
  using A = Accumulate<T>;
  const int64_t each = s.Z() * s.M, count = last - first;
  if constexpr (std::is_same_v<T, A>) {
    for (int64_t p = first; p < last; ++p)
      backward_position<T, kHeads>(s, p, w, open + (p - first) * each, eps, gradients.data(), dw, dgates);
  } else {
    const FactorShape part = of_positions(s, count);
    const int64_t of_branch = part.in_w(1, 0), of_factor = part.in_factor(0, count), of_gate = part.in_gate(0, count);
    std::vector<A> wide(static_cast<size_t>(2 * s.Z() * of_branch + s.C * (2 * of_factor + of_gate) + count * each));
    A* next = wide.data();
    const auto room = [&next](int64_t n) { return std::exchange(next, next + n); };
    const auto widened_part = [&](const T* x, int64_t offset, int64_t n) -> const A* {
      if (!x) return nullptr;
      A* to = room(n);
      widen(n, x + offset, to);
      return to;
    };
    std::vector<FactorGradients<A>> parts;
    for (const FactorGradients<T>& dy : gradients)
      parts.push_back({widened_part(dy.down, s.in_factor(0, first), of_factor),
                       widened_part(dy.up, s.in_factor(0, first), of_factor),
                       widened_part(dy.gate, s.in_gate(0, first), of_gate)});
    A *x = room(s.Z() * of_branch), *dx = room(s.Z() * of_branch), *dgate = room(count * each);
    if (w)
      for (int64_t z = 0; z < s.Z(); ++z) widen(of_branch, w + s.in_w(z, first), x + part.in_w(z, 0));
    for (int64_t p = 0; p < count; ++p)
      backward_position<A, kHeads>(part, p, x, open + p * each, eps, parts.data(), dx, dgate);
    const auto same = [](A v) { return v; };
    if (dw)
      for (int64_t z = 0; z < s.Z(); ++z) map(of_branch, dw + s.in_w(z, first), inputs(dx + part.in_w(z, 0)), same);
    map(count * each, dgates + s.in_gates(0, first), inputs(dgate), same);
  }
}

void compose_factors(In w, In gates, double eps, Out y) {
  visit_float(gates.dtype(), "compose_factors", [&]<class T>() {
    const FactorShape s = shape_of(w, gates);
    const T *x = optional<T>(w), *g = gates.data<T>();
    T* to = y.mutable_data<T>();
    with_heads(s.M, [&](auto heads) {
      for_positions(s, g, [&](int64_t first, int64_t last, const Accumulate<T>* open) {
        forward_positions<T, heads()>(s, first, last, x, open, Accumulate<T>(eps), to);
      });
    });
  });
}

void compose_factors_backward(In w, In gates, double eps, const std::vector<Tensor>& dys, Out dw, Out dgates) {
  visit_float(gates.dtype(), "compose_factors_backward", [&]<class T>() {
    const FactorShape s = shape_of(w, gates);
    std::vector<FactorGradients<T>> gradients;  // of each branch
    for (size_t i = 0; i < dys.size(); i += 3)
      gradients.push_back({optional<T>(dys[i]), optional<T>(dys[i + 1]), optional<T>(dys[i + 2])});
    const T *x = optional<T>(w), *g = gates.data<T>();
    T *dx = dw ? dw.mutable_data<T>() : nullptr, *dg = dgates.mutable_data<T>();
    with_heads(s.M, [&](auto heads) {
      for_positions(s, g, [&](int64_t first, int64_t last, const Accumulate<T>* open) {
        backward_positions<T, heads()>(s, first, last, x, open, Accumulate<T>(eps), gradients, dx, dg);
      });
    });
  });
}

}  // namespace

constinit const ComposeFactorsKernels compose_factors_kernels{
    .forward = compose_factors,
    .backward = compose_factors_backward,
};

}  // namespace braid::cpu
