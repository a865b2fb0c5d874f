// Products of bf16 on the CPU: every instruction set beside f64, beside naive sums in f32, and bits that depend on
// neither tiles nor threads.
#include "braid/tensor/cpu/gemm/bf16.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <random>

#include "braid/autograd/ops.h"
#include "braid/tensor/base/processor.h"
#include "tests/support/sanitizer.h"
#include "tests/tensor/cpu/support.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(bf16_products)

namespace {

// Calls f for every instruction set of this processor, and for products in f32.
template <class F>
void with_every_variant(F f) {
  for (const cpu::Bf16Kernels* kernels : cpu::bf16_variants()) {
    BOOST_TEST_CONTEXT(kernels->name) {
      BOOST_TEST_REQUIRE(cpu::use_bf16_variant(kernels->name));
      f();
    }
  }
  cpu::use_bf16_variant("");
}

// How a matrix lies in memory: row by row, the same inside longer rows, column by column, and with no axis contiguous.
enum class Layout : uint8_t { rows, apart, columns, neither };
Tensor matrix(int64_t rows, int64_t columns, Layout layout, uint64_t stream) {
  const DType t = DType::bf16;
  if (layout == Layout::columns) return random_tensor({columns, rows}, stream, t).transposed();
  if (layout == Layout::apart) return random_tensor({rows, columns + 3}, stream, t).sliced(1, 1, columns + 1);
  if (layout == Layout::neither) return random_tensor({rows, columns, 2}, stream, t).sliced(2, 1, 2).squeezed(2);
  return random_tensor({rows, columns}, stream, t);
}

// Largest error of y = x z (+ start) relative to the size of a sum's terms, without the final rounding to y's type.
// naive: that of one sum after the other in f32.
struct Errors {
  double own = 0, naive = 0;
};
Errors errors(const Tensor& x, const Tensor& z, const Tensor& start, const Tensor& y) {
  const int64_t m = x.dim(0), k = x.dim(1), n = z.dim(1);
  const std::vector<double> a = x.to_vector<double>(), b = z.to_vector<double>(), got = y.to_vector<double>();
  const std::vector<double> c = start.to_vector<double>();
  const double rounding = y.dtype() == DType::bf16 ? 0x1p-8 : 0x1p-24;
  Errors worst;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const auto at = static_cast<size_t>(i * n + j);
      double exact = 0, size = 1e-30;
      float naive = 0;
      for (int64_t p = 0; p < k; ++p) {
        const double term = a[static_cast<size_t>(i * k + p)] * b[static_cast<size_t>(p * n + j)];
        exact += term;
        size += std::fabs(term);
        naive += static_cast<float>(term);
      }
      worst.naive = std::max(worst.naive, std::fabs(naive - exact) / size);
      exact += c[at];
      size += std::fabs(c[at]);
      worst.own = std::max(worst.own, (std::fabs(got[at] - exact) - rounding * std::fabs(exact)) / size);
    }
  }
  return worst;
}

Tensor product(const Tensor& x, const Tensor& z, DType type) {
  Tensor y = full({x.dim(0), z.dim(1)}, std::nan(""), type);
  cpu_backend().matmul.product(x, z, false, y);
  return y;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_shape_and_layout_is_as_exact_as_naive_sums) {
  with_every_variant([] {
    std::mt19937 engine(18);
    const auto one_of = [&](std::initializer_list<int64_t> list) { return list.begin()[engine() % list.size()]; };
    const int before = threads(), count = less_under_tsan(120, 30);
    for (int trial = 0; trial < count; ++trial) {
      const int64_t m = one_of({1, 2, 8, 9, 13, 14, 15, 29, 65, 200, 350}),
                    n = one_of({1, 3, 15, 16, 17, 31, 33, 100, 260}),
                    k = one_of({1, 2, 3, 15, 31, 32, 33, 64, 127, 256, 257, 384, 385, 500, 768, 769, 1024, 1025, 1153});
      const auto x_layout = static_cast<Layout>(engine() % 4), z_layout = static_cast<Layout>(engine() % 4);
      const auto stream = static_cast<uint64_t>(3 * trial);
      const Tensor x = matrix(m, k, x_layout, stream), z = matrix(k, n, z_layout, stream + 1);
      const DType type = engine() % 2 == 0 ? DType::bf16 : DType::f32;
      set_threads(static_cast<int>(1 + engine() % 3));
      BOOST_TEST_CONTEXT(m << " x " << k << " by " << k << " x " << n << ", layouts " << static_cast<int>(x_layout)
                           << " and " << static_cast<int>(z_layout) << ", " << str(type)) {
        const Errors plain = errors(x, z, zeros({m, n}), product(x, z, type));
        BOOST_TEST(plain.own <= 2 * plain.naive + 0x1p-23);
        Tensor start = random_tensor({m, n}, stream + 2, type), y = start.clone();
        cpu_backend().matmul.product(x, z, true, y);
        const Errors added = errors(x, z, start, y);
        BOOST_TEST(added.own <= 2 * added.naive + 0x1p-23);
        const Tensor w = z.transposed().contiguous(), bias = random_tensor({n}, stream + 2, DType::bf16);
        y = full({m, n}, std::nan(""), DType::bf16);
        cpu_backend().matmul.linear(x, w, bias, y);
        const Errors biased = errors(x, z, bias.expanded({m, n}).to(DType::f64), y);
        BOOST_TEST(biased.own <= 2 * biased.naive + 0x1p-23);
      }
    }
    set_threads(before);
  });
}

// Columns of more words than tiles share are packed by every thread: a few at a time, whatever the depth.
BOOST_AUTO_TEST_CASE(no_thread_packs_all_columns_of_a_wide_matrix) {
  BOOST_TEST(cpu::bf16_own_columns(1, 5041, 87381, 384) == 0);
  for (const int64_t k : {384, 768, 1536})
    BOOST_TEST(cpu::bf16_own_columns(1, 5041, 128256, k) <= 16 * cpu::kBf16Columns, "depth " << k);
  BOOST_TEST(cpu::bf16_own_columns(2, 5041, 128256, 384) <= 16 * cpu::kBf16Columns);
  BOOST_TEST(cpu::bf16_own_columns(1, 8, 128256, 384) <= 16 * cpu::kBf16Columns);  // one tile of rows
}

BOOST_AUTO_TEST_CASE(batches) {
  with_every_variant([] {
    const Tensor x = random_tensor({3, 4, 37, 45}, 1, DType::bf16);
    const Tensor z = random_tensor({3, 45, 4, 50}, 2, DType::bf16).transposed(1, 2);
    Tensor y = full({3, 4, 37, 50}, std::nan(""), DType::f32);
    cpu_backend().matmul.product(x, z, false, y);
    for (int64_t i = 0; i < 12; ++i) {
      const auto one = [&](const Tensor& t) { return t.sliced(0, i / 4, i / 4 + 1).sliced(1, i % 4, i % 4 + 1); };
      const Tensor a = one(x).squeezed(0).squeezed(0), b = one(z).squeezed(0).squeezed(0);
      const Errors e = errors(a, b, zeros({37, 50}), one(y).squeezed(0).squeezed(0));
      BOOST_TEST(e.own <= 2 * e.naive + 0x1p-23);
    }
  });
}

BOOST_AUTO_TEST_CASE(same_bits_at_any_thread_count_and_in_any_tile) {
  for (const DType type : {DType::bf16, DType::f32}) {
    for (const Layout layout : {Layout::rows, Layout::columns}) {
      const Tensor x = matrix(700, 800, layout, 1), z = matrix(800, 610, layout, 2);
      BOOST_TEST(same_at_any_thread_count([&] { return product(x, z, type); }));
      if (!cpu::bf16_kernels().multiply) continue;
      // A part of the product has the bits of the whole, wherever the tiles end.
      const Tensor whole = product(x, z, type);
      const Tensor part = product(x.sliced(0, 331, 360), z.sliced(1, 500, 523), type);
      BOOST_TEST(same_bits(part, whole.sliced(0, 331, 360).sliced(1, 500, 523)));
    }
  }
}

// A few rows are multiplied without a packed copy of W: the same bits.
BOOST_AUTO_TEST_CASE(few_rows_have_the_bits_of_many) {
  if (!cpu::bf16_kernels().multiply_few) {
    BOOST_TEST_MESSAGE("left out: these kernels have one form");
    return;
  }
  // The last of tiny values, whose products are subnormal: zero in both.
  for (const int64_t k : {31, 64, 257, 512, 1100, 65}) {
    const double size = k == 65 ? 0x1p-63 : 1;
    const Tensor x = scale(random_tensor({300, k}, 1, DType::bf16), size).to(DType::bf16);
    const Tensor w = scale(random_tensor({83, k + 5}, 2, DType::bf16), size).to(DType::bf16);
    const Tensor z = w.sliced(1, 2, k + 2).transposed();
    const Tensor bias = random_tensor({83}, 3, DType::bf16);
    for (const DType type : {DType::bf16, DType::f32}) {
      const Tensor many = product(x, z, type);
      for (const auto& [first, last] : {std::pair<int64_t, int64_t>{0, 1}, {7, 24}, {100, 131}, {40, 73}, {30, 280}}) {
        BOOST_TEST(same_bits(product(x.sliced(0, first, last), z, type), many.sliced(0, first, last)));
        // Columns of W that are contiguous are packed for any number of rows.
        const Tensor packed = z.contiguous();
        BOOST_TEST(same_bits(product(x.sliced(0, first, last), packed, type), many.sliced(0, first, last)));
      }
    }
  }
}

// Each value of a product of one term: infinities and NaN included. The instructions take numbers below 2^-126 for
// zero.
BOOST_AUTO_TEST_CASE(all_values) {
  with_every_variant([] {
    Tensor x = empty({65536, 1}, DType::bf16);
    auto* bits = static_cast<uint16_t*>(x.mutable_raw());
    for (int i = 0; i < 65536; ++i) bits[i] = static_cast<uint16_t>(i);
    const std::vector<double> want = x.to_vector<double>();
    const bool flushed = cpu::bf16_kernels().multiply;
    for (const DType type : {DType::bf16, DType::f32}) {
      const std::vector<double> got = product(x, ones({1, 1}, DType::bf16), type).to_vector<double>();
      size_t different = 0;
      for (size_t i = 0; i < got.size(); ++i) {
        const double expected = flushed && std::fabs(want[i]) < 0x1p-126 ? 0.0 : want[i];
        different += std::isnan(expected) ? !std::isnan(got[i]) : got[i] != expected;
      }
      BOOST_TEST(different == 0U);
    }
  });
}

BOOST_AUTO_TEST_CASE(variants_are_known_by_name) {
  const auto variants = cpu::bf16_variants();
  BOOST_TEST(variants.size() == (detail::has_amx() ? 3U : detail::has_avx512_bf16() ? 2U : 1U));
  const auto* first = detail::has_amx() ? "amx" : detail::prefers_avx512_bf16() ? "avx512_bf16" : "f32";
  BOOST_TEST(variants.front()->name == std::string(first));
  BOOST_TEST(!cpu::use_bf16_variant("abacus"));
  BOOST_TEST(cpu::use_bf16_variant("f32"));
  BOOST_TEST(!cpu::bf16_kernels().multiply);
  BOOST_TEST(cpu::use_bf16_variant(""));
  BOOST_TEST(&cpu::bf16_kernels() == cpu::bf16_variants().front());
}

BOOST_AUTO_TEST_SUITE_END()
