#include "braid/cuda/matmul/matmul.h"

#include <bit>

#include "braid/cuda/runtime/graph.h"
#include "braid/tensor/base/integers.h"
#include "braid/tensor/kernels/backend.h"
#include "braid/tensor/kernels/pointwise_ops.h"

namespace braid::cuda {

namespace {

// Products of a call: cuBLASLt need not have an algorithm for more.
constexpr int64_t kMaxBatch = 65535;

// One axis of the product and its stride in each tensor; 0 where the tensor does not have it.
struct Axis {
  int64_t size, x, z, y;
};

// Row-major: the second axis has stride 1, the first one steps over it. The stride of an axis of one element has no
// meaning.
bool by_rows(int64_t rows, int64_t columns, int64_t row, int64_t column) {
  return (columns == 1 || column == 1) && (rows == 1 || row >= columns);
}
bool matrix(int64_t rows, int64_t columns, int64_t row, int64_t column) {
  return by_rows(rows, columns, row, column) || by_rows(columns, rows, column, row);
}

BlasOperand column_major(const Tensor& tensor, int64_t rows, int64_t columns, int64_t row, int64_t column,
                         int64_t batch) {
  if (by_rows(rows, columns, row, column)) return {&tensor, true, rows == 1 ? columns : row, batch};
  return {&tensor, false, columns == 1 ? rows : column, batch};
}

// Outermost first; neighbours that are contiguous in all tensors are merged.
std::vector<Axis> batch_axes(In x, In z, In y) {
  std::vector<Axis> axes;
  for (int i = 0; i < y.rank() - 2; ++i) {
    const Axis axis{y.dim(i), x.strides()[i], z.strides()[i], y.strides()[i]};
    if (axis.size == 1) continue;
    const auto continues = [&](const Axis& outer) {
      return outer.x == axis.x * axis.size && outer.z == axis.z * axis.size && outer.y == axis.y * axis.size;
    };
    if (!axes.empty() && continues(axes.back())) {
      axes.back() = {axes.back().size * axis.size, axis.x, axis.z, axis.y};
    } else {
      axes.push_back(axis);
    }
  }
  return axes;
}

// The power of two, up to 256, that all of the operand's addresses are multiples of.
int64_t alignment(const BlasOperand& o, int64_t offset) {
  const int64_t size = size_of(o.tensor->dtype());
  const uint64_t all = std::bit_cast<uintptr_t>(static_cast<const std::byte*>(o.tensor->raw()) + offset * size) |
                       static_cast<uint64_t>((o.batch | o.leading) * size) | 256u;
  return int64_t{1} << std::countr_zero(all);
}

// Whether a product of 16 bits is cut there: cuBLASLt's kernels for tensor cores need a multiple of 8 along the dense
// axis of y and along K. The products of a vocabulary of 50257 took 7 to 10 times those of 50256 (H200, cuBLASLt 13.0).
bool is_cut(int64_t size, DType type) {
  constexpr int64_t kLong = 1024;  // below it two calls cost more than one slow call
  return size_of(type) == 2 && size >= kLong && size % 8 != 0;
}

int dense_axis(In y) { return by_rows(y.dim(-2), y.dim(-1), y.strides()[-2], y.strides()[-1]) ? -1 : -2; }

}  // namespace

ProductKey key_of(const MatmulPlan& p, const MatmulPlan::Offsets& call, bool adds) {
  return {alignment(p.a, call.a),
          alignment(p.b, call.b),
          alignment(p.c, call.c),
          static_cast<int64_t>(p.a.tensor->dtype()),
          static_cast<int64_t>(p.c.tensor->dtype()),
          p.rows,
          p.columns,
          p.inner,
          p.batch,
          p.a.transposed,
          p.b.transposed,
          p.a.leading,
          p.b.leading,
          p.c.leading,
          p.a.batch,
          p.b.batch,
          p.c.batch,
          adds,
          p.bias != nullptr};
}

std::string text_of(const MatmulPlan& p) {
  return str("(", p.rows, ", ", p.inner, ") x (", p.inner, ", ", p.columns, ") of ", p.a.tensor->dtype());
}

void check_may_choose(const MatmulPlan& plan) {
  check(!capturing(), "matmul", [&] {
    return "the product " + text_of(plan) +
           " is new while a graph is captured, but its algorithm is chosen outside of captures only; run the work once "
           "before it is captured";
  });
}

bool is_matrix(const Tensor& x) { return matrix(x.dim(-2), x.dim(-1), x.strides()[-2], x.strides()[-1]); }

MatmulPlan plan_matmul(In x, In z, In y) {
  Axis m{y.dim(-2), x.strides()[-2], 0, y.strides()[-2]};
  const Axis n{y.dim(-1), 0, z.strides()[-1], y.strides()[-1]}, k{x.dim(-1), x.strides()[-1], z.strides()[-2], 0};
  std::vector<Axis> batch = batch_axes(x, z, y);
  while (!batch.empty() && batch.back().z == 0) {  // more rows of x with one z
    const Axis& last = batch.back();
    if (m.size > 1 && (last.x != m.x * m.size || last.y != m.y * m.size)) break;
    const Axis rows = m.size > 1 ? Axis{m.size * last.size, m.x, 0, m.y} : last;
    if (!matrix(rows.size, k.size, rows.x, k.x) || !matrix(rows.size, n.size, rows.y, n.y)) break;
    m = rows;
    batch.pop_back();
  }
  Axis together{1, 0, 0, 0};
  if (!batch.empty()) {
    auto longest = batch.begin();
    for (auto it = batch.begin(); it != batch.end(); ++it) longest = it->size > longest->size ? it : longest;
    together = *longest;
    batch.erase(longest);
    // A longer axis is cut into equal parts, each a call. One without them, a prime, is left to the library.
    const int64_t least = detail::ceil_div(together.size, kMaxBatch);
    int64_t parts = least;
    while (parts < 2 * least && together.size % parts != 0) ++parts;
    if (parts > 1 && together.size % parts == 0) {
      together.size /= parts;
      batch.push_back({parts, together.x * together.size, together.z * together.size, together.y * together.size});
    }
  }

  const BlasOperand from_x = column_major(x, m.size, k.size, m.x, k.x, together.x);
  const BlasOperand from_z = column_major(z, k.size, n.size, k.z, n.z, together.z);
  MatmulPlan plan{.rows = m.size,
                  .columns = n.size,
                  .inner = k.size,
                  .batch = together.size,
                  .a = from_x,
                  .b = from_z,
                  .c = column_major(y, m.size, n.size, m.y, n.y, together.y),
                  .calls = {{0, 0, 0}}};
  const bool swapped = plan.c.transposed;  // to BLAS this is y^T = z^T x^T
  if (swapped) {
    std::swap(plan.rows, plan.columns);
    std::swap(plan.a, plan.b);
    for (BlasOperand* operand : {&plan.a, &plan.b, &plan.c}) operand->transposed = !operand->transposed;
  }
  for (const Axis& axis : batch) {
    std::vector<MatmulPlan::Offsets> calls;
    for (const auto& at : plan.calls) {
      for (int64_t i = 0; i < axis.size; ++i) {
        const int64_t ix = i * axis.x, iz = i * axis.z;
        calls.push_back({at.a + (swapped ? iz : ix), at.b + (swapped ? ix : iz), at.c + i * axis.y});
      }
    }
    plan.calls = std::move(calls);
  }
  return plan;
}

void matmul(In x, In z, double alpha, double beta, Out y) {
  if (y.numel() == 0) return;
  const Backend& device = backend(y.device());
  if (x.dim(-1) == 0) {  // an empty sum
    if (beta == 0) return device.copy.fill(0, y);
    return device.pointwise.binary(BinaryOp::mul, y, full({1}, beta, y.dtype(), y.device()).expanded(y.shape()), y);
  }
  if (!is_matrix(y)) {
    Tensor copy = y.clone();
    matmul(x, z, alpha, beta, copy);
    return device.copy.strided(copy, y);
  }
  const Tensor left = is_matrix(x) ? x : x.clone(), right = is_matrix(z) ? z : z.clone();
  const int axis = dense_axis(y);
  const int64_t dense = y.dim(axis), inner = x.dim(-1);
  if (is_cut(dense, x.dtype())) {
    const int64_t bounds[] = {0, dense / 8 * 8, dense};
    for (int i = 0; i < 2; ++i) {
      const auto part = [&](In t) { return t.sliced(axis, bounds[i], bounds[i + 1]); };
      Tensor y_part = part(y);
      axis == -1 ? matmul(left, part(right), alpha, beta, y_part) : matmul(part(left), right, alpha, beta, y_part);
    }
  } else if (is_cut(inner, x.dtype())) {  // the few last terms first: only their sum is rounded twice
    const auto terms = [&](int64_t begin, int64_t end, double keep) {
      matmul(left.sliced(-1, begin, end), right.sliced(-2, begin, end), alpha, keep, y);
    };
    terms(inner / 8 * 8, inner, beta);
    terms(0, inner / 8 * 8, 1);
  } else {
    execute(plan_matmul(left, right, y), alpha, beta);
  }
}

static void linear(In x, In weight, In bias, Out y) {
  Shape repeated = x.shape();
  repeated[-2] = weight.dim(1);
  repeated[-1] = weight.dim(0);
  const Tensor matrix = is_matrix(weight) ? weight : weight.clone(), z = matrix.transposed().expanded(repeated);
  if (!bias) return matmul(x, z, 1, 0, y);
  if (y.numel() == 0) return;
  if (x.dim(-1) > 0 && !is_cut(x.dim(-1), x.dtype()) && !is_cut(y.dim(-1), x.dtype())) {
    const Tensor rows = is_matrix(x) ? x : x.clone();
    MatmulPlan plan = plan_matmul(rows, z, y);
    plan.bias = &bias;  // y is contiguous, so that to BLAS its rows are columns
    const bool fits = plan.calls.size() == 1 && std::bit_cast<uintptr_t>(bias.raw()) % 16 == 0;
    if (fits && execute(plan, 1, 0)) return;
  }
  y.copy_(bias.expanded(y.shape()));
  matmul(x, z, 1, 1, y);
}

static void accumulate_matmul(In x, In z, bool accumulate, Out y) { matmul(x, z, 1, accumulate ? 1 : 0, y); }

constinit const MatmulKernels matmul_kernels{
    .product = accumulate_matmul,
    .linear = linear,
};

}  // namespace braid::cuda
