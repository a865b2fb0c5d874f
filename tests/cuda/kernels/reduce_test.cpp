// Reductions on the GPU: every set of axes, layouts, long sums in pieces, NaN, the index of the largest.
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "tests/cuda/support.h"

using namespace braid;
using namespace braid::test;

namespace {

// Sums of random terms may come out near zero; in f32 both devices' errors are those of the terms.
double tolerance(DType t) { return t == DType::f32 ? 2e-5 : tolerance_of(t); }

Shape without(const Shape& shape, unsigned axes) {
  Shape out = shape;
  for (int a = 0; a < shape.rank(); ++a) {
    if (axes >> a & 1u) out[a] = 1;
  }
  return out;
}

Tensor reduced(ReduceOp op, const Tensor& x, unsigned axes, DType type) {
  Tensor y = empty(without(x.shape(), axes), type, x.device());
  backend(x.device()).reduce.axes(op, x, y);
  return y;
}

Tensor product_sum(const Tensor& x, const Tensor& z, unsigned axes) {
  Tensor y = empty(without(x.shape(), axes), x.dtype(), x.device());
  backend(x.device()).reduce.sum_product(x, z, y);
  return y;
}

Tensor squares(const std::vector<Tensor>& list, Device device) {
  Tensor y = empty({static_cast<int64_t>(list.size())}, DType::f64, device);
  backend(device).optimizer.sum_of_squares(list, y);
  return y;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cuda_reduce)

BOOST_AUTO_TEST_CASE(every_set_of_axes_and_every_layout) {
  const Shape shape{3, 5, 7, 16};
  using View = std::function<Tensor(const Tensor&)>;
  const std::vector<View> views{
      [](const Tensor& x) { return x; },
      [](const Tensor& x) { return x.transposed(2, 3); },
      [](const Tensor& x) {
        return x.permuted({3, 0, 2, 1});
      },
      [](const Tensor& x) { return x.sliced(3, 2, 15).sliced(1, 1, 4); },
      [](const Tensor& x) { return x.sliced(3, 8, 16); },
      [&](const Tensor& x) { return x.sliced(2, 0, 1).expanded(shape); },
      [&](const Tensor& x) { return x.sliced(3, 0, 1).sliced(0, 0, 1).expanded(shape); },
      [](const Tensor& x) {
        return x.reshaped({-1}).sliced(0, 0, 1).reshaped({1, 1, 1}).expanded({2, 3, 4});
      },
  };
  for (DType type : kFloats) {
    for (size_t v = 0; v < views.size(); ++v) {
      auto run = [&](const std::vector<Tensor>& in) {
        std::vector<Tensor> out;
        const Tensor x = views[v](in[0]);
        for (unsigned axes = 0; axes < 16; ++axes) {
          out.push_back(reduced(ReduceOp::sum, x, axes, type));
          out.push_back(reduced(axes % 2 == 0 ? ReduceOp::max : ReduceOp::min, x, axes, type));
        }
        if (type == DType::bf16 || type == DType::f16) out.push_back(reduced(ReduceOp::sum, x, 2, DType::f32));
        return out;
      };
      BOOST_TEST_CONTEXT("view " << v << " " << str(type)) {
        check_on_gpu(run, {random_tensor(shape, 1, type)}, tolerance(type), v % 2 == 1, 1);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(six_and_eight_axes_and_products) {
  const Shape shape{2, 3, 2, 4, 3, 8};
  for (DType type : kFloats) {
    for (unsigned fixed_x : {0u, 4u, 32u, 48u}) {  // each factor depends on some of the axes only
      for (unsigned fixed_z : {0u, 8u, 32u, 63u}) {
        auto run = [&](const std::vector<Tensor>& in) {
          std::vector<Tensor> out;
          const Tensor x = in[0].expanded(shape), z = in[1].expanded(shape), transposed = x.transposed(1, 5);
          for (unsigned axes : {0u, 4u, 8u, 32u, 36u, 42u, 63u}) {
            out.push_back(product_sum(x, z, axes));
            out.push_back(product_sum(transposed, z.transposed(1, 5), axes));
          }
          out.push_back(reduced(ReduceOp::sum, x.permuted({4, 2, 0, 5, 1, 3}), 0b101010, type));
          const Tensor eight = in[0].expanded(shape).contiguous().reshaped({2, 3, 2, 2, 2, 3, 4, 2});
          for (const unsigned axes : {0b10101010u, 0b01011001u, 0b10011110u})
            out.push_back(reduced(ReduceOp::sum, eight.permuted({1, 0, 3, 2, 6, 7, 4, 5}), axes, type));
          return out;
        };
        BOOST_TEST_CONTEXT(str(type) << " x without " << fixed_x << " z without " << fixed_z) {
          check_on_gpu(
              run, {random_tensor(without(shape, fixed_x), 1, type), random_tensor(without(shape, fixed_z), 2, type)},
              tolerance(type), fixed_x == 4, 2);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(ugly_sizes) {
  for (int64_t n : {0, 1, 31, 32, 33, 255, 1023, 1025}) {
    for (int64_t other : {0, 1, 3, 33}) {
      for (DType type : {DType::f32, DType::bf16}) {
        auto run = [&](const std::vector<Tensor>& in) {
          std::vector<Tensor> out;
          for (unsigned axes : {1u, 2u, 3u}) {
            for (ReduceOp op : {ReduceOp::sum, ReduceOp::max}) out.push_back(reduced(op, in[0], axes, type));
            out.push_back(product_sum(in[0], in[1].expanded(in[0].shape()), axes));
          }
          out.push_back(squares({in[0]}, in[0].device()));
          return out;
        };
        for (bool misaligned : {false, true}) {
          BOOST_TEST_CONTEXT(other << " x " << n << " " << str(type) << (misaligned ? " misaligned" : "")) {
            check_on_gpu(run, {random_tensor({other, n}, 1, type), random_tensor({n}, 2, type)}, tolerance(type),
                         misaligned, 1);
          }
        }
      }
    }
  }
}

// Few results of many terms: the terms are cut into pieces, and the order of the sum is still always the same.
BOOST_AUTO_TEST_CASE(long_sums_in_pieces) {
  auto run = [](const std::vector<Tensor>& in) {
    std::vector<Tensor> out;
    for (const Tensor& x : {in[0], in[0].transposed()}) {
      for (unsigned axes : {1u, 2u, 3u}) {
        out.push_back(reduced(ReduceOp::sum, x, axes, DType::f32));
        out.push_back(reduced(ReduceOp::min, x, axes, DType::f32));
      }
    }
    return out;
  };
  for (const Shape& shape : {Shape{20000, 8}, Shape{30001, 3}, Shape{1, 100000}}) {
    BOOST_TEST_CONTEXT(str(shape)) check_on_gpu(run, {random_tensor(shape, 1, DType::f32, 0, 1)}, 1e-6);
  }
  const Tensor x = full({300000}, 0.1, DType::f32, kGpu);
  BOOST_TEST(std::fabs(reduced(ReduceOp::sum, x, 1, DType::f32).item() / (300000 * double(0.1f)) - 1) < 1e-6);
  BOOST_TEST(std::fabs(squares({x}, kGpu).item() / (300000 * double(0.1f) * double(0.1f)) - 1) < 1e-13);
}

// More tensors than a launch takes, of all types, among them empty ones and none; sizes around chunks and vectors.
BOOST_AUTO_TEST_CASE(squares_of_many_tensors) {
  std::vector<Tensor> many;
  const int64_t sizes[] = {1, 0, 7, 33, 8192, 8193, 20000, 2};
  for (uint64_t i = 0; i < 70; ++i) many.push_back(random_tensor({sizes[i % (i < 8 ? 8 : 4)]}, i, DType::f32));
  for (DType type : kFloats) {
    for (int64_t n : sizes) many.push_back(random_tensor({n}, 100 + static_cast<uint64_t>(n), type));
  }
  auto run = [](const std::vector<Tensor>& in) {
    std::vector<Tensor> list = in;
    list.insert(list.begin() + 3, Tensor());
    return std::vector{squares(list, in[0].device())};
  };
  for (bool misaligned : {false, true}) check_on_gpu(run, many, 1e-12, misaligned);
  // The place in the list changes nothing.
  const Tensor alone = squares({many[4].to(kGpu)}, kGpu);
  std::vector<Tensor> there;
  for (const Tensor& x : many) there.push_back(x.to(kGpu));
  BOOST_TEST(same_bits(squares(there, kGpu).sliced(0, 4, 5), alone));
}

BOOST_AUTO_TEST_CASE(nan_reaches_the_result) {
  for (DType type : kFloats) {
    Tensor x = full({40, 48}, 1, type);
    x.sliced(0, 3, 4).sliced(1, 7, 8).fill(NAN);
    for (const Tensor& there : {x.to(kGpu), x.transposed().to(kGpu).transposed()}) {
      for (ReduceOp op : {ReduceOp::max, ReduceOp::min, ReduceOp::sum}) {
        const std::vector<double> rows = reduced(op, there, 2, type).to_vector<double>();
        const std::vector<double> columns = reduced(op, there, 1, type).to_vector<double>();
        BOOST_TEST((std::isnan(rows[3]) && !std::isnan(rows[4]) && std::isnan(columns[7]) && !std::isnan(columns[8])));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(argmax_takes_the_first_and_nan_is_largest) {
  auto index = [](const Tensor& x) {
    Shape shape = x.shape();
    Shape rows;
    for (int a = 0; a + 1 < shape.rank(); ++a) rows.push_back(shape[a]);
    Tensor i = empty(rows, DType::i64, x.device());
    backend(x.device()).order.argmax(x, i);
    return i;
  };
  for (int64_t n : {1, 2, 5, 31, 33, 700, 1025}) {
    for (DType type : kFloats) {
      auto run = [&](const std::vector<Tensor>& in) {
        return std::vector<Tensor>{index(in[0]), index(in[0].transposed(0, 2)),
                                   index(in[0].sliced(2, 0, 1).expanded(in[0].shape()))};
      };
      Tensor x = random_tensor({3, 2, n}, 1, DType::f32, 0, 4).to(DType::i32).to(type);  // many equal elements
      check_on_gpu(run, {x}, 0, n % 2 == 1);
      if (n > 4) {
        for (int64_t at : {n - 1, n / 2}) x.sliced(2, at, at + 1).fill(NAN);
        x.sliced(2, 0, 1).fill(INFINITY);
        check_on_gpu(run, {x}, 0);
        BOOST_TEST(index(x.to(kGpu)).to_vector<int64_t>()[0] == n / 2);
      }
      check_on_gpu(run, {full({3, 2, n}, -INFINITY, type)}, 0);
    }
  }
}

BOOST_AUTO_TEST_CASE(integers_over_every_set_of_axes) {
  for (DType type : {DType::i64, DType::i32, DType::u8}) {
    const Tensor x = random_ids({3, 5, 40}, 1, 0, 200).to(type);
    auto run = [=](const std::vector<Tensor>& in) {
      std::vector<Tensor> out;
      for (unsigned axes = 0; axes < 8; ++axes)
        for (const Tensor& v : {in[0], in[0].permuted({2, 0, 1})}) {
          for (ReduceOp op : {ReduceOp::sum, ReduceOp::prod}) out.push_back(reduced(op, v, axes, DType::i64));
          for (ReduceOp op : {ReduceOp::max, ReduceOp::min}) out.push_back(reduced(op, v, axes, type));
        }
      return out;
    };
    BOOST_TEST_CONTEXT(str(type)) check_on_gpu(run, {x}, 0);
  }
}

BOOST_AUTO_TEST_CASE(long_sums_of_integers_in_pieces) {
  auto run = [](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{reduced(ReduceOp::sum, in[0], 1, DType::i64),
                               reduced(ReduceOp::max, in[0], 1, in[0].dtype())};
  };
  check_on_gpu(run, {random_ids({100000}, 1, 0, 256).to(DType::u8)}, 0);
}

BOOST_AUTO_TEST_SUITE_END()
