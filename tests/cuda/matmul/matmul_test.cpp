// Products of every layout that callers have, against the CPU's; and into how many BLAS calls they are cut.
#include "braid/cuda/matmul/matmul.h"
#include "braid/tensor/kernels/backend.h"
#include "braid/tensor/kernels/pointwise_ops.h"

#include <boost/test/unit_test.hpp>

#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

namespace {

const Device kGpu{Device::Kind::cuda, 0};

// A tensor of whole random_pair and, on the GPU, the same view of the same random_pair.
struct Pair {
  Tensor host, gpu;
  Pair transposed(int a = -2, int b = -1) const { return {host.transposed(a, b), gpu.transposed(a, b)}; }
  Pair expanded(const Shape& s) const { return {host.expanded(s), gpu.expanded(s)}; }
  Pair sliced(int axis, int64_t begin, int64_t end) const {
    return {host.sliced(axis, begin, end), gpu.sliced(axis, begin, end)};
  }
};

Pair random_pair(const Shape& shape, DType dtype = DType::f32) {
  std::vector<double> values(static_cast<size_t>(numel(shape)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i * 7 % 11) - 5;
  Tensor host = from_vector(values, shape).to(dtype);
  return {host, host.to(kGpu)};
}

// y = 2 x z + 3 y, where y is `view` of a base that is read back whole: nothing beside the view may change.
template <class View>
void check_product(const Pair& x, const Pair& z, Pair base, View view, size_t calls, const char* what) {
  BOOST_TEST_CONTEXT(what) {
    Pair y = view(base);
    Tensor xz = empty(y.host.shape(), y.host.dtype()), before = y.host.clone();
    backend(kCpu).matmul.product(x.host.to(y.host.dtype()), z.host.to(y.host.dtype()), false, xz);
    backend(kCpu).pointwise.unary(UnaryOp::affine, 2, 0, xz, xz);
    backend(kCpu).pointwise.unary(UnaryOp::affine, 3, 0, before, before);
    backend(kCpu).pointwise.binary(BinaryOp::add, xz, before, y.host);
    BOOST_TEST(cuda::plan_matmul(x.gpu, z.gpu, y.gpu).calls.size() == calls);
    cuda::matmul(x.gpu, z.gpu, 2, 3, y.gpu);
    BOOST_TEST(is_close(base.gpu.to(kCpu), base.host, 0));
  }
}

const auto kWhole = [](const Pair& base) { return base; };

}  // namespace

BOOST_AUTO_TEST_SUITE(cuda_product)

BOOST_AUTO_TEST_CASE(a_batch_beyond_the_limit_of_a_call) {
  check_product(random_pair({70000, 2, 3}), random_pair({70000, 3, 2}), random_pair({70000, 2, 2}), kWhole, 2,
                "halves");
  check_product(random_pair({3, 65535, 1, 2}), random_pair({3, 65535, 2, 1}), random_pair({3, 65535, 1, 1}), kWhole, 3,
                "thirds");
  check_product(random_pair({65537, 1, 2}), random_pair({65537, 2, 1}), random_pair({65537, 1, 1}), kWhole, 1,
                "a prime");
}

// Sizes that are no multiple of 8 are cut for 16 bits, along the dense axis of y and along K.
BOOST_AUTO_TEST_CASE(long_axes_without_alignment) {
  const auto by_columns = [](const Pair& base) { return base.transposed(); };
  for (DType t : {DType::bf16, DType::f16}) {
    check_product(random_pair({3, 16}, t), random_pair({16, 1027}, t), random_pair({3, 1027}), kWhole, 1, "columns");
    check_product(random_pair({1027, 16}, t), random_pair({16, 3}, t), random_pair({3, 1027}), by_columns, 1, "rows");
    check_product(random_pair({3, 1025}, t), random_pair({1025, 5}, t), random_pair({3, 5}), kWhole, 1, "terms");
    check_product(random_pair({2, 3, 1025}, t), random_pair({2, 1025, 1031}, t), random_pair({2, 3, 1031}), kWhole, 1,
                  "both, in a batch");
  }
}

// Without an epilogue the bias comes first; it is exact, so that the sum is rounded once.
BOOST_AUTO_TEST_CASE(a_cut_product_has_its_bias) {
  for (const auto& [rows, inner] : {std::pair<int64_t, int64_t>{1027, 16}, {16, 1027}}) {
    const Pair x = random_pair({3, inner}, DType::bf16), w = random_pair({rows, inner}, DType::bf16),
               bias = random_pair({rows}, DType::bf16);
    Tensor want = empty({3, rows}, DType::bf16), got = empty({3, rows}, DType::bf16, kGpu);
    backend(kCpu).matmul.linear(x.host, w.host, bias.host, want);
    backend(kGpu).matmul.linear(x.gpu, w.gpu, bias.gpu, got);
    BOOST_TEST(is_close(got.to(kCpu), want, 0x1p-8));
  }
}

// 1027 + 3 = 1030 is rounded to 1032; 1027, rounded to 1024 before 3 is added, would stay 1024.
BOOST_AUTO_TEST_CASE(a_cut_sum_is_rounded_once) {
  Tensor x = full({1, 1025}, 1, DType::bf16, kGpu), y = zeros({1, 1}, DType::bf16, kGpu);
  x.sliced(-1, 0, 1).fill(4);
  x.sliced(-1, 1024, 1025).fill(3);
  cuda::matmul(x, full({1025, 1}, 1, DType::bf16, kGpu), 1, 0, y);
  BOOST_TEST(y.to(kCpu).to_vector<double>()[0] == 1032);
}

BOOST_AUTO_TEST_CASE(layouts) {
  for (DType t : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    check_product(random_pair({3, 4}, t), random_pair({4, 5}, t), random_pair({3, 5}, t), kWhole, 1, "matrices");
  }
  check_product(random_pair({4, 3}).transposed(), random_pair({4, 5}), random_pair({3, 5}), kWhole, 1, "x transposed");
  check_product(random_pair({3, 4}), random_pair({5, 4}).transposed(), random_pair({3, 5}), kWhole, 1, "z transposed");
  const auto by_columns = [](const Pair& base) { return base.transposed(); };
  check_product(random_pair({3, 4}), random_pair({4, 5}), random_pair({5, 3}), by_columns, 1, "y transposed");
  check_product(random_pair({4, 3}).transposed(), random_pair({5, 4}).transposed(), random_pair({5, 3}), by_columns, 1,
                "all");
  const auto inside = [](const Pair& base) { return base.sliced(-1, 2, 7); };
  check_product(random_pair({3, 9}).sliced(-1, 1, 5), random_pair({4, 8}).sliced(-1, 3, 8), random_pair({3, 9}), inside,
                1, "columns of wider matrices");
  for (int64_t m : {1, 3}) {
    for (int64_t k : {1, 4}) {
      for (int64_t n : {1, 5}) {
        check_product(random_pair({2, m, k}), random_pair({2, k, n}), random_pair({2, m, n}), kWhole, 1,
                      "axes of one element");
        check_product(random_pair({2, k, m}).transposed(), random_pair({2, n, k}).transposed(), random_pair({2, n, m}),
                      by_columns, 1, "axes of one element, transposed");
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(batches) {
  check_product(random_pair({2, 6, 3, 4}), random_pair({2, 6, 4, 5}), random_pair({2, 6, 3, 5}), kWhole, 1,
                "one batch of 12");
  check_product(random_pair({2, 6, 3, 4}), random_pair({4, 5}).expanded({2, 6, 4, 5}), random_pair({2, 6, 3, 5}),
                kWhole, 1, "a linear layer: 36 rows");
  BOOST_TEST(cuda::plan_matmul(random_pair({2, 6, 3, 4}).gpu, random_pair({4, 5}).gpu.expanded({2, 6, 4, 5}),
                               random_pair({2, 6, 3, 5}).gpu)
                 .columns == 36);
  check_product(random_pair({6, 1, 4}), random_pair({4, 5}).expanded({6, 4, 5}), random_pair({6, 1, 5}), kWhole, 1,
                "single rows");
  check_product(random_pair({3, 4}).expanded({6, 3, 4}), random_pair({6, 4, 5}), random_pair({6, 3, 5}), kWhole, 1,
                "one x");
  // Heads of attention: (B, T, N, d) seen as (B, N, T, d) is one batch of N for every B.
  const auto heads = [](const Pair& base) { return base.transposed(1, 2); };
  check_product(random_pair({2, 4, 3, 5}).transposed(1, 2), random_pair({2, 6, 3, 5}).transposed(1, 2).transposed(),
                random_pair({2, 3, 4, 6}), kWhole, 2, "queries and keys");
  check_product(random_pair({2, 3, 4, 6}), random_pair({2, 6, 3, 5}).transposed(1, 2), random_pair({2, 4, 3, 5}), heads,
                2, "weights and values");
}

BOOST_AUTO_TEST_CASE(sums_in_f32_from_16_bits) {
  for (DType t : {DType::bf16, DType::f16}) {
    Pair x = random_pair({3, 40}, t), z = random_pair({40, 5}, t);
    check_product(x, z, random_pair({3, 5}, DType::f32), kWhole, 1, "f32 from 16 bits");
  }
}

// y = x w^T + b in one call where BLAS adds the bias; y starts as NaN and may not be read.
BOOST_AUTO_TEST_CASE(linear_with_bias) {
  const auto check_linear = [](const Pair& x, const Pair& w, const Pair& b, const char* what) {
    Shape shape = x.host.shape();
    shape[-1] = w.host.dim(0);
    Tensor y = full(shape, NAN, x.host.dtype()), gpu_y = y.to(kGpu);
    backend(kCpu).matmul.linear(x.host, w.host, b.host, y);
    backend(kGpu).matmul.linear(x.gpu, w.gpu, b.gpu, gpu_y);
    BOOST_TEST_CONTEXT(what << " in " << str(x.host.dtype())) { BOOST_TEST(is_close(gpu_y.to(kCpu), y, 0)); }
    Tensor sum = b.host ? b.host.expanded(shape).clone() : zeros(shape, x.host.dtype());
    Shape repeated = x.host.shape();
    repeated[-2] = w.host.dim(1);
    repeated[-1] = w.host.dim(0);
    backend(kCpu).matmul.product(x.host, w.host.transposed().expanded(repeated), true, sum);
    BOOST_TEST_CONTEXT(what << " on the CPU in " << str(x.host.dtype())) { BOOST_TEST(is_close(y, sum, 0)); }
  };
  const auto heads = [](const Pair& base) { return base.transposed(1, 2); };
  for (DType t : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    const Pair b = random_pair({5}, t), wide = random_pair({9}, t), none{};
    check_linear(random_pair({3, 4}, t), random_pair({5, 4}, t), b, "matrices");
    check_linear(random_pair({3, 4}, t), random_pair({5, 4}, t), none, "no bias");
    check_linear(random_pair({2, 3, 4}, t), random_pair({5, 4}, t), b, "two batches of rows");
    check_linear(random_pair({3, 2, 4}, t).transposed(0, 1), random_pair({4, 5}, t).transposed(), b, "views");
    check_linear(heads(random_pair({2, 3, 6, 4}, t)), random_pair({5, 4}, t), b, "several calls");
    check_linear(random_pair({3, 4}, t), random_pair({5, 4}, t), wide.sliced(0, 1, 6), "a bias at an odd address");
    check_linear(random_pair({1, 4}, t), random_pair({5, 4}, t), b, "one row");
    check_linear(random_pair({3, 4}, t), random_pair({1, 4}, t), b.sliced(0, 0, 1), "one column");
    check_linear(random_pair({3, 0}, t), random_pair({5, 0}, t), b, "nothing to add up");
  }
  // Large enough for several tiles of the CPU, and for several panels in 16 bits.
  check_linear(random_pair({70, 600}), random_pair({1100, 600}), random_pair({1100}), "tiles");
  check_linear(random_pair({70, 70}, DType::bf16), random_pair({4200, 70}, DType::bf16),
               random_pair({4200}, DType::bf16), "panels");
}

BOOST_AUTO_TEST_CASE(y_is_not_read_without_beta) {
  Tensor y = full({2, 2}, NAN).to(kGpu);
  cuda::matmul(random_pair({2, 3}).gpu, random_pair({3, 2}).gpu, 0, 0, y);
  BOOST_TEST(is_close(y.to(kCpu), zeros({2, 2}), 0));
}

BOOST_AUTO_TEST_SUITE_END()
