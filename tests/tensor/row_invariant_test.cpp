// The scope, and the kernels that need none: what works row by row gives a row the same bits in any company.
#include "braid/tensor/row_invariant.h"

#include <boost/test/unit_test.hpp>
#include <functional>
#include <random>

#include "braid/autograd/int8.h"
#include "braid/autograd/ops.h"
#include "tests/tensor/cpu/support.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(row_invariant)

namespace {

using RowsOp = std::function<Tensor(const Tensor& x)>;  // (M, D) -> (M, ...)

// f of all rows, of each of some rows alone, and of rows picked at random.
void check_rows(const char* name, const RowsOp& f, const Tensor& x) {
  const int64_t M = x.dim(0);
  const auto pick = [](const Tensor& from, const std::vector<int64_t>& order) {
    return index_select(from, from_vector(order, {static_cast<int64_t>(order.size())}));
  };
  const Tensor whole = f(x);
  std::mt19937 engine(static_cast<uint32_t>(M));
  for (int trial = 0; trial < 6; ++trial) {
    std::vector<int64_t> order;
    for (int64_t count = trial < 3 ? 1 : 1 + engine() % 40, i = 0; i < count; ++i)
      order.push_back(static_cast<int64_t>(engine() % static_cast<uint64_t>(M)));
    BOOST_TEST(same_bits(f(pick(x, order)), pick(whole, order)),
               name << " of " << order.size() << " rows " << str(x.shape()) << " " << str(x.dtype()));
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_scope_ends) {
  BOOST_TEST(!row_invariant_products());
  {
    const RowInvariantProducts scope;
    BOOST_TEST(row_invariant_products());
    {
      const RowInvariantProducts inner;
      BOOST_TEST(row_invariant_products());
    }
    BOOST_TEST(row_invariant_products());
  }
  BOOST_TEST(!row_invariant_products());
}

BOOST_AUTO_TEST_CASE(kernels_that_work_row_by_row) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16, DType::f64})
    for (const int64_t D : {1, 7, 32, 100, 771})
      for (const int64_t M : {1, 5, 70}) {
        const Tensor x = random_tensor({M, D}, 1, type), w = random_tensor({D}, 2, type),
                     b = random_tensor({D}, 3, type);
        const std::pair<const char*, RowsOp> ops[] = {
            {"rms_norm", [&](const Tensor& in) { return rms_norm(in, w, 1e-6); }},
            {"rms_norm without weight", [&](const Tensor& in) { return rms_norm(in, {}, 1e-6); }},
            {"layer_norm", [&](const Tensor& in) { return layer_norm(in, w, b, 1e-5); }},
            {"add_rms_norm", [&](const Tensor& in) { return add_rms_norm(in, silu(in), w, 1e-6).y; }},
            {"add_layer_norm", [&](const Tensor& in) { return add_layer_norm(in, silu(in), w, b, 1e-6).sum; }},
            {"softmax", [](const Tensor& in) { return softmax(in); }},
            {"log_softmax", [](const Tensor& in) { return log_softmax(in); }},
            {"logsumexp", [](const Tensor& in) { return logsumexp(in, -1); }},
            {"sum", [](const Tensor& in) { return sum(in, {-1}); }},
            {"mean", [](const Tensor& in) { return mean(in, {-1}, true); }},
            {"max", [](const Tensor& in) { return max(in, -1); }},
            {"gelu", [](const Tensor& in) { return gelu(in); }},
            {"gelu_tanh", [](const Tensor& in) { return gelu_tanh(in); }},
            {"silu", [](const Tensor& in) { return silu(in); }},
            {"tanh", [](const Tensor& in) { return tanh(in); }},
            {"exp", [](const Tensor& in) { return exp(in); }},
            {"swiglu", [](const Tensor& in) { return swiglu(in, tanh(in)); }},
            {"scaled sum", [&](const Tensor& in) { return in * w + affine(in, 0.3, 0.7); }},
            {"cast", [](const Tensor& in) { return cast(in, DType::f16); }},
        };
        for (const auto& [name, op] : ops) check_rows(name, op, x);
      }
}

BOOST_AUTO_TEST_CASE(rope_turns_each_token_alone) {
  for (const DType type : {DType::f32, DType::bf16}) {
    const Tensor x = random_tensor({6, 3 * 20}, 1, type), angle = random_tensor({1, 1, 8}, 2);
    const Tensor s = tanh(angle), c = sqrt(1 - s * s);
    check_rows(
        "rope",
        [&](const Tensor& in) {
          return rope(reshape(in, {in.dim(0), 1, 3, 20}), c, s);
        },
        x);
  }
}

BOOST_AUTO_TEST_CASE(factors_of_compose) {
  constexpr int64_t G = 2, C = 4, R = 2, N = 6;
  for (const DType type : {DType::f32, DType::bf16}) {
    const auto factors = [&](const Tensor& in) {  // (M, G C (2R + 1) N)
      const int64_t M = in.dim(0);
      const Tensor all = reshape(in, {1, M, G, C, 2 * R + 1, N});
      const Tensor w = contiguous(permute(slice(all, 4, 0, 2 * R), {2, 3, 0, 1, 4, 5}));
      std::vector<Tensor> parts;
      for (const ComposeFactors& f : compose_factors(w, contiguous(squeeze(slice(all, 4, 2 * R, 2 * R + 1), 4)), 1e-6))
        for (const Tensor& t : {f.down, f.up, f.gate}) parts.push_back(reshape(t, {M, -1}));
      return concat(parts, 1);
    };
    check_rows("compose_factors", factors, random_tensor({50, G * C * (2 * R + 1) * N}, 1, type));
  }
}

// Rows are rounded to 16 bits one by one, and their products are exact.
BOOST_AUTO_TEST_CASE(products_with_8_bit_weights) {
  for (const int64_t in : {1, 64, 300})
    for (const int64_t out : {1, 33, 100}) {
      const Int8Weight q = quantize_int8(random_tensor({out, in}, 1));
      const Tensor bias = random_tensor({out}, 2);
      check_rows(
          "linear_int8", [&](const Tensor& x) { return linear_int8(x, q, bias); }, random_tensor({50, in}, 3));
    }
}

BOOST_AUTO_TEST_SUITE_END()
