// Reductions: y = sum (or the largest, the smallest) of a term over some axes, where the term is x or x z.
//
// A team of threads computes each result, or V neighbouring results: its members process the terms in turn, in vectors
// of V along the axis in which the inputs are contiguous, and combine their totals in a fixed tree. If that axis is
// reduced, the members of a team are neighbours, so that a warp reads along a row; if y keeps it, neighbours belong to
// different teams, so that a warp reads along a row as well. Where results are few, the terms are also cut into pieces,
// whose totals a second launch reduces. The plan depends on shape and strides alone, so the order of each sum is always
// the same. Runs of f32 sums are short; their totals are f64.
#include "braid/cuda/device/kernel.h"

#include <limits>

#include "braid/cuda/device/strided_index.cuh"
#include "braid/cuda/device/vector_io.cuh"
#include "braid/tensor/kernels/ordered.h"
#include "braid/tensor/kernels/reduce.h"

namespace braid::cuda {

namespace {

constexpr int kThreadBits = 8, kThreads = 1 << kThreadBits;
constexpr int kRun = 64;         // terms added in the type of the arithmetic, before they join the f64 total
constexpr int kEach = 4;         // steps for which another member of a team pays
constexpr int kLongest = 32;     // steps of a thread beyond which terms are cut into pieces, if that fills the GPU
constexpr int64_t kFull = 1024;  // blocks that fill a GPU

enum class Kind { sum, extreme, product };  // extreme: largest or smallest; product: of integers

// How terms of type A are combined. Integers are exact: their totals have the type of the terms.
template <class A, Kind kind>
struct Combine {
  using Total = std::conditional_t<std::is_integral_v<A>, A, double>;
  __device__ static A start(bool) { return 0; }
  template <class B>
  __device__ static B join(B a, B b, bool) {
    return a + b;
  }
};
template <class A>
struct Combine<A, Kind::product> {
  using Total = A;
  __device__ static A start(bool) { return 1; }
  __device__ static A join(A a, A b, bool) { return a * b; }
};
template <class A>
struct Combine<A, Kind::extreme> {
  using Total = A;
  __device__ static A start(bool largest) {
    using Limits = std::numeric_limits<A>;
    if constexpr (std::is_integral_v<A>)
      return largest ? Limits::lowest() : Limits::max();
    else
      return largest ? -Limits::infinity() : Limits::infinity();
  }
  __device__ static A join(A a, A b, bool largest) {  // NaN wins
    return (largest ? b > a : b < a) || is_nan(b) ? b : a;
  }
};

// The types in which elements of T are combined and in which totals wait for the second launch.
template <class T, Kind kind>
using Term_t = std::conditional_t<kind == Kind::extreme, Ordered<T>, braid::Total<T>>;
template <class T, Kind kind>
using Part_t = std::conditional_t<std::is_integral_v<T>, std::conditional_t<kind == Kind::extreme, T, int64_t>,
                                  typename Combine<Term_t<T, kind>, kind>::Total>;

struct Plan {
  Offsets<3> kept;     // results, in steps of V along the vectors if y keeps their axis: offsets in x, z and y
  Offsets<2> reduced;  // terms, in steps of V along the vectors if their axis is reduced: offsets in x and z
  bool columns;        // y keeps the axis of the vectors
  bool largest;
  bool x_repeats, z_repeats, product;  // a factor is the same along the vectors; there is a z
  int64_t y_step;                      // from one to the next of V results
  int member_bits;                     // a team has 2^member_bits threads
  int64_t piece, piece_stride;         // steps of a piece; y holds a copy of the results for each piece
};

template <class T, int V>
__device__ __forceinline__ void fetch(const T* from, bool repeats, T (&to)[V]) {
  if (repeats) {
    const T same = *from;
#pragma unroll
    for (int j = 0; j < V; ++j) to[j] = same;
  } else {
    load_vector(from, to);
  }
}

template <class T, int V, Kind kind>
__global__ void __launch_bounds__(kThreads, 2) reduce_teams(const T* x, const T* z, Plan plan, DType y_type, void* y) {
  using A = Term_t<T, kind>;
  using C = Combine<A, kind>;
  using Total = typename C::Total;
  struct Totals {
    Total value[V][kThreads];
  };
  Totals& totals = shared<Totals>();
  constexpr int kBatch = V == 1 ? 8 : 4;  // loads in flight
  const int thread = static_cast<int>(threadIdx.x), members = 1 << plan.member_bits, teams = kThreads / members;
  const int member = plan.columns ? thread / teams : thread % members;
  const int team = plan.columns ? thread % teams : thread / members;
  const int64_t result = int64_t{blockIdx.x} * teams + team;
  const bool exists = result < plan.kept.count;
  int64_t place[3];
  plan.kept.at(exists ? result : 0, place);

  Total total[V];
#pragma unroll
  for (int j = 0; j < V; ++j) total[j] = C::start(plan.largest);
  if (exists) {
    const int64_t begin = int64_t{blockIdx.y} * plan.piece, rest = plan.reduced.count - begin;
    const int64_t end = begin + (rest < plan.piece ? rest : plan.piece);
    for (int64_t step = begin + member; step < end;) {
      const int64_t left = ((end - step - 1) >> plan.member_bits) + 1;
      const int count = left < kRun ? static_cast<int>(left) : kRun;
      A run[V];
#pragma unroll
      for (int j = 0; j < V; ++j) run[j] = C::start(plan.largest);
      for (int n = 0; n < count; n += kBatch) {
        int64_t index[kBatch], term[kBatch][2];
        T u[kBatch][V], v[kBatch][V];
#pragma unroll
        for (int b = 0; b < kBatch; ++b) index[b] = step + (int64_t{min(n + b, count - 1)} << plan.member_bits);
        plan.reduced.at(index, term);
#pragma unroll
        for (int b = 0; b < kBatch; ++b) {
          fetch(x + place[0] + term[b][0], plan.x_repeats, u[b]);
          if (plan.product) fetch(z + place[1] + term[b][1], plan.z_repeats, v[b]);
        }
#pragma unroll
        for (int b = 0; b < kBatch; ++b) {
          if (n + b >= count) break;
#pragma unroll
          for (int j = 0; j < V; ++j) {
            A value = static_cast<A>(u[b][j]);
            if (plan.product) value *= static_cast<A>(v[b][j]);
            run[j] = C::join(run[j], value, plan.largest);
          }
        }
      }
#pragma unroll
      for (int j = 0; j < V; ++j) total[j] = C::join(total[j], static_cast<Total>(run[j]), plan.largest);
      step += int64_t{count} << plan.member_bits;
    }
  }

  int results = V;  // of a team
  if (!plan.columns) {
#pragma unroll
    for (int j = 1; j < V; ++j) total[0] = C::join(total[0], total[j], plan.largest);
    results = 1;
  }
#pragma unroll
  for (int j = 0; j < V; ++j) {
    if (j < results) totals.value[j][thread] = total[j];
  }
  const int neighbour = plan.columns ? teams : 1;  // from a member to the next
  for (int half = members / 2; half > 0; half /= 2) {
    __syncthreads();
    if (member < half) {
#pragma unroll
      for (int j = 0; j < V; ++j) {
        if (j >= results) continue;
        total[j] = C::join(total[j], totals.value[j][thread + half * neighbour], plan.largest);
        totals.value[j][thread] = total[j];
      }
    }
  }
  if (!exists || member != 0) return;
  const int64_t at = int64_t{blockIdx.y} * plan.piece_stride + place[2];
#pragma unroll
  for (int j = 0; j < V; ++j) {
    if (j >= results) continue;
    const int64_t i = at + j * plan.y_step;
    if constexpr (std::is_integral_v<T>) {
      static_cast<Part_t<T, kind>*>(y)[i] = static_cast<Part_t<T, kind>>(total[j]);
    } else {
      const A value = static_cast<A>(total[j]);
      if (y_type == DType::f64)
        static_cast<double*>(y)[i] = static_cast<double>(total[j]);
      else if (y_type == DType::f32)
        static_cast<float*>(y)[i] = static_cast<float>(value);
      else if (y_type == DType::bf16)
        static_cast<bfloat16*>(y)[i] = bfloat16(static_cast<float>(value));
      else
        static_cast<float16*>(y)[i] = float16(static_cast<float>(value));
    }
  }
}

struct Term {
  Tensor x, z;  // z is an empty handle where the term is x alone
  bool largest;
};

// The axis of the vectors: one in which a factor is dense and the other one is dense or repeated, the longest of those
// where most factors are dense; else the last one that is not repeated.
int vector_axis(const Axis<3>* axes, int count) {
  int best = -1, best_dense = 0;
  for (int a = 0; a < count; ++a) {
    const Axis<3>& axis = axes[a];
    if (axis.stride[0] > 1 || axis.stride[1] > 1) continue;
    const int dense = static_cast<int>(axis.stride[0] + axis.stride[1]);
    if (dense > best_dense || (dense == best_dense && dense > 0 && axis.size > axes[best].size)) {
      best = a;
      best_dense = dense;
    }
  }
  for (int a = count - 1; best < 0 && a >= 0; --a) {
    if (axes[a].stride[0] + axes[a].stride[1] > 0) best = a;
  }
  return best < 0 ? count - 1 : best;
}

// Does vector axis `inner` consist of aligned vectors of n elements?
bool comes_in_vectors(const Term& term, const Axis<3>* axes, int count, int inner, const Offsets<3>& kept,
                      const Offsets<2>& reduced, bool columns, int64_t n) {
  const Tensor* factors[2] = {&term.x, term.z ? &term.z : &term.x};
  if ((columns ? kept.innermost().size : reduced.innermost().size) % n != 0 || axes[inner].size % n != 0) return false;
  for (int k = 0; k < 2; ++k) {
    if (axes[inner].stride[k] == 0) continue;
    bool fits = axes[inner].stride[k] == 1;
    fits = fits &&
           reinterpret_cast<uintptr_t>(factors[k]->raw()) % static_cast<uintptr_t>(n * size_of(term.x.dtype())) == 0;
    for (int a = 0; a < count; ++a) fits = fits && (a == inner || axes[a].stride[k] % n == 0);
    if (!fits) return false;
  }
  return true;
}

int bits_for(int64_t n, int limit) {  // the smallest b with 2^b >= n, at most limit
  int b = 0;
  while ((int64_t{1} << b) < n && b < limit) ++b;
  return b;
}

template <class T, Kind kind>
void reduce_as(const Term& term, Out y) {
  using Part = Part_t<T, kind>;
  const Tensor &x = term.x, &z = term.z ? term.z : term.x;
  Axis<3> axes[Shape::max_rank];
  int count = 0;
  int64_t distinct[2] = {1, 1};
  for (int a = 0; a < x.rank(); ++a) {
    if (x.dim(a) == 1) continue;
    axes[count] = {x.dim(a), {x.strides()[a], z.strides()[a], y.dim(a) == 1 ? 0 : y.strides()[a]}};
    for (int k = 0; k < 2; ++k) distinct[k] *= axes[count].stride[k] == 0 ? 1 : axes[count].size;
    ++count;
  }
  if (count == 0) axes[count++] = {1, {1, 1, 1}};
  // Axes in the order of the larger factor's strides, the axis of the vectors last.
  const int larger = distinct[1] > distinct[0] ? 1 : 0;
  std::swap(axes[vector_axis(axes, count)], axes[count - 1]);
  for (int a = 1; a < count - 1; ++a) {
    for (int b = a; b > 0 && axes[b - 1].stride[larger] < axes[b].stride[larger]; --b) std::swap(axes[b - 1], axes[b]);
  }
  const Axis<3>& inner = axes[count - 1];
  Axis<3> kept_axes[Shape::max_rank];
  Axis<2> reduced_axes[Shape::max_rank];
  int kept_count = 0, reduced_count = 0;
  for (int a = 0; a < count; ++a) {
    if (axes[a].stride[2] != 0)
      kept_axes[kept_count++] = axes[a];
    else
      reduced_axes[reduced_count++] = {axes[a].size, {axes[a].stride[0], axes[a].stride[1]}};
  }
  Plan plan{.kept = Offsets<3>(kept_axes, kept_count),
            .reduced = Offsets<2>(reduced_axes, reduced_count),
            .columns = inner.stride[2] != 0,
            .largest = term.largest,
            .x_repeats = inner.stride[0] == 0,
            .z_repeats = inner.stride[1] == 0,
            .product = bool(term.z),
            .y_step = inner.stride[2],
            .member_bits = 0,
            .piece = 0,
            .piece_stride = y.numel()};
  constexpr int kWide = std::is_integral_v<T> ? 1 : kVectorWidth<T>;
  const bool vectors = comes_in_vectors(term, axes, count, count - 1, plan.kept, plan.reduced, plan.columns, kWide);
  if (vectors) {
    if (plan.columns)
      plan.kept = plan.kept.in_steps_of(kWide);
    else
      plan.reduced = plan.reduced.in_steps_of(kWide);
  }
  const int64_t terms = plan.reduced.count, results = plan.kept.count;
  // Members while each has some steps; in columns, while a warp still spans neighbouring results.
  const int limit = plan.columns ? kThreadBits - bits_for(results, 5) : kThreadBits;
  plan.member_bits = bits_for((terms - 1) / kEach + 1, limit);
  const int64_t blocks = (results - 1) / (kThreads >> plan.member_bits) + 1;
  const int64_t steps = ((terms - 1) >> plan.member_bits) + 1;  // of a thread
  int64_t pieces = 1;
  if (blocks < kFull && steps > kLongest) pieces = std::min((kFull - 1) / blocks + 1, (steps - 1) / (kLongest / 2) + 1);
  plan.piece = (terms - 1) / pieces + 1;
  pieces = (terms - 1) / plan.piece + 1;
  auto run = [&](const Tensor& out, void* data) {
    const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(pieces));
    if (vectors)
      launch(reduce_teams<T, kWide, kind>, {.grid = grid, .block = kThreads}, x.data<T>(), z.data<T>(), plan,
             out.dtype(), data);
    else
      launch(reduce_teams<T, 1, kind>, {.grid = grid, .block = kThreads}, x.data<T>(), z.data<T>(), plan, out.dtype(),
             data);
  };
  if (pieces == 1) return run(y, y.mutable_raw());
  Tensor parts = empty({pieces, y.numel()}, dtype_of<Part>(), y.device()), all = y.reshaped({1, y.numel()});
  run(parts, parts.mutable_raw());
  reduce_as<Part, kind>({parts, Tensor(), term.largest}, all);
}

template <Kind kind>
void reduce_any(const char* op, const Term& term, Out y) {
  if (y.numel() == 0) return;
  if (term.x.numel() == 0) {
    const double nothing = std::numeric_limits<double>::infinity();
    return y.fill(kind == Kind::product ? 1.0 : kind == Kind::sum ? 0.0 : term.largest ? -nothing : nothing);
  }
  if constexpr (kind == Kind::product) {
    check(!is_float(term.x.dtype()), op, "multiplies integers only");
  } else {
    if (is_float(term.x.dtype()))
      return visit_float(term.x.dtype(), op, [&]<class T>() { reduce_as<T, kind>(term, y); });
  }
  if (term.x.dtype() == DType::u8) return reduce_as<uint8_t, kind>(term, y);
  visit_index(term.x.dtype(), op, [&]<class T>() { reduce_as<T, kind>(term, y); });
}

void reduce(ReduceOp op, In x, Out y) {
  if (op == ReduceOp::sum) return reduce_any<Kind::sum>("reduce", {x, Tensor(), false}, y);
  if (op == ReduceOp::prod) return reduce_any<Kind::product>("reduce", {x, Tensor(), false}, y);
  reduce_any<Kind::extreme>("reduce", {x, Tensor(), op == ReduceOp::max}, y);
}

void sum_product(In x, In z, Out y) { reduce_any<Kind::sum>("sum_product", {x, z, false}, y); }

}  // namespace

constinit const ReduceKernels reduce_kernels{
    .axes = reduce,
    .sum_product = sum_product,
};

}  // namespace braid::cuda
