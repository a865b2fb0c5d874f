// Reductions of integers. They are exact (sums and products modulo 2^64), so terms may be combined in any order: an
// axis is cut into pieces wherever that keeps the threads busy.
#include "braid/tensor/cpu/reduce_integers.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "braid/tensor/parallel.h"

namespace braid::cpu {

namespace {

// Terms are joined as 64-bit patterns: unsigned where they wrap around, signed where they are compared.
struct IntegerSum {
  using A = uint64_t;
  static constexpr A start = 0;
  static A join(A a, A b) { return a + b; }
};
struct IntegerProduct {
  using A = uint64_t;
  static constexpr A start = 1;
  static A join(A a, A b) { return a * b; }
};
struct IntegerMax {
  using A = int64_t;
  static constexpr A start = std::numeric_limits<int64_t>::min();
  static A join(A a, A b) { return b > a ? b : a; }
};
struct IntegerMin {
  using A = int64_t;
  static constexpr A start = std::numeric_limits<int64_t>::max();
  static A join(A a, A b) { return b < a ? b : a; }
};

// x (outer, n, inner), contiguous -> y (outer, inner)
template <class Op, class T, class R>
void reduce_middle(const T* x, int64_t outer, int64_t n, int64_t inner, R* y) {
  using A = typename Op::A;
  const int64_t results = outer * inner;
  const int64_t pieces = outer >= 64 ? 1 : std::min<int64_t>({64, n, n * inner / 32768 + 1});
  std::vector<A> parts(static_cast<size_t>(pieces * results));
  parallel_for(outer * pieces, grain_for(n * inner / pieces + 4), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t o = task / pieces, piece = task % pieces;
      const int64_t first = n * piece / pieces, last = n * (piece + 1) / pieces;
      A* to = parts.data() + piece * results + o * inner;
      const T* row = x + (o * n + first) * inner;
      if (inner == 1) {
        A joined = Op::start;
        for (int64_t k = 0; k < last - first; ++k) joined = Op::join(joined, static_cast<A>(row[k]));
        *to = joined;
        continue;
      }
      std::fill(to, to + inner, Op::start);
      for (int64_t k = first; k < last; ++k, row += inner)
        for (int64_t i = 0; i < inner; ++i) to[i] = Op::join(to[i], static_cast<A>(row[i]));
    }
  });
  parallel_for(results, grain_for(pieces), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      A joined = Op::start;
      for (int64_t piece = 0; piece < pieces; ++piece)
        joined = Op::join(joined, parts[static_cast<size_t>(piece * results + i)]);
      y[i] = static_cast<R>(joined);
    }
  });
}

template <class F>
void visit_integer(DType t, F&& f) {
  if (t == DType::u8) return f.template operator()<uint8_t>();
  visit_index(t, "reduce", f);
}

}  // namespace

void reduce_integers(ReduceOp op, In x, Out y) {
  // One axis between the kept ones, where memory holds x so; else the reduced axes are moved to the end.
  int64_t outer = 1, n = 1, inner = 1;
  std::vector<int> order, reduced;
  bool neighbours = x.is_contiguous();
  for (int a = 0; a < x.rank(); ++a) {
    if (y.dim(a) == x.dim(a)) {
      order.push_back(a);
      (reduced.empty() ? outer : inner) *= x.dim(a);
    } else {
      neighbours = neighbours && (reduced.empty() || inner == 1);
      reduced.push_back(a);
      n *= x.dim(a);
    }
  }
  Tensor values = x;
  if (!neighbours) {
    order.insert(order.end(), reduced.begin(), reduced.end());
    values = x.permuted(order).contiguous();
    outer *= inner;
    inner = 1;
  }
  visit_integer(x.dtype(), [&]<class T>() {
    const T* from = values.data<T>();
    switch (op) {
      case ReduceOp::sum:
        return reduce_middle<IntegerSum>(from, outer, n, inner, y.mutable_data<int64_t>());
      case ReduceOp::prod:
        return reduce_middle<IntegerProduct>(from, outer, n, inner, y.mutable_data<int64_t>());
      case ReduceOp::max:
        return reduce_middle<IntegerMax>(from, outer, n, inner, y.mutable_data<T>());
      case ReduceOp::min:
        return reduce_middle<IntegerMin>(from, outer, n, inner, y.mutable_data<T>());
    }
  });
}

}  // namespace braid::cpu
