// Reductions: y = sum (or the largest, the smallest) of a term over some axes, where the term is x or x z.
//
// Axes may be iterated in any order; the plan chooses it by the strides alone. One axis is innermost: one along which
// the inputs are dense (stride 1, or 0 for a repeated factor). If y keeps that axis, a tile of results is summed row by
// row; if not, each result is a sum along rows. The other kept axes are ordered so that a factor which does not
// depend on an axis stays in the cache along that axis. Runs of f32 sums are short; their totals are f64.
#include <algorithm>
#include <limits>
#include <vector>

#include "braid/tensor/base/integers.h"
#include "braid/tensor/cpu/lanes.h"
#include "braid/tensor/cpu/loops.h"
#include "braid/tensor/cpu/reduce_integers.h"
#include "braid/tensor/kernels/backend.h"
#include "braid/tensor/kernels/reduce.h"

namespace braid::cpu {

namespace {

using TermAxis = Axis<3>;  // strides in x, z and y; y's stride is 0 along reduced axes
constexpr int64_t kTile = 256, kRun = 256, kPiece = 4096;
// For long sums of products: narrow tiles and short runs, done for a group of results that share them, stay in the
// cache.
constexpr int64_t kGroupTile = 64, kGroupRun = 32, kGroup = 64;

struct Plan {
  TermAxis inner{1, {1, 1, 1}};
  bool inner_reduced = false;
  int64_t tile = kTile, run = kRun;         // results per task along a kept inner axis, and rows summed in one go
  TermAxis kept[Shape::max_rank + 1] = {};  // the tiles of the inner axis are one of them
  TermAxis reduced[Shape::max_rank + 1] = {};
  int kept_count = 0, reduced_count = 0, tile_axis = -1;
  int task_axes = 0;       // this many kept axes number the tasks; the others number the results of one task, its group
  bool z_repeats = false;  // z has stride 0 along the inner axis
};

// A combination of terms. rows(): acc[w] = combination over `count` rows k of the term at (x + k sx, z + k sz)[w].
template <class A, class Term>
struct SumOf {
  using Total = double;
  static constexpr Total start = 0;
  static Total join(Total a, Total b) { return a + b; }
  static void rows(int64_t n, int64_t count, const A* x, int64_t sx, const A* z, int64_t sz, A* __restrict acc) {
    // Four rows at a time; the first one to four start the sums.
    auto at = [=](int64_t k, int64_t w) { return Term::at(x + k * sx, z + k * sz, w); };
    int64_t k = count == 0 ? 0 : (count - 1) % 4 + 1;
    switch (k) {
      case 0:
        for (int64_t w = 0; w < n; ++w) acc[w] = 0;
        break;
      case 1:
        for (int64_t w = 0; w < n; ++w) acc[w] = at(0, w);
        break;
      case 2:
        for (int64_t w = 0; w < n; ++w) acc[w] = at(0, w) + at(1, w);
        break;
      case 3:
        for (int64_t w = 0; w < n; ++w) acc[w] = at(0, w) + at(1, w) + at(2, w);
        break;
      default:
        for (int64_t w = 0; w < n; ++w) acc[w] = (at(0, w) + at(1, w)) + (at(2, w) + at(3, w));
    }
    for (; k < count; k += 4) {
      for (int64_t w = 0; w < n; ++w) acc[w] += (at(k, w) + at(k + 1, w)) + (at(k + 2, w) + at(k + 3, w));
    }
  }
  static A row(int64_t n, const A* x, const A* z) {
    return lane_sum<A>(n, [=](int64_t i) { return Term::at(x, z, i); });
  }
};

struct Value {
  template <class A>
  static A at(const A* x, const A*, int64_t w) {
    return x[w];
  }
};
struct Product {
  template <class A>
  static A at(const A* x, const A* z, int64_t w) {
    return x[w] * z[w];
  }
};
struct ProductByScalar {
  template <class A>
  static A at(const A* x, const A* z, int64_t w) {
    return x[w] * z[0];
  }
};

template <class A, bool largest>
struct Extreme {
  using Total = A;
  static constexpr Total start = largest ? -std::numeric_limits<A>::infinity() : std::numeric_limits<A>::infinity();
  static Total join(Total a, Total b) { return ((largest ? b > a : b < a) | (b != b)) ? b : a; }  // NaN wins
  static void rows(int64_t n, int64_t count, const A* x, int64_t sx, const A*, int64_t, A* __restrict acc) {
    for (int64_t w = 0; w < n; ++w) acc[w] = start;
    for (int64_t k = 0; k < count; ++k) {
      for (int64_t w = 0; w < n; ++w) acc[w] = join(acc[w], x[k * sx + w]);
    }
  }
  static A row(int64_t n, const A* x, const A*) {
    if (largest) return lane_max<A>(n, [=](int64_t i) { return x[i]; });
    return -lane_max<A>(n, [=](int64_t i) { return -x[i]; });
  }
};

// One task: fills totals[g * tile + w] for the results w < n of each member g of the group, members lying at at.offset.
template <class A, class Combine>
void total(const Plan& p, const A* x, const A* z, int64_t n, int64_t group, typename Combine::Total* totals) {
  std::fill(totals, totals + group * p.tile, Combine::start);
  if (p.inner_reduced) {
    int64_t count = items(p.reduced, p.reduced_count);
    Walk<3> at(p.reduced, p.reduced_count, 0);
    for (int64_t r = 0; r < count; ++r, at.next()) {
      for (int64_t i = 0; i < p.inner.size; i += kPiece) {
        int64_t length = std::min(kPiece, p.inner.size - i);
        A part = Combine::row(length, x + at.offset[0] + i, z + at.offset[1] + (p.z_repeats ? 0 : i));
        totals[0] = Combine::join(totals[0], part);
      }
    }
    return;
  }
  A acc[kTile];
  int outer = p.reduced_count > 0 ? p.reduced_count - 1 : 0;
  TermAxis last = p.reduced_count > 0 ? p.reduced[outer] : TermAxis{1, {0, 0, 0}};
  int64_t count = items(p.reduced, outer);
  Walk<3> at(p.reduced, outer, 0);
  for (int64_t r = 0; r < count; ++r, at.next()) {
    for (int64_t k = 0; k < last.size; k += p.run) {
      Walk<3> member(p.kept + p.task_axes, p.kept_count - p.task_axes, 0);
      for (int64_t g = 0; g < group; ++g, member.next()) {
        Combine::rows(n, std::min(p.run, last.size - k), x + member.offset[0] + at.offset[0] + k * last.stride[0],
                      last.stride[0], z + member.offset[1] + at.offset[1] + k * last.stride[1], last.stride[1], acc);
        for (int64_t w = 0; w < n; ++w) totals[g * p.tile + w] = Combine::join(totals[g * p.tile + w], acc[w]);
      }
    }
  }
}

template <class A, class Combine>
void run(const Plan& plan, const A* x, const A* z, A* y, int64_t results) {
  using Total = typename Combine::Total;
  int64_t tasks = items(plan.kept, plan.task_axes);
  int64_t group = items(plan.kept + plan.task_axes, plan.kept_count - plan.task_axes);
  int64_t terms = items(plan.reduced, plan.reduced_count) * (plan.inner_reduced ? plan.inner.size : 1);
  // With fewer results than threads need, cut the longest reduced axis into pieces and join their totals in order.
  int64_t work = terms * group * (plan.inner_reduced ? 1 : std::min(plan.inner.size, plan.tile));
  int cut = -1;  // index of the axis in plan.reduced; reduced_count means the inner axis
  int64_t pieces = 1, longest = 1;
  if (tasks < 64 && tasks * work > 65536) {
    for (int a = 0; a < plan.reduced_count; ++a) {
      if (plan.reduced[a].size > longest) longest = plan.reduced[cut = a].size;
    }
    if (plan.inner_reduced && plan.inner.size / kPiece > longest) longest = plan.inner.size, cut = plan.reduced_count;
    if (cut >= 0) pieces = std::min({int64_t{64}, longest, work / 16384 + 1});
  }
  std::vector<Total> scratch(pieces > 1 ? static_cast<size_t>(pieces * results) : 0);
  bool one_run =
      !plan.inner_reduced && plan.reduced_count == 1 && plan.reduced[0].size <= plan.run && pieces * group == 1;
  const bool one_row =
      plan.inner_reduced && plan.reduced_count == 0 && plan.inner.size <= kPiece && pieces * group == 1;
  parallel_for(tasks * pieces, grain_for(work / pieces), [&](int64_t begin, int64_t end) {
    Total totals[kGroup * kGroupTile];
    static_assert(kTile <= kGroup * kGroupTile);
    for (int64_t t = begin; t < end;) {
      int64_t piece = t / tasks, stop = std::min(end, (piece + 1) * tasks), from = 0;
      Plan p = plan;
      if (pieces > 1) {
        TermAxis& axis = cut == p.reduced_count ? p.inner : p.reduced[cut];
        from = longest * piece / pieces;
        axis.size = longest * (piece + 1) / pieces - from;
      }
      const TermAxis& moved = cut == plan.reduced_count ? plan.inner : plan.reduced[cut < 0 ? 0 : cut];
      const A *px = x + from * moved.stride[0], *pz = z + from * moved.stride[1];
      Walk<3> at(p.kept, p.task_axes, t % tasks);
      for (; t < stop; ++t, at.next()) {
        int64_t n = p.tile_axis < 0 ? 1 : std::min(p.tile, p.inner.size - at.at[p.tile_axis] * p.tile);
        A* out = y + at.offset[2];
        if (one_row) {
          *out = Combine::row(p.inner.size, px + at.offset[0], pz + at.offset[1]);
          continue;
        }
        if (one_run && p.inner.stride[2] == 1) {
          Combine::rows(n, p.reduced[0].size, px + at.offset[0], p.reduced[0].stride[0], pz + at.offset[1],
                        p.reduced[0].stride[1], out);
          continue;
        }
        total<A, Combine>(p, px + at.offset[0], pz + at.offset[1], n, group, totals);
        Walk<3> member(p.kept + p.task_axes, p.kept_count - p.task_axes, 0);
        for (int64_t g = 0; g < group; ++g, member.next()) {
          for (int64_t w = 0; w < n; ++w) {
            int64_t place = at.offset[2] + member.offset[2] + w * p.inner.stride[2];
            if (pieces == 1) {
              y[place] = static_cast<A>(totals[g * p.tile + w]);
            } else {
              scratch[static_cast<size_t>(piece * results + place)] = totals[g * p.tile + w];
            }
          }
        }
      }
    }
  });
  if (pieces == 1) return;
  for_blocks(results, pieces, [&](int64_t i, int64_t n) {
    for (int64_t w = i; w < i + n; ++w) {
      Total sum = Combine::start;
      for (int64_t piece = 0; piece < pieces; ++piece) {
        sum = Combine::join(sum, scratch[static_cast<size_t>(piece * results + w)]);
      }
      y[w] = static_cast<A>(sum);
    }
  });
}

// Adds an axis to a list in which no axis comes before one that is `outer` to it.
template <class Outer>
void insert(TermAxis* axes, int& count, int first, const TermAxis& axis, Outer outer) {
  int at = count++;
  for (; at > first && outer(axis, axes[at - 1]); --at) axes[at] = axes[at - 1];
  axes[at] = axis;
}

// x and z with one shape; y with size 1 where summed. `factors` is 1 without z. False when no axis is dense in
// the inputs; with `force` the plan then works element by element.
bool make_plan(In x, In z, In y, int factors, bool force, Plan& plan) {
  // The outer side first, by x's and then z's strides; then neighbours merge where all three layouts allow.
  TermAxis axes[Shape::max_rank + 1];
  int rank = 0;
  for (int a = 0; a < x.rank(); ++a) {
    TermAxis axis{x.dim(a), {x.strides()[a], factors == 2 ? z.strides()[a] : 0, y.dim(a) == 1 ? 0 : y.strides()[a]}};
    if (axis.size == 1) continue;
    insert(axes, rank, 0, axis, [](const TermAxis& p, const TermAxis& q) {
      return std::lexicographical_compare(q.stride, q.stride + 3, p.stride, p.stride + 3);
    });
  }
  int merged = 0;
  for (int a = 0; a < rank; ++a) {
    const TermAxis next = axes[a];
    bool fits = merged > 0;
    for (int k = 0; fits && k < 3; ++k) fits = axes[merged - 1].stride[k] == next.size * next.stride[k];
    if (fits)
      axes[merged - 1] = {axes[merged - 1].size * next.size, {next.stride[0], next.stride[1], next.stride[2]}};
    else
      axes[merged++] = next;
  }
  rank = merged;

  auto dense = [&](const TermAxis& a) {
    return a.stride[0] <= 1 && a.stride[1] <= 1 ? static_cast<int>(a.stride[0] + a.stride[1]) : 0;
  };
  int inner = -1;
  for (int a = 0; a < rank; ++a) {
    int d = dense(axes[a]), best = inner < 0 ? 0 : dense(axes[inner]);
    if (d > best || (d == best && d > 0 && axes[a].size > axes[inner].size)) inner = a;
  }
  if (inner < 0 && rank > 0 && !force) return false;
  if (inner >= 0) {
    plan.inner = axes[inner];
    plan.inner_reduced = plan.inner.stride[2] == 0;
    if (plan.inner_reduced) plan.tile = 1;
  }
  plan.z_repeats = plan.inner.stride[1] == 0;

  int64_t terms = 1;
  int big = 0;  // the input with more distinct elements
  int64_t distinct[2] = {1, 1};
  for (int a = 0; a < rank; ++a) {
    for (int k = 0; k < 2; ++k) distinct[k] *= axes[a].stride[k] == 0 ? 1 : axes[a].size;
    if (axes[a].stride[2] == 0) terms *= axes[a].size;
  }
  if (distinct[1] > distinct[0]) big = 1;
  bool grouped = factors == 2 && !plan.inner_reduced && terms > kGroupRun;
  if (grouped) plan.tile = kGroupTile;
  auto by_stride = [big](const TermAxis& a, const TermAxis& b) { return a.stride[big] > b.stride[big]; };
  for (int a = 0; a < rank; ++a) {
    if (a != inner && axes[a].stride[2] == 0) insert(plan.reduced, plan.reduced_count, 0, axes[a], by_stride);
  }
  // Kept axes: first those on which both factors depend, then the tiles, then those on which only one does.
  for (int both = 1; both >= 0; --both) {
    int first = plan.kept_count;
    for (int a = 0; a < rank; ++a) {
      bool depends = axes[a].stride[0] != 0 && (factors == 1 || axes[a].stride[1] != 0);
      if (a == inner || axes[a].stride[2] == 0 || depends != (both == 1)) continue;
      insert(plan.kept, plan.kept_count, first, axes[a], by_stride);
    }
    if (both == 1 && !plan.inner_reduced) {
      plan.tile_axis = plan.kept_count;
      TermAxis tiles{detail::ceil_div(plan.inner.size, plan.tile), {}};
      for (int k = 0; k < 3; ++k) tiles.stride[k] = plan.tile * plan.inner.stride[k];
      plan.kept[plan.kept_count++] = tiles;
    }
  }
  plan.task_axes = plan.kept_count;
  if (grouped && items(plan.kept + plan.tile_axis + 1, plan.kept_count - plan.tile_axis - 1) <= kGroup) {
    plan.task_axes = plan.tile_axis + 1;
    plan.run = kGroupRun;
  }
  return true;
}

// x with its repeated axes written once, dense, in type `dtype`, and repeated again.
Tensor dense(In x, DType dtype) {
  Tensor once = x;
  for (int a = 0; a < x.rank(); ++a) {
    if (x.strides()[a] == 0 && x.dim(a) > 1) once = once.sliced(a, 0, 1);
  }
  Tensor copied = empty(once.shape(), dtype);
  cpu_backend().copy.strided(once, copied);
  return copied.expanded(x.shape());
}

enum class Kind { sum, max, min, product };

template <class A>
void reduce_as(Kind kind, Tensor x, Tensor z, Tensor& y) {
  Plan plan;
  int factors = kind == Kind::product ? 2 : 1;
  if (!make_plan(x, z, y, factors, false, plan)) {
    x = dense(x, x.dtype());
    if (factors == 2) z = dense(z, z.dtype());
    make_plan(x, z, y, factors, true, plan);
  }
  if (factors == 2 && plan.inner.stride[0] == 0) {  // the repeated factor is always z
    std::swap(x, z);
    for (TermAxis* axes : {plan.kept, plan.reduced}) {
      for (int a = 0; a <= Shape::max_rank; ++a) std::swap(axes[a].stride[0], axes[a].stride[1]);
    }
    std::swap(plan.inner.stride[0], plan.inner.stride[1]);
    plan.z_repeats = true;
  }
  const A *px = x.data<A>(), *pz = factors == 2 ? z.data<A>() : px;
  A* py = y.mutable_data<A>();
  int64_t results = y.numel();
  if (kind == Kind::max)
    run<A, Extreme<A, true>>(plan, px, pz, py, results);
  else if (kind == Kind::min)
    run<A, Extreme<A, false>>(plan, px, pz, py, results);
  else if (kind == Kind::sum)
    run<A, SumOf<A, Value>>(plan, px, pz, py, results);
  else if (plan.z_repeats)
    run<A, SumOf<A, ProductByScalar>>(plan, px, pz, py, results);
  else
    run<A, SumOf<A, Product>>(plan, px, pz, py, results);
}

void reduce_any(Kind kind, In x, In z, Out y) {
  if (y.numel() == 0) return;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (x.numel() == 0)
    return cpu_backend().copy.fill(kind == Kind::max ? -kInfinity : kind == Kind::min ? kInfinity : 0.0, y);
  if (x.dtype() == DType::f64) return reduce_as<double>(kind, x, z, y);
  if (x.dtype() == DType::f32) return reduce_as<float>(kind, x, z, y);
  Tensor wide = empty(y.shape());
  reduce_as<float>(kind, dense(x, DType::f32), z ? dense(z, DType::f32) : Tensor(), wide);
  cpu_backend().copy.strided(wide, y);
}

void reduce(ReduceOp op, In x, Out y) {
  if (!is_float(x.dtype()) && x.numel() > 0) return reduce_integers(op, x, y);
  if (op == ReduceOp::prod) {
    check(!is_float(x.dtype()), "reduce", "multiplies integers only");
    return cpu_backend().copy.fill(1, y);
  }
  reduce_any(op == ReduceOp::sum ? Kind::sum : op == ReduceOp::max ? Kind::max : Kind::min, x, Tensor(), y);
}

void sum_product(In x, In z, Out y) { reduce_any(Kind::product, x, z, y); }

}  // namespace

constinit const ReduceKernels reduce_kernels{
    .axes = reduce,
    .sum_product = sum_product,
};

}  // namespace braid::cpu
