// The bits of a row alone and in any company: random shapes, types, layouts, thread counts, every instruction set.
#include <boost/test/unit_test.hpp>
#include <random>

#include "braid/autograd/ops.h"
#include "braid/tensor/cpu/gemm/bf16.h"
#include "braid/tensor/cpu/row_invariant/variants.h"
#include "braid/tensor/row_invariant.h"
#include "tests/support/compare.h"
#include "tests/support/sanitizer.h"
#include "tests/tensor/cpu/support.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(row_invariant_products)

namespace rows = braid::cpu::row_invariant;

namespace {

constexpr DType kTypes[] = {DType::f32, DType::bf16, DType::f16, DType::f64};

struct Random {
  std::mt19937 engine{20};
  int64_t below(int64_t n) { return static_cast<int64_t>(engine() % static_cast<uint64_t>(n)); }
  bool coin() { return below(2) == 0; }
  template <size_t N>
  int64_t one_of(const int64_t (&list)[N]) {
    return list[below(N)];
  }
};

// Weights (n, k) whose rows are contiguous, apart from each other, or whose columns are.
enum class Layout : uint8_t { rows, apart, columns };
Tensor weights(int64_t n, int64_t k, Layout layout, uint64_t stream, DType type) {
  if (layout == Layout::columns) return random_tensor({k, n}, stream, type).transposed();
  if (layout == Layout::apart) return random_tensor({n, k + 3}, stream, type).sliced(1, 1, k + 1);
  return random_tensor({n, k}, stream, type);
}

// x (M, K) -> (M, N), `type` of the result.
struct Layer {
  Tensor w, bias;
  DType type;
  bool product = false;  // as a product with W^T instead of a linear layer

  Tensor operator()(const Tensor& x) const {
    const RowInvariantProducts scope;
    Tensor y = empty({x.dim(0), w.dim(0)}, type);
    y.fill(std::nan(""));  // what was there before must not matter
    if (product) {
      cpu_backend().matmul.product(x, w.transposed(), false, y);
    } else {
      cpu_backend().matmul.linear(x, w, bias, y);
    }
    return y;
  }
};

// Rows of x in this order, in one of two layouts.
Tensor take(const Tensor& x, const std::vector<int64_t>& order, bool transposed) {
  const Tensor y = index_select(x, from_vector(order, {static_cast<int64_t>(order.size())}));
  return transposed ? y.transposed().contiguous().transposed() : y;
}

void check_rows(const Layer& layer, const Tensor& x, Random& random) {
  const int64_t M = x.dim(0);
  const Tensor whole = layer(x);
  for (int trial = 0; trial < 4; ++trial) {
    std::vector<int64_t> order;  // the first trial: one row alone
    const int64_t count = trial == 0 ? 1 : 1 + random.below(std::min<int64_t>(M + 30, 60));
    for (int64_t i = 0; i < count; ++i) order.push_back(random.below(M));
    set_threads(static_cast<int>(1 + random.below(4)));
    const Tensor some = layer(take(x, order, random.coin()));
    const Tensor want = take(whole, order, false);
    BOOST_TEST(same_bits(some, want), "rows differ in a product of " << count << " rows");
  }
}

void check_values(const Layer& layer, const Tensor& x) {
  const Tensor wide = x.to(DType::f64), w = layer.w.contiguous().to(DType::f64);
  Tensor want = matmul(wide, transpose(w)), size = matmul(abs(wide), transpose(abs(w)));  // f64, outside of the scope
  if (layer.bias) want = want + layer.bias.to(DType::f64);
  const double depth = static_cast<double>(x.dim(1)), unit = layer.type == DType::f64 ? 0x1p-53 : 0x1p-24;
  const double rounding = layer.type == DType::bf16 ? 0x1p-8 : layer.type == DType::f16 ? 0x1p-11 : unit;
  const auto got = layer(x).to_vector<double>(), exact = want.to_vector<double>(), bound = size.to_vector<double>();
  for (size_t i = 0; i < got.size(); ++i) {
    const double allowed = (depth + 8) * unit * bound[i] + 2 * rounding * std::fabs(exact[i]) + 1e-300;
    BOOST_TEST(std::fabs(got[i] - exact[i]) <= allowed, "element " << i << ": " << got[i] << ", exact " << exact[i]);
  }
}

// Calls f for every instruction set of this processor, the last time with kernels of bf16 that are row-invariant by
// themselves, where it has them.
template <class F>
void with_every_variant(F f) {
  cpu::use_bf16_variant("f32");
  for (const rows::Kernels* kernels : rows::variants()) {
    BOOST_TEST_CONTEXT(kernels->name) {
      BOOST_TEST_REQUIRE(rows::use_variant(kernels->name));
      f();
    }
  }
  rows::use_variant("");
  cpu::use_bf16_variant("");
  if (cpu::bf16_kernels().multiply_few) f();
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_row_has_the_same_bits_alone_and_in_any_company) {
  const int before = threads(), count = less_under_tsan(160, 40);
  with_every_variant([&] {
    Random random;
    for (int i = 0; i < count; ++i) {
      const int64_t M = random.one_of({1, 2, 3, 4, 5, 7, 13, 16, 24, 25, 33, 47, 63, 97, 130, 270});
      const int64_t N = random.one_of({1, 2, 3, 4, 5, 16, 31, 48, 64, 65, 100, 130});
      const int64_t K = random.one_of({0, 1, 3, 8, 16, 17, 48, 100, 129, 256, 257, 700, 2100, 7000});
      const DType type = kTypes[random.below(4)];
      const Layout layout = static_cast<Layout>(random.below(3));
      const bool f32_result = type != DType::f64 && random.coin(), biased = random.coin();
      const auto stream = static_cast<uint64_t>(4 * i);
      Layer layer{weights(N, K, layout, stream, type), biased ? random_tensor({N}, stream + 1, type) : Tensor(),
                  f32_result ? DType::f32 : type, !biased && random.coin()};
      BOOST_TEST_CONTEXT(M << " x " << K << " -> " << N << " " << str(type) << " layout " << static_cast<int>(layout)
                           << (biased ? " bias" : "")) {
        const Tensor x = random_tensor({M, K}, stream + 2, type);
        check_rows(layer, x, random);
        check_values(layer, x);
      }
    }
    set_threads(before);
  });
}

BOOST_AUTO_TEST_CASE(batches_of_products_and_broadcast_weights) {
  with_every_variant([] {
    for (const DType type : kTypes) {
      const Tensor x = random_tensor({3, 2, 29, 40}, 1, type), z = random_tensor({2, 40, 36}, 2, type);
      const RowInvariantProducts scope;
      const Tensor whole = matmul(x, z), keys = matmul(x, transpose(random_tensor({3, 2, 50, 40}, 3, type)));
      const Tensor scores = matmul(x.sliced(2, 4, 5), transpose(random_tensor({3, 2, 50, 40}, 3, type)));
      for (int64_t b = 0; b < 3; ++b) {
        BOOST_TEST(
            same_bits(matmul(x.sliced(0, b, b + 1).sliced(2, 7, 8), z), whole.sliced(0, b, b + 1).sliced(2, 7, 8)));
      }
      BOOST_TEST(same_bits(scores, keys.sliced(2, 4, 5)));
    }
  });
}

BOOST_AUTO_TEST_CASE(adds_to_what_is_there) {
  for (const DType type : kTypes) {
    const Tensor x = random_tensor({30, 70}, 1, type), w = random_tensor({40, 70}, 2, type);
    const auto added = [&](int64_t begin, int64_t end) {
      const RowInvariantProducts scope;
      Tensor y = empty({end - begin, 40}, type);
      y.fill(1);
      cpu_backend().matmul.product(x.sliced(0, begin, end), w.transposed(), true, y);
      return y;
    };
    const Tensor whole = added(0, 30);
    for (int64_t r = 0; r < 30; ++r) BOOST_TEST(same_bits(added(r, r + 1), whole.sliced(0, r, r + 1)));
    const Tensor want = matmul(x.to(DType::f64), transpose(w.to(DType::f64))) + 1;
    BOOST_TEST(is_close(whole.to_vector<double>(), want.to_vector<double>(),
                        type == DType::f64   ? 1e-14
                        : type == DType::f32 ? 1e-6
                                             : 0x1p-8));
  }
}

// Every value of a 16-bit type, multiplied by 1. The instruction for pairs of bf16 takes numbers below the smallest
// normal one for zero.
BOOST_AUTO_TEST_CASE(sixteen_bit_values_are_converted_exactly) {
  with_every_variant([] {
    for (const DType type : {DType::bf16, DType::f16}) {
      Tensor w = empty({65536, 1}, type);
      auto* bits = static_cast<uint16_t*>(w.mutable_raw());
      for (int i = 0; i < 65536; ++i) bits[i] = static_cast<uint16_t>(i);
      const Tensor one = ones({1, 1}, type);
      const auto got = Layer{w, {}, DType::f32}(one).to_vector<double>(), want = w.to_vector<double>();
      const bool pairs = type == DType::bf16 &&
                         (rows::kernels().name == std::string("avx512_bf16") || cpu::bf16_kernels().multiply_few);
      size_t different = 0;
      for (size_t i = 0; i < got.size(); ++i) {
        const double expected = pairs && std::fabs(want[i]) < 0x1p-126 ? 0.0 : want[i];
        different += std::isnan(expected) ? !std::isnan(got[i]) : got[i] != expected;
      }
      BOOST_TEST(different == 0U);
    }
  });
}

// Rows of infinities and NaN beside a row leave it alone.
BOOST_AUTO_TEST_CASE(what_is_not_finite_stays_in_its_row) {
  with_every_variant([] {
    Tensor x = random_tensor({9, 37}, 1), w = random_tensor({10, 37}, 2);
    const Tensor clean = Layer{w, {}, DType::f32}(x.sliced(0, 4, 5));
    x.sliced(0, 3, 4).fill(std::nan(""));
    x.sliced(0, 5, 6).fill(INFINITY);
    const Tensor y = Layer{w, {}, DType::f32}(x);
    BOOST_TEST(same_bits(y.sliced(0, 4, 5), clean));
    for (double v : y.sliced(0, 3, 4).to_vector<double>()) BOOST_TEST(std::isnan(v));
  });
}

BOOST_AUTO_TEST_SUITE_END()
