// Pointwise kernels on the GPU: sizes around the vectors, layouts, aliasing, NaN. The formulas are the op table's.
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "braid/tensor/kernels/pointwise_ops.h"
#include "tests/cuda/support.h"

using namespace braid;
using namespace braid::test;

namespace {

// Every kernel family once: inputs x, y, dz and a mask, of one shape.
std::vector<Tensor> every_family(const Tensor& x, const Tensor& y, const Tensor& dz, const Tensor& mask) {
  const Backend& table = backend(x.device());
  std::vector<Tensor> out;
  auto next = [&]() -> Tensor& { return out.emplace_back(empty(x.shape(), x.dtype(), x.device())); };
  table.pointwise.unary(UnaryOp::silu, 0, 0, x, next());
  table.pointwise.unary_backward(UnaryOp::gelu_tanh, 0, 0, x, dz, next());
  table.pointwise.binary(BinaryOp::sub, x, y, next());
  Tensor dx = next(), dy = next(), only_dx = next(), only_dy = next(), none;
  table.pointwise.binary_backward(BinaryOp::swiglu, x, y, dz, dx, dy);
  table.pointwise.binary_backward(BinaryOp::mul, x, y, dz, only_dx, none);
  table.pointwise.binary_backward(BinaryOp::mul, x, y, dz, none, only_dy);
  table.pointwise.masked_fill(x, mask, -3, next());
  table.pointwise.where(mask, x, y, next());
  table.pointwise.compare(CompareOp::lt, x, y, out.emplace_back(empty(x.shape(), DType::u8, x.device())));
  table.random.dropout(x, 0.25, {5, 6}, next());
  return out;
}

std::vector<Tensor> inputs_of(const Shape& shape, DType type) {
  return {random_tensor(shape, 1, type), random_tensor(shape, 2, type), random_tensor(shape, 3, type),
          random_tensor(shape, 4, DType::f32, 0, 3).to(DType::u8)};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cuda_pointwise)

BOOST_AUTO_TEST_CASE(sizes_around_the_vectors) {
  auto run = [](const std::vector<Tensor>& in) { return every_family(in[0], in[1], in[2], in[3]); };
  for (int64_t n : {0, 1, 2, 7, 8, 9, 31, 32, 33, 1023, 1025, 2049}) {
    for (DType type : kFloats) {
      for (bool misaligned : {false, true}) {
        BOOST_TEST_CONTEXT(n << " " << str(type) << (misaligned ? " misaligned" : "")) {
          check_on_gpu(run, inputs_of({n}, type), tolerance_of(type), misaligned);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(comparisons_and_choices_of_every_type) {
  auto run = [](const std::vector<Tensor>& in) {
    std::vector<Tensor> out;
    for (CompareOp op : {CompareOp::eq, CompareOp::ne, CompareOp::lt, CompareOp::le}) {
      for (const Tensor& y : {in[1], in[1].sliced(0, 3, 4).expanded(in[1].shape())}) {
        Tensor& mask = out.emplace_back(empty(in[0].shape(), DType::u8, in[0].device()));
        backend(in[0].device()).pointwise.compare(op, in[0], y, mask);
      }
    }
    Tensor& chosen = out.emplace_back(empty_like(in[0]));
    backend(in[0].device()).pointwise.where(out[0], in[0], in[1], chosen);
    return out;
  };
  for (DType type : {DType::f64, DType::f32, DType::bf16, DType::f16, DType::i64, DType::i32, DType::u8}) {
    for (int64_t n : {4, 33, 1025}) {  // integers: many are equal
      auto numbers = [&](uint64_t stream) { return random_ids({n}, stream, 0, 4).to(type); };
      BOOST_TEST_CONTEXT(str(type) << " " << n) check_on_gpu(run, {numbers(1), numbers(2)}, 0, n == 33);
    }
  }
}

BOOST_AUTO_TEST_CASE(every_layout) {
  const Shape whole{2, 3, 2, 4, 3, 8};
  using View = std::function<Tensor(const Tensor&)>;
  const std::vector<View> views{
      [](const Tensor& x) {
        return x.permuted({3, 0, 5, 1, 4, 2});
      },
      [](const Tensor& x) { return x.transposed(); },
      [](const Tensor& x) { return x.sliced(5, 1, 8).sliced(1, 1, 3); },
      [](const Tensor& x) { return x.sliced(5, 4, 8).sliced(3, 1, 3); },
      [&](const Tensor& x) { return x.sliced(5, 0, 1).expanded(whole); },
      [&](const Tensor& x) { return x.sliced(4, 0, 1).sliced(0, 1, 2).expanded(whole); },
      [&](const Tensor& x) { return x.sliced(3, 1, 2).sliced(2, 0, 1).sliced(5, 3, 4).expanded(whole); },
      [](const Tensor& x) {
        return x.reshaped({-1}).sliced(0, 1, 1000).reshaped({27, 37}).transposed();
      },
  };
  for (size_t v = 0; v < views.size(); ++v) {
    for (DType type : kFloats) {
      auto run = [&](const std::vector<Tensor>& in) {  // one operand in the layout, the others as they come
        Tensor x = views[v](in[0]);
        auto like_x = [&](const Tensor& t) { return t.reshaped({-1}).sliced(0, 0, x.numel()).reshaped(x.shape()); };
        std::vector<Tensor> out = every_family(x, like_x(in[1]), like_x(in[2]), like_x(in[3]));
        for (Tensor& y : every_family(like_x(in[1]), x, x, views[v](in[3]))) out.push_back(y);
        return out;
      };
      BOOST_TEST_CONTEXT("view " << v << " " << str(type)) {
        check_on_gpu(run, inputs_of(whole, type), tolerance_of(type));
      }
    }
  }
}

// Halves of a matrix's columns, as SwiGLU reads and writes them, and operands of one piece beside them.
BOOST_AUTO_TEST_CASE(slices_of_columns) {
  auto run = [](const std::vector<Tensor>& in) {
    const PointwiseKernels& table = backend(in[0].device()).pointwise;
    auto third = [](const Tensor& x, int64_t k) { return x.sliced(1, 16 * k, 16 * k + 16); };
    const Tensor x = third(in[0], 0), y = third(in[0], 2), dz = in[1];
    Tensor all = full(in[0].shape(), 5, x.dtype(), x.device()), more = all.clone(), whole = empty_like(dz), none;
    Tensor z = third(all, 1), dx = third(all, 0), dy = third(all, 2), y1 = third(more, 0), only_dy = third(more, 2);
    table.binary(BinaryOp::swiglu, x, y, z);
    table.binary_backward(BinaryOp::swiglu, x, y, dz, dx, dy);
    table.unary(UnaryOp::silu, 0, 0, y, y1);
    table.binary_backward(BinaryOp::mul, x, dz, y, none, only_dy);
    table.binary(BinaryOp::sub, x, dz, whole);
    return std::vector<Tensor>{all, more, whole};
  };
  for (DType type : kFloats) {
    BOOST_TEST_CONTEXT(str(type)) {
      check_on_gpu(run, {random_tensor({37, 48}, 1, type), random_tensor({37, 16}, 2, type)}, tolerance_of(type));
    }
  }
}

// Large transposed inputs are copied by tiles first.
BOOST_AUTO_TEST_CASE(large_transposed_inputs) {
  auto run = [](const std::vector<Tensor>& in) {
    return every_family(in[0].transposed(), in[1], in[2].transposed(), in[3].transposed());
  };
  for (DType type : {DType::f64, DType::bf16}) check_on_gpu(run, inputs_of({130, 130}, type), tolerance_of(type));
}

BOOST_AUTO_TEST_CASE(strided_results) {
  for (DType type : kFloats) {
    auto run = [&](const std::vector<Tensor>& in) {
      Tensor base = full({30, 50}, -1, type, in[0].device()), z = base.sliced(1, 5, 45).transposed();
      Tensor rows = base.clone(), inside = rows.sliced(1, 8, 48);
      backend(in[0].device()).pointwise.binary(BinaryOp::add, in[0], in[1], z);
      backend(in[0].device()).pointwise.binary(BinaryOp::add, in[0].transposed(), in[1].transposed(), inside);
      return std::vector<Tensor>{base, rows};
    };
    check_on_gpu(run, {random_tensor({40, 30}, 1, type), random_tensor({40, 30}, 2, type)}, 0);
  }
}

BOOST_AUTO_TEST_CASE(result_may_be_an_input) {
  for (int64_t n : {1, 17, 1300}) {
    for (DType type : kFloats) {
      auto run = [](const std::vector<Tensor>& in) {
        const Backend& table = backend(in[0].device());
        Tensor u = copy_of(in[0]), v = copy_of(in[1]), a = copy_of(in[0]), b = copy_of(in[0]);
        table.pointwise.binary_backward(BinaryOp::swiglu, u, v, in[2], u, v);
        table.pointwise.binary(BinaryOp::sub, a, in[1], a);
        table.pointwise.unary(UnaryOp::affine, 2, 1, b, b);
        return std::vector<Tensor>{u, v, a, b};
      };
      for (bool misaligned : {false, true}) check_on_gpu(run, inputs_of({n}, type), tolerance_of(type), misaligned);
    }
  }
}

BOOST_AUTO_TEST_CASE(limits_at_infinity) {
  for (DType type : kFloats) {
    const Tensor x = from_values({-INFINITY, INFINITY}, {2}).to(type).to(kGpu), g = full({2}, 1, type, kGpu);
    for (UnaryOp op : {UnaryOp::silu, UnaryOp::gelu_erf, UnaryOp::gelu_tanh}) {
      Tensor y = empty({2}, type, kGpu), dx = empty({2}, type, kGpu);
      backend(kGpu).pointwise.unary(op, 0, 0, x, y);
      backend(kGpu).pointwise.unary_backward(op, 0, 0, x, g, dx);
      BOOST_TEST(is_close(y.to_vector<double>(), {0, INFINITY}, 0));
      BOOST_TEST(is_close(dx.to_vector<double>(), {0, 1}, 0));
    }
  }
}

BOOST_AUTO_TEST_CASE(nan_stays_visible) {
  const Tensor x = from_values({NAN, 1, NAN, -INFINITY, -0.0, 2}, {6}).to(kGpu);
  const Tensor y = from_values({1, NAN, NAN, 3, 1, -2}, {6}).to(kGpu);
  const Backend& table = backend(kGpu);
  for (DType type : kFloats) {
    Tensor u = x.to(type), v = y.to(type), z = empty({6}, type, kGpu);
    for (UnaryOp op : {UnaryOp::relu, UnaryOp::exp, UnaryOp::tanh, UnaryOp::clamp, UnaryOp::abs}) {
      table.pointwise.unary(op, -1, 1, u, z);
      std::vector<double> got = z.to_vector<double>();
      BOOST_TEST((std::isnan(got[0]) && std::isnan(got[2]) && !std::isnan(got[3]) && !std::isnan(got[5])));
    }
    table.pointwise.binary(BinaryOp::maximum, u, v, z);
    std::vector<double> max = z.to_vector<double>();
    table.pointwise.binary(BinaryOp::minimum, u, v, z);
    std::vector<double> least = z.to_vector<double>();
    for (size_t i = 0; i < 3; ++i) BOOST_TEST((std::isnan(max[i]) && std::isnan(least[i])));
    BOOST_TEST((max[3] == 3 && least[3] == -INFINITY && max[5] == 2 && least[5] == -2));
  }
}

BOOST_AUTO_TEST_CASE(hiding_keys) {
  const std::vector<AttentionMask> rules{
      {}, {.window = 2}, {.window = 3, .offset = 40}, {.offset = -2}, {.causal = false}};
  for (const AttentionMask& rule : rules) {
    for (const Shape& shape : {Shape{2, 3, 5, 7}, Shape{1, 33, 64}, Shape{5, 1}, Shape{0, 4}}) {
      for (DType type : kFloats) {
        auto run = [&](const std::vector<Tensor>& in) {
          Tensor y = empty(shape, type, in[0].device()), in_place = copy_of(in[0]);
          Tensor transposed = in[0].transposed(), z = empty(transposed.shape(), type, in[0].device());
          const Backend& table = backend(in[0].device());
          table.pointwise.mask_scores(in[0], rule, -7, y);
          table.pointwise.mask_scores(in_place, rule, -7, in_place);
          table.pointwise.mask_scores(transposed, rule, -7, z);
          return std::vector<Tensor>{y, in_place, z};
        };
        Tensor x = random_tensor(shape, 1, type);
        check_on_gpu(run, {x}, 0);
      }
    }
  }
  Tensor hidden = full({3, 3}, NAN, DType::f32, kGpu);
  backend(kGpu).pointwise.mask_scores(hidden, {.offset = -5}, 0, hidden);
  BOOST_TEST(is_close(hidden.to_vector<double>(), std::vector<double>(9, 0), 0));
}

BOOST_AUTO_TEST_SUITE_END()
