// Copies on the GPU: types, layouts, tiles, words of every width, and fills.
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "tests/cuda/support.h"

using namespace braid;
using namespace braid::test;

namespace {

const DType kTypes[] = {DType::f64, DType::f32, DType::bf16, DType::f16, DType::i64, DType::i32, DType::u8};

Tensor copied(const Tensor& x, DType type) {
  Tensor y = empty(x.shape(), type, x.device());
  backend(x.device()).copy.strided(x, y);
  return y;
}

// Equal values, and NaN where the other has NaN: its bits may differ between devices.
bool same_values(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  bool same = x.size() == y.size();
  for (size_t i = 0; same && i < x.size(); ++i) {
    same = x[i] == y[i] ? std::signbit(x[i]) == std::signbit(y[i]) : x[i] != x[i] && y[i] != y[i];
  }
  return same;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cuda_copy)

BOOST_AUTO_TEST_CASE(between_all_types) {
  std::vector<double> values{1.9, -1.9, 300, -5, 1e30, -1e30, NAN, INFINITY, -INFINITY, -0.0, 0.5, 65504, 1e-8, 255};
  for (int i = 0; i < 1100; ++i) values.push_back(i * 0.37 - 200);
  const Tensor x = from_vector(values, {static_cast<int64_t>(values.size())});
  for (DType from : kTypes) {
    const Tensor here = x.to(from), there = here.to(kGpu);
    for (DType to : kTypes) {
      in_each_order([&] {
        BOOST_TEST_CONTEXT(str(from) << " to " << str(to)) BOOST_TEST(same_values(copied(there, to), copied(here, to)));
      });
    }
  }
}

BOOST_AUTO_TEST_CASE(between_all_layouts) {
  using View = std::function<Tensor(const Tensor&)>;
  const std::vector<View> views{
      [](const Tensor& x) { return x; },
      [](const Tensor& x) { return x.transposed(1, 2); },
      [](const Tensor& x) { return x.transposed(0, 3); },
      [](const Tensor& x) { return x.transposed(2, 3).sliced(1, 3, 21); },
      [](const Tensor& x) { return x.sliced(3, 1, 2); },
      [](const Tensor& x) { return x.sliced(3, 4, 8).transposed(1, 2); },
      [](const Tensor& x) { return x.sliced(3, 2, 5); },
      [](const Tensor& x) {
        return x.permuted({3, 2, 1, 0});
      },
      [](const Tensor& x) {
        return x.permuted({2, 0, 3, 1});
      },
      [](const Tensor& x) { return x.sliced(0, 0, 1).expanded(x.shape()); },
      [](const Tensor& x) { return x.sliced(3, 0, 1).expanded(x.shape()); },
      [](const Tensor& x) { return x.reshaped({-1}).sliced(0, 1, 3000); },
      [](const Tensor& x) {
        return x.reshaped({2, 1, 22, 1, 19, 8}).permuted({4, 1, 0, 5, 3, 2});
      },
      [](const Tensor& x) {
        return x.reshaped({2, 2, 11, 19, 1, 2, 2, 2}).permuted({7, 2, 5, 0, 4, 6, 1, 3});
      },
      [](const Tensor& x) { return x.sliced(1, 0, 0); },
      [](const Tensor& x) { return x.reshaped({-1}).sliced(0, 5, 6).reshaped({}); },
      [](const Tensor& x) {
        return x.reshaped({-1}).sliced(0, 0, 66 * 100).reshaped({66, 100}).transposed();
      },
  };
  const Tensor base = random_tensor({2, 22, 19, 8}, 1, DType::f64, -100, 100);
  for (size_t v = 0; v < views.size(); ++v) {
    for (DType type : {DType::f64, DType::f32, DType::bf16, DType::u8}) {  // one of each width
      auto run = [&](const std::vector<Tensor>& in) {
        Tensor x = views[v](in[0]);
        std::vector<Tensor> out{copied(x, type)};
        for (DType to : {type, DType::f32, DType::bf16}) {  // into a layout of its own
          Shape reversed;
          for (int a = x.rank() - 1; a >= 0; --a) reversed.push_back(x.dim(a));
          Tensor y = out.emplace_back(empty(reversed, to, x.device()));
          for (int a = 0; a < x.rank() / 2; ++a) y = y.transposed(a, x.rank() - 1 - a);
          backend(x.device()).copy.strided(x, y);
        }
        return out;
      };
      for (bool misaligned : {false, true}) {
        BOOST_TEST_CONTEXT("view " << v << " " << str(type) << (misaligned ? " misaligned" : "")) {
          check_on_gpu(run, {base.to(type)}, 0, misaligned);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(dense_copies_of_ugly_sizes) {
  for (DType type : {DType::u8, DType::bf16, DType::f32, DType::i64}) {
    for (int64_t n : {0, 1, 15, 16, 17, 1023, 1025, 16385}) {
      for (int64_t begin : {0, 1, 3}) {
        Tensor x = random_tensor({n + 3}, 1, DType::f32, 0, 200).to(type), gpu_x = x.to(kGpu);
        Tensor y = full({n + 5}, 7, type), gpu_y = y.to(kGpu), part = y.sliced(0, 2, n + 2);
        Tensor gpu_part = gpu_y.sliced(0, 2, n + 2);
        backend(kCpu).copy.strided(x.sliced(0, begin, begin + n), part);
        backend(kGpu).copy.strided(gpu_x.sliced(0, begin, begin + n), gpu_part);
        BOOST_TEST_CONTEXT(n << " " << str(type) << " from " << begin) BOOST_TEST(same_bits(gpu_y, y));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(copies_leave_the_surroundings_alone) {
  for (DType type : {DType::u8, DType::f16, DType::f32, DType::f64}) {
    auto run = [&](const std::vector<Tensor>& in) {
      std::vector<Tensor> out;
      for (DType from : {type, DType::i32}) {
        Tensor y = out.emplace_back(in[1].clone()), inside = y.sliced(1, 3, 36).sliced(0, 1, 12);
        backend(y.device()).copy.strided(in[0].to(from).transposed(), inside);
      }
      return out;
    };
    check_on_gpu(run, {random_tensor({33, 11}, 2, DType::f32, 0, 100).to(type), full({14, 40}, 5, type)}, 0);
  }
}

BOOST_AUTO_TEST_CASE(integers_never_go_through_a_floating_type) {
  const std::vector<int64_t> values{int64_t{1} << 62, (int64_t{1} << 53) + 1, -((int64_t{1} << 61) + 3),
                                    (int64_t{1} << 60) + (int64_t{1} << 36) + 1};
  Tensor x = from_vector(values, {4}).to(kGpu);
  BOOST_TEST((x.clone().to_vector<int64_t>() == values));
  BOOST_TEST((x.expanded({2, 4}).clone().sliced(0, 1, 2).reshaped({4}).to_vector<int64_t>() == values));
  for (DType to : kTypes) BOOST_TEST(same_values(copied(x, to), copied(x.to(kCpu), to)));
}

BOOST_AUTO_TEST_CASE(filling) {
  for (DType type : kTypes) {
    for (double value : {7.0, -2.5, 1e40}) {
      auto run = [&](const std::vector<Tensor>& in) {
        const Backend& table = backend(in[0].device());
        Tensor column = in[0].clone(), block = in[0].clone(), whole = in[0].clone(),
               scalar = empty({}, type, in[0].device());
        Tensor part = column.sliced(1, 1, 2), inside = block.sliced(1, 8, 24).sliced(0, 3, 50),
               none = block.sliced(0, 4, 4);
        table.copy.fill(value, part);
        table.copy.fill(value, inside);
        table.copy.fill(value + 1, none);
        table.copy.fill(value, whole);
        table.copy.fill(value, scalar);
        return std::vector<Tensor>{column, block, whole, scalar};
      };
      for (bool misaligned : {false, true}) {
        BOOST_TEST_CONTEXT(str(type) << " " << value) check_on_gpu(run, {full({61, 37}, 3, type)}, 0, misaligned);
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
