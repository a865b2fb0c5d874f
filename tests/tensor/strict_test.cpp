// StrictBits: ops have the same bits on every instruction set, and a row of a product in any batch and layout.
#include "braid/tensor/strict.h"

#include <boost/test/unit_test.hpp>
#include <functional>

#include "braid/autograd/dcmha.h"
#include "braid/autograd/detail/linear_loss.h"
#include "braid/autograd/ops.h"
#include "braid/tensor/cpu/attention/variants.h"
#include "braid/tensor/cpu/instruction_sets.h"
#include "tests/tensor/cpu/support.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(strict_bits_of_ops)

namespace {

// make() under the scope: the same bits on every set and at any number of threads.
void check_everywhere(const char* name, const std::function<Tensor()>& make) {
  const StrictBits scope;
  const Tensor want = make();
  for (const cpu::InstructionSet* set : cpu::instruction_sets()) {
    cpu::use_instruction_set(set->name);
    cpu::attention::use_variant(set->name);
    BOOST_TEST(same_bits(make(), want), name << " with " << set->name);
    BOOST_TEST(same_at_any_thread_count(make), name << " with " << set->name);
  }
  cpu::use_instruction_set("");
  cpu::attention::use_variant("");
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_scope_ends_and_may_be_off) {
  BOOST_TEST(!strict_bits());
  {
    const StrictBits off(false);
    BOOST_TEST(!strict_bits());
    const StrictBits on;
    BOOST_TEST(strict_bits());
    const StrictBits inner(false);
    BOOST_TEST(strict_bits());
  }
  BOOST_TEST(!strict_bits());
}

BOOST_AUTO_TEST_CASE(products) {
  for (const DType type : {DType::f32, DType::bf16, DType::f64})
    for (const auto& [m, k, n] : {std::array<int64_t, 3>{1, 7, 5}, {37, 65, 129}, {64, 800, 48}, {3, 1000, 1}}) {
      const Tensor x = random_tensor({m, k}, 1, type), w = random_tensor({n, k}, 2, type),
                   b = random_tensor({n}, 3, type);
      check_everywhere("linear", [&] { return linear(x, w, b); });
      check_everywhere("matmul", [&] { return matmul(x, w.transposed().clone()); });
      const StrictBits scope;  // a row alone; W stored by columns
      const Tensor all = linear(x, w, b), row = linear(slice(x, 0, m - 1, m), w, b);
      BOOST_TEST(same_bits(row, slice(all, 0, m - 1, m)));
      BOOST_TEST(same_bits(matmul(x, w.transposed()), matmul(x, w.transposed().clone())));
    }
}

// Few rows take a kernel of their own, with full vectors of columns, full pieces and slices of the depth, and ends.
BOOST_AUTO_TEST_CASE(few_rows_of_a_product) {
  for (const DType type : {DType::f32, DType::bf16})
    for (const int64_t k : {3, 8, 191, 192, 193, 405})
      for (const int64_t n : {5, 16, 31, 64, 83}) {
        const Tensor x = random_tensor({16, k}, 1, type), w = random_tensor({n, k}, 2, type),
                     b = random_tensor({n}, 3, type), before = random_tensor({16, n}, 4, type);
        const StrictBits scope;
        const Tensor all = linear(x, w, b), wide = detail::wide_linear(x, w);
        Tensor sums = before.clone();
        backend(kCpu).matmul.product(x, w.transposed(), true, sums);
        for (const cpu::InstructionSet* set : cpu::instruction_sets()) {
          cpu::use_instruction_set(set->name);
          for (int64_t rows = 1; rows <= 9; ++rows) {
            const auto of_rows = [rows](const Tensor& t) { return slice(t, 0, 5, 5 + rows).clone(); };
            Tensor some = of_rows(before);
            backend(kCpu).matmul.product(of_rows(x), w.transposed(), true, some);
            const std::string what = str(set->name, ": ", rows, " rows, ", type, ", k ", k, ", n ", n);
            BOOST_TEST(same_bits(linear(of_rows(x), w, b), of_rows(all)), what);
            BOOST_TEST(same_bits(detail::wide_linear(of_rows(x), w), of_rows(wide)), what);
            BOOST_TEST(same_bits(some, of_rows(sums)), what);
          }
        }
        cpu::use_instruction_set("");
      }
}

BOOST_AUTO_TEST_CASE(rows_and_sums) {
  for (const DType type : {DType::f32, DType::bf16})
    for (const int64_t n : {1, 31, 100, 771}) {
      const Tensor x = random_tensor({40, n}, 1, type), w = random_tensor({n}, 2, type);
      const std::pair<const char*, std::function<Tensor()>> ops[] = {
          {"rms_norm", [&] { return rms_norm(x, w, 1e-6); }},
          {"layer_norm", [&] { return layer_norm(x, w, w, 1e-5); }},
          {"softmax", [&] { return softmax(x); }},
          {"log_softmax", [&] { return log_softmax(x); }},
          {"logsumexp", [&] { return logsumexp(x, -1); }},
          {"gelu", [&] { return gelu(x); }},
          {"silu", [&] { return silu(x); }},
          {"sum of rows", [&] { return sum(x, {0}); }},
          {"sum", [&] { return sum(x); }},
          {"swiglu", [&] { return swiglu(x, tanh(x)); }},
      };
      for (const auto& [name, op] : ops) check_everywhere(name, op);
    }
}

BOOST_AUTO_TEST_CASE(attention) {
  for (const DType type : {DType::f32, DType::bf16})
    for (const int64_t T : {5, 33, 130}) {
      const Tensor q = random_tensor({1, T, 4, 24}, 1, type), k = random_tensor({1, T, 2, 24}, 2, type),
                   v = random_tensor({1, T, 2, 24}, 3, type);
      SdpaOptions options;
      options.mask.causal = true;
      check_everywhere("attention", [&] { return scaled_dot_product_attention(q, k, v, options); });
    }
}

BOOST_AUTO_TEST_SUITE_END()
