#include "tests/support/op_table.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "tests/support/compare.h"
#include "tests/support/guarded.h"
#include "tests/support/throws.h"

namespace braid::test {

std::vector<Tensor> random_inputs(const OpRow& row, const std::vector<Shape>& shapes, DType dtype) {
  std::vector<Tensor> inputs;
  for (size_t k = 0; k < shapes.size(); ++k) {
    int64_t limit = k < row.index_limits.size() ? row.index_limits[k] : 0;
    std::vector<double> values(static_cast<size_t>(numel(shapes[k])));
    for (size_t i = 0; i < values.size(); ++i) {
      double u = unit(random_bits(i, {k + 1, 42}));
      values[i] = limit > 0 ? std::floor(u * static_cast<double>(limit)) : row.low + u * (row.high - row.low);
    }
    Tensor x = from_vector(values, shapes[k]);
    inputs.push_back(limit > 0 ? x.to(DType::i64) : x.to(dtype));
  }
  return inputs;
}

std::vector<Array> arrays(const std::vector<Tensor>& inputs) {
  std::vector<Array> out;
  for (const Tensor& x : inputs) out.push_back({x.shape(), x.to_vector<double>()});
  return out;
}

namespace {

std::string describe(const OpRow& row, const std::vector<Shape>& shapes, const char* what) {
  std::string s = row.name;
  s.append(1, ' ').append(what);
  for (const Shape& shape : shapes) (s += ' ') += str(shape);
  return s;
}

std::vector<Tensor> on(const std::vector<Tensor>& inputs, Device device) {
  std::vector<Tensor> out;
  for (const Tensor& x : inputs) out.push_back(x.to(device));
  return out;
}

void check_values(const OpRow& row, const std::vector<Shape>& shapes, DType dtype, double tolerance, const char* what,
                  Device device = kCpu) {
  NoGrad off;
  std::vector<Tensor> inputs =
      random_inputs(row, shapes, dtype);  // rounded to dtype first: op and reference get the same values
  Tensor y = row.op(on(inputs, device));
  Array want = row.reference(arrays(inputs));
  BOOST_TEST_CONTEXT(describe(row, shapes, what)) {
    BOOST_TEST(str(y.device()) == str(device));
    BOOST_TEST(str(y.shape()) == str(want.shape));
    BOOST_TEST(is_close(y.to_vector<double>(), want.values, tolerance));
  }
}

// Views of the same values with another layout.
enum class Layout { transposed, sliced };
Tensor relaid(const Tensor& x, Layout layout) {
  if (x.rank() == 0) return x.clone();
  if (layout == Layout::transposed) {
    if (x.rank() < 2) return relaid(x, Layout::sliced);
    return x.transposed(0, -1).clone().transposed(0, -1);
  }
  Shape larger = x.shape();
  larger[-1] += 3;
  Tensor base = full(larger, 1, x.dtype(), x.device());
  Tensor inside = base.sliced(-1, 2, 2 + x.dim(-1));
  inside.copy_(x);
  return inside;
}

struct Run {
  std::vector<double> value;
  std::vector<std::vector<double>> grads;
};

Run run(const OpRow& row, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> leaves;
  for (const Tensor& x : inputs) {
    leaves.push_back(x.detach());
    if (row.differentiable && is_float(x.dtype())) require_grad(leaves.back());
  }
  Tensor y = row.op(leaves);
  Run out{y.to_vector<double>(), {}};
  if (!row.differentiable || !requires_grad(y)) return out;
  std::vector<double> weights(out.value.size());
  for (size_t i = 0; i < weights.size(); ++i) {  // 64 steps: exact in every type
    weights[i] = std::floor(64.0 * unit(random_bits(i, {3, 3}))) / 64 - 0.5;
  }
  // The incoming gradient is strided too: a derivative may not assume that it is contiguous.
  backward(y, relaid(from_vector(weights, y.shape()).to(y.dtype()).to(y.device()), Layout::transposed));
  for (const Tensor& leaf : leaves) {
    out.grads.push_back(requires_grad(leaf) && grad(leaf) ? grad(leaf).to_vector<double>() : std::vector<double>());
  }
  return out;
}

void check_layouts(const OpRow& row, const std::vector<Shape>& shapes, Device device = kCpu) {
  std::vector<Tensor> inputs = random_inputs(row, shapes, DType::f64);
  Run want = run(row, inputs);
  inputs = on(inputs, device);
  for (Layout layout : {Layout::transposed, Layout::sliced}) {
    std::vector<Tensor> views;
    for (const Tensor& x : inputs) views.push_back(relaid(x, layout));
    Run got = run(row, views);
    BOOST_TEST_CONTEXT(describe(row, shapes, layout == Layout::transposed ? "transposed" : "sliced")) {
      BOOST_TEST(is_close(got.value, want.value, 1e-13));
      BOOST_REQUIRE(got.grads.size() == want.grads.size());
      // 0.01: some derivatives are 0 up to rounding, such as that of LayerNorm for a row of one element.
      for (size_t k = 0; k < want.grads.size(); ++k) BOOST_TEST(is_close(got.grads[k], want.grads[k], 1e-12, 0.01));
    }
  }
  // Stride 0: the first row of each input repeated, against the same values written out.
  std::vector<Tensor> repeated, written;
  for (const Tensor& x : inputs) {
    bool can = is_float(x.dtype()) && x.rank() > 0 && x.dim(0) > 1;
    repeated.push_back(can ? x.sliced(0, 0, 1).expanded(x.shape()) : x);
    written.push_back(repeated.back().clone());
  }
  Run got = run(row, repeated), expected = run(row, written);
  BOOST_TEST_CONTEXT(describe(row, shapes, "stride 0")) {
    BOOST_TEST(is_close(got.value, expected.value, 1e-13));
    for (size_t k = 0; k < expected.grads.size(); ++k) BOOST_TEST(is_close(got.grads[k], expected.grads[k], 1e-12));
  }
}

// Inputs in memory of others: an op reads nothing behind them, needs no alignment, and gives the same bits.
void check_borrowed(const OpRow& row, const std::vector<Shape>& shapes, DType dtype) {
  const std::vector<Tensor> inputs = random_inputs(row, shapes, dtype);
  std::vector<Tensor> borrowed;
  for (const Tensor& x : inputs) borrowed.push_back(guarded(x));
  const Run got = run(row, borrowed), want = run(row, inputs);
  BOOST_TEST_CONTEXT(describe(row, shapes, "borrowed")) {
    BOOST_TEST(is_close(got.value, want.value, 0));
    for (size_t k = 0; k < want.grads.size(); ++k) BOOST_TEST(is_close(got.grads[k], want.grads[k], 0));
  }
}

// The derivative in `dtype` against the CPU's in f64 of the same inputs.
void check_gradients(const OpRow& row, const std::vector<Shape>& shapes, DType dtype, double tolerance,
                     const char* what, Device device = kCpu) {
  std::vector<Tensor> inputs = random_inputs(row, shapes, dtype), wide;
  for (const Tensor& x : inputs) wide.push_back(is_float(x.dtype()) ? x.to(DType::f64) : x);
  Run got = run(row, on(inputs, device)), want = run(row, wide);
  BOOST_TEST_CONTEXT(describe(row, shapes, what)) {
    BOOST_REQUIRE(got.grads.size() == want.grads.size());
    for (size_t k = 0; k < want.grads.size(); ++k) BOOST_TEST(is_close(got.grads[k], want.grads[k], tolerance, 0.01));
  }
}

}  // namespace

std::vector<OpRow> all_rows() {
  std::vector<OpRow> all;
  for (auto family :
       {pointwise_rows, shape_rows,      reduce_rows,    product_rows,        row_rows,      language_rows,
        order_rows,     factory_rows,    attention_rows, attention_mask_rows, composed_rows, linalg_rows,
        math_rows,      reductions_rows, layer_rows,     arrange_rows,        axes_rows,     contract_rows,
        number_rows,    indexing_rows,   sequence_rows}) {
    for (OpRow& row : family()) all.push_back(std::move(row));
  }
  return all;
}

namespace {

// Checks for every device. Rounding the exact result to 16 bits errs by half a unit in the last place (2^-9, 2^-12);
// twice that is allowed for each rounding, and more for derivatives, which may round more than once on their way.
void check_case(const OpRow& row, const std::vector<Shape>& shapes, Device device) {
  check_values(row, shapes, DType::f64, 1e-12, "f64", device);
  check_values(row, shapes, DType::f32, row.f32_tolerance, "f32", device);
  if (row.in_16_bit) {
    check_values(row, shapes, DType::bf16, row.roundings * 0x1p-8, "bf16", device);
    check_values(row, shapes, DType::f16, row.roundings * 0x1p-11, "f16", device);
  }
  check_layouts(row, shapes, device);
  if (!row.differentiable) return;
  check_gradients(row, shapes, DType::f32, 5 * row.f32_tolerance, "f32 gradient", device);
  if (row.in_16_bit) {
    check_gradients(row, shapes, DType::bf16, 0x1p-6, "bf16 gradient", device);
    check_gradients(row, shapes, DType::f16, 0x1p-9, "f16 gradient", device);
  }
}

// A history that is kept gives the same gradients again: no derivative spends what it saved.
void check_kept_history(const OpRow& row, const std::vector<Shape>& shapes) {
  std::vector<Tensor> leaves = random_inputs(row, shapes, DType::f64), wanted;
  for (Tensor& x : leaves)
    if (is_float(x.dtype())) wanted.push_back(require_grad(x));
  const Tensor y = row.op(leaves), dy = full(y.shape(), 0.75, y.dtype());
  const std::vector<Tensor> first = grad(y, wanted, {.dy = dy, .keep = true, .allow_unused = true});
  const std::vector<Tensor> second = grad(y, wanted, {.dy = dy, .allow_unused = true});
  BOOST_TEST_CONTEXT(describe(row, shapes, "kept history")) {
    for (size_t i = 0; i < wanted.size(); ++i) {
      BOOST_TEST(bool(first[i]) == bool(second[i]));
      if (first[i] && second[i]) BOOST_TEST(is_close(second[i].to_vector<double>(), first[i].to_vector<double>(), 0));
    }
  }
}

// Each of its finite differences costs a backward pass: of the smaller cases alone.
void check_second_derivative(const OpRow& row, const std::vector<Shape>& shapes) {
  int64_t elements = 0;
  for (const Shape& shape : shapes) elements += numel(shape);
  if (elements > 64) return;
  const std::vector<Tensor> inputs = random_inputs(row, shapes, DType::f64);
  BOOST_TEST_CONTEXT(describe(row, shapes, "gradgradcheck")) {
    if (!row.twice) {
      BRAID_CHECK_FAILS(gradgradcheck(row.op, inputs), ErrorKind::misuse, "has no second derivative");
      return;
    }
    try {
      const GradcheckResult result = gradgradcheck(row.op, inputs);
      BOOST_TEST_CONTEXT(result.where) BOOST_TEST((result.error <= 100 * row.gradient_tolerance));
    } catch (const Error& e) {
      BOOST_ERROR(e.what());
    }
  }
}

}  // namespace

void check_row(const OpRow& row) {
  for (const std::vector<Shape>& shapes : row.cases) {
    check_case(row, shapes, kCpu);
    check_borrowed(row, shapes, DType::f32);
    if (row.in_16_bit) check_borrowed(row, shapes, DType::bf16);
    if (!row.differentiable) continue;
    GradcheckResult result = gradcheck(row.op, random_inputs(row, shapes, DType::f64));
    BOOST_TEST_CONTEXT(describe(row, shapes, "gradcheck") << " " << result.where) {
      BOOST_TEST((result.error <= row.gradient_tolerance));
    }
    check_kept_history(row, shapes);
    check_second_derivative(row, shapes);
  }
}

std::string check_row(const OpRow& row, Device device) {
  try {
    for (const std::vector<Shape>& shapes : row.cases) check_case(row, shapes, device);
  } catch (const Error& e) {
    const std::string what = e.what();
    if (what.find("no fused kernel") != std::string::npos) return "dcmha_forward";
    if (what.find("no such kernel") == std::string::npos) throw;
    return what.substr(1, what.find(']') - 1);
  }
  return "";
}

Array map(const Array& x, const std::function<double(double)>& f) {
  Array y = x;
  for (double& v : y.values) v = f(v);
  return y;
}

Array zip(const Array& x, const Array& y, const std::function<double(double, double)>& f) {
  Shape shape = broadcast(x.shape, y.shape, "zip");
  Strides sx = broadcast_strides(x.shape, contiguous_strides(x.shape), shape, "zip");
  Strides sy = broadcast_strides(y.shape, contiguous_strides(y.shape), shape, "zip");
  Strides sz = contiguous_strides(shape);
  Array z{shape, std::vector<double>(static_cast<size_t>(numel(shape)))};
  for (size_t i = 0; i < z.values.size(); ++i) {
    int64_t rest = static_cast<int64_t>(i), ix = 0, iy = 0;
    for (int a = 0; a < shape.rank(); ++a) {
      int64_t at = rest / sz[a];
      rest %= sz[a];
      ix += at * sx[a];
      iy += at * sy[a];
    }
    z.values[i] = f(x.values[static_cast<size_t>(ix)], y.values[static_cast<size_t>(iy)]);
  }
  return z;
}

Array rows(const Array& x, const std::function<void(const double*, double*, int64_t)>& f) {
  Array y = x;
  int64_t n = x.shape[-1];
  for (int64_t at = 0; n > 0 && at < numel(x.shape); at += n)
    f(&x.values[static_cast<size_t>(at)], &y.values[static_cast<size_t>(at)], n);
  return y;
}

static double scrambled_step(int64_t i, int64_t n) { return 5.0 * static_cast<double>(n > 0 ? i * 7919 % n : 0); }

Array spread(const Array& x) {
  Array y = x;
  const auto n = static_cast<int64_t>(y.values.size());
  for (int64_t i = 0; i < n; ++i) y.values[static_cast<size_t>(i)] += scrambled_step(i, n);
  return y;
}

Tensor spread(const Tensor& x) {
  std::vector<double> steps;
  for (int64_t i = 0; i < x.numel(); ++i) steps.push_back(scrambled_step(i, x.numel()));
  return add(x, from_vector(steps, x.shape()).to(x.dtype()).to(x.device()));
}

}  // namespace braid::test
