#include <array>
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "braid/autograd/ops.h"
#include "braid/tensor/kernels/backend.h"
#include "braid/tensor/parallel.h"
#include "tests/support/compare.h"
#include "tests/support/random.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(matmul_kernel)

namespace {

// y = x z for rank-4 operands of any strides, element by element, summed in T.
template <class T>
std::vector<double> loops(const Tensor& x, const Tensor& z) {
  std::vector<double> a = x.to_vector<double>(), b = z.to_vector<double>(), y;
  int64_t m = x.dim(2), k = x.dim(3), n = z.dim(3);
  for (int64_t batch = 0; batch < x.dim(0) * x.dim(1); ++batch) {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        T sum = 0;
        for (int64_t l = 0; l < k; ++l) {
          sum += static_cast<T>(a[static_cast<size_t>((batch * m + i) * k + l)]) *
                 static_cast<T>(b[static_cast<size_t>((batch * k + l) * n + j)]);
        }
        y.push_back(sum);
      }
    }
  }
  return y;
}

// f32: an error of 1e-6, or of twice that of plain loops where they have more.
double tolerance_of(const Tensor& x, const Tensor& z, const std::vector<double>& want) {
  if (x.dtype() != DType::f32) return x.dtype() == DType::f64 ? 1e-14 : 0x1p-8;
  const std::vector<double> plain = loops<float>(x, z);
  double worst = 0, largest = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    worst = std::fmax(worst, std::fabs(plain[i] - want[i]));
    largest = std::fmax(largest, std::fabs(want[i]));
  }
  return largest > 0 ? std::fmax(1e-6, 2 * worst / largest) : 1e-6;
}

void check_product(const Tensor& x, const Tensor& z, const char* what) {
  BOOST_TEST_CONTEXT(what << " " << str(x.dtype()) << " strides " << str(x.strides()) << " x " << str(z.strides())) {
    Tensor y = empty({x.dim(0), x.dim(1), x.dim(2), z.dim(3)}, x.dtype());
    std::vector<double> want = loops<double>(x, z);
    const double tolerance = tolerance_of(x, z, want);
    y.fill(std::nan(""));  // what was there before must not matter
    cpu_backend().matmul.product(x, z, false, y);
    BOOST_TEST(is_close(y.to_vector<double>(), want, tolerance));
    y.fill(1);
    for (double& v : want) v += 1;
    cpu_backend().matmul.product(x, z, true, y);
    BOOST_TEST(is_close(y.to_vector<double>(), want, tolerance));
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_layout_of_the_operands) {
  for (DType t : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    // x (2, 3, 5, 4) and z (2, 3, 4, 6) in many guises.
    Tensor x = random_tensor({2, 3, 5, 4}, 1, t), z = random_tensor({2, 3, 4, 6}, 2, t);
    std::vector<Tensor> xs{x,
                           random_tensor({2, 3, 4, 5}, 1, t).transposed(),            // matrices transposed
                           random_tensor({2, 5, 3, 4}, 1, t).transposed(1, 2),        // (B, T, N, d) -> (B, N, T, d)
                           random_tensor({5, 2, 3, 4}, 1, t).permuted({1, 2, 0, 3}),  // rows outermost
                           random_tensor({4, 3, 2, 5}, 1, t).permuted({2, 1, 3, 0}),  // all axes permuted
                           random_tensor({2, 3, 5, 9}, 1, t).sliced(3, 2, 6),         // a leading dimension of its own
                           random_tensor({3, 5, 4}, 1, t).expanded({2, 3, 5, 4}),     // repeated over the outer axis
                           random_tensor({2, 1, 5, 4}, 1, t).expanded({2, 3, 5, 4}),  // ... over the inner axis
                           random_tensor({2, 3, 1, 4}, 1, t).expanded({2, 3, 5, 4}),  // equal rows: GEMM cannot read it
                           random_tensor({2, 3, 5, 1}, 1, t).expanded({2, 3, 5, 4}),  // equal columns
                           random_tensor({2, 3, 5, 4, 2}, 1, t).sliced(4, 1, 2).squeezed(4)};  // no unit stride
    std::vector<Tensor> zs{z,
                           random_tensor({2, 3, 6, 4}, 2, t).transposed(),
                           random_tensor({2, 4, 3, 6}, 2, t).transposed(1, 2),
                           random_tensor({4, 6}, 2, t).expanded({2, 3, 4, 6}),  // one matrix for all
                           random_tensor({6, 4}, 2, t).transposed().expanded({2, 3, 4, 6}),
                           random_tensor({2, 1, 4, 6}, 2, t).expanded({2, 3, 4, 6}),
                           random_tensor({2, 3, 4, 1}, 2, t).expanded({2, 3, 4, 6}),
                           random_tensor({2, 3, 4, 6, 2}, 2, t).sliced(4, 0, 1).squeezed(4)};
    for (const Tensor& a : xs) {
      for (const Tensor& b : zs) check_product(a, b, "layouts");
    }
  }
}

BOOST_AUTO_TEST_CASE(vectors_and_single_columns) {
  for (DType t : {DType::f64, DType::f32, DType::bf16}) {
    Tensor one_row = random_tensor({2, 3, 1, 7}, 1, t), z = random_tensor({7, 4}, 2, t).expanded({2, 3, 7, 4});
    check_product(one_row, z, "rows of one vector become a matrix");
    check_product(random_tensor({3, 2, 1, 7}, 1, t).transposed(0, 1), z, "rows of one vector, strided");
    check_product(random_tensor({7}, 1, t).expanded({2, 3, 1, 7}), z, "the same row again and again");
    check_product(random_tensor({2, 3, 5, 7}, 1, t), random_tensor({2, 3, 7, 1}, 2, t), "one column");
    check_product(random_tensor({2, 3, 5, 1}, 1, t), random_tensor({2, 3, 1, 4}, 2, t), "inner size one");
    check_product(random_tensor({2, 3, 1, 1}, 1, t), random_tensor({1}, 2, t).expanded({2, 3, 1, 1}), "scalars");
  }
}

BOOST_AUTO_TEST_CASE(panels_of_16_bit_products) {
  // Sizes beyond one panel of rows, of columns, and with an inner size so long that panels become narrow.
  check_product(random_tensor({1, 1, 2100, 3}, 1, DType::bf16), random_tensor({1, 1, 3, 5}, 2, DType::bf16),
                "many rows");
  check_product(random_tensor({1, 1, 3, 2}, 1, DType::f16), random_tensor({1, 1, 2, 4100}, 2, DType::f16),
                "many columns");
  Tensor tall = random_tensor({1, 1, 66, 70000}, 1, DType::bf16),
         wide = random_tensor({1, 1, 70000, 66}, 2, DType::bf16);
  check_product(tall, wide.sliced(3, 0, 2), "long inner axis, several panels of rows");
  check_product(tall.sliced(2, 0, 2), wide, "long inner axis, several panels of columns");
  check_product(wide.transposed(), tall.sliced(2, 0, 2).transposed(), "long inner axis, transposed");
  check_product(random_tensor({40, 30, 40, 3}, 1, DType::bf16), random_tensor({40, 30, 3, 100}, 2, DType::bf16),
                "several groups");
}

BOOST_AUTO_TEST_CASE(large_products_of_every_type_and_order) {  // several slices of depth, tiles of rows, edges
  for (DType t : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    const Tensor x = random_tensor({1, 2, 130, 900}, 1, t), z = random_tensor({1, 2, 900, 101}, 2, t);
    const Tensor xt = random_tensor({1, 2, 900, 130}, 3, t).transposed(),
                 zt = random_tensor({1, 2, 101, 900}, 4, t).transposed();
    check_product(x, z, "as stored");
    check_product(xt, z, "x transposed");
    check_product(x, zt, "z transposed");
    check_product(xt, zt, "both transposed");

    const Tensor rows = random_tensor({150, 500}, 5, t), weight = random_tensor({140, 500}, 6, t),
                 bias = random_tensor({140}, 7, t);
    Tensor y = empty({150, 140}, t);
    y.fill(std::nan(""));
    cpu_backend().matmul.linear(rows, weight, bias, y);
    const std::vector<double> a = rows.to_vector<double>(), w = weight.to_vector<double>(),
                              b = bias.to_vector<double>();
    std::vector<double> want;
    for (size_t i = 0; i < 150; ++i) {
      for (size_t j = 0; j < 140; ++j) {
        double sum = b[j];
        for (size_t l = 0; l < 500; ++l) sum += a[i * 500 + l] * w[j * 500 + l];
        want.push_back(sum);
      }
    }
    BOOST_TEST(is_close(y.to_vector<double>(), want,
                        t == DType::f64   ? 1e-14
                        : t == DType::f32 ? 2e-6
                                          : 0x1p-8),
               str(t));
  }
}

// A kernel may copy z into rows first.
BOOST_AUTO_TEST_CASE(many_rows_by_a_transposed_matrix) {
  for (const int64_t n : {128, 130, 257}) {  // 128: rows that lie a power of two apart
    const Tensor w = random_tensor({n + 1, 131}, 2).to(DType::f32), z = w.sliced(0, 1, n + 1).transposed();
    check_product(random_tensor({1, 1, 512, 131}, 1, DType::f32), z.expanded({1, 1, 131, n}), "one sample");
    check_product(random_tensor({1, 2, 300, 131}, 1, DType::f32), z.expanded({1, 2, 131, n}), "two samples");
  }
}

BOOST_AUTO_TEST_CASE(more_columns_of_16_bits_than_are_packed_at_once) {
  check_product(random_tensor({1, 1, 100, 2100}, 1, DType::bf16), random_tensor({1, 1, 2100, 1100}, 2, DType::bf16),
                "as stored");
  check_product(random_tensor({1, 1, 100, 2100}, 1, DType::bf16),
                random_tensor({1, 1, 1100, 2100}, 2, DType::bf16).transposed(), "z transposed");
}

BOOST_AUTO_TEST_CASE(rounding_16_bit_once) {
  // 1 + 512 * 2^-9 = 2 in f32; adding 2^-9 to 1 in bf16 would change nothing, 512 times.
  Tensor x = full({1, 513}, 0x1p-9, DType::bf16), z = full({513, 1}, 1, DType::bf16), y = empty({1, 1}, DType::bf16);
  x.sliced(1, 0, 1).fill(1);
  cpu_backend().matmul.product(x, z, false, y);
  BOOST_TEST(y.item() == 2.0);
}

BOOST_AUTO_TEST_CASE(same_bits_at_any_thread_count) {
  int before = threads();
  for (const auto& [t, width] :
       {std::pair{DType::f32, 66}, {DType::bf16, 66}, {DType::f32, 170}, {DType::bf16, 170}, {DType::f64, 170}}) {
    Tensor x = random_tensor({3, 2, 130, 257}, 1, t), z = random_tensor({3, 2, 257, width}, 2, t),
           w = random_tensor({257, width}, 3, t);
    std::vector<double> batched, merged;
    for (int n : {1, 2, 3}) {
      set_threads(n);
      Tensor y = empty({3, 2, 130, width}, t);
      cpu_backend().matmul.product(x, z, false, y);
      std::vector<double> got = y.to_vector<double>();
      cpu_backend().matmul.product(x, w.expanded({3, 2, 257, width}), false, y);
      if (n == 1) {
        batched = got;
        merged = y.to_vector<double>();
      }
      BOOST_TEST(is_close(got, batched, 0));
      BOOST_TEST(is_close(y.to_vector<double>(), merged, 0));
    }
  }
  set_threads(before);
}

BOOST_AUTO_TEST_CASE(messages) {
  Tensor a = full({2, 3}, 1), b = full({2, 4}, 1);
  BOOST_TEST(throws_with([&] { matmul(a, b); },
                         "[matmul] inner sizes differ: (2, 3) x (2, 4); needs (..., M, K) x (..., K, N)"));
  BOOST_TEST(throws_with([&] { matmul(a, full({3}, 1)); },
                         "[matmul] needs two matrices (batch axes may come first), got (2, 3) x (3)"));
  BOOST_TEST(throws_with(
      [&] {
        matmul(a, full({3, 2}, 1, DType::f64));
      },
      "[matmul] the inputs are f32 and f64; cast one"));
  BOOST_TEST(throws_with(
      [&] {
        matmul(full({2, 2, 3}, 1), full({3, 3, 1}, 1));
      },
      "[matmul] shapes (2) and (3) do not broadcast"));
  BOOST_TEST(throws_with([&] { linear(a, full({5, 4}, 1)); }, "[linear] input (2, 3) does not fit weight (5, 4)"));
  BOOST_TEST(throws_with(
      [&] {
        linear(a, full({5, 3}, 1), full({3}, 1));
      },
      "[linear] bias (3) does not fit weight (5, 3)"));
}

BOOST_AUTO_TEST_CASE(a_gradient_that_nobody_wants_is_not_kept) {
  Tensor x = random_tensor({64, 64}, 1, DType::f32), w = random_tensor({64, 64}, 2, DType::f32);
  require_grad(w);
  int64_t before = memory_stats(kCpu).current;
  Tensor y = linear(matmul(x, w), w);
  // In memory: x (it was there), the first product, and y; not a copy of w or of a transpose.
  BOOST_TEST(memory_stats(kCpu).current - before <= 2 * 64 * 64 * 4);
  backward(y, full(y.shape(), 1));
  BOOST_TEST(grad(w).numel() == 64 * 64);
}

// The product of 16-bit matrices in f32: not rounded to 16 bits, and added to what is there.
BOOST_AUTO_TEST_CASE(products_of_16_bit_types_can_be_f32) {
  for (DType dtype : {DType::bf16, DType::f16}) {
    for (const auto& [m, k, n] : {std::array<int64_t, 3>{37, 70, 29}, {130, 2100, 300}}) {  // the second in pieces
      Tensor x = random_tensor({1, 1, m, k}, 1, dtype), z = random_tensor({1, 1, k, n}, 2, dtype);
      Tensor y = empty({1, 1, m, n}), twice = full({1, 1, m, n}, 1);
      cpu_backend().matmul.product(x, z, false, y);
      std::vector<double> want = loops<double>(x, z);
      BOOST_TEST(is_close(y.to_vector<double>(), want, 1e-6));
      cpu_backend().matmul.product(x, z, true, twice);
      for (double& v : want) v += 1;
      BOOST_TEST(is_close(twice.to_vector<double>(), want, 1e-6));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
