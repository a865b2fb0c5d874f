// Rows of attention in strict bits (tensor/strict.h): the same in tiles, by the decoding kernel, on every set.
#include "braid/tensor/cpu/attention/variants.h"
#include "braid/tensor/kernels/backend.h"
#include "braid/tensor/strict.h"
#include "tests/support/compare.h"
#include "tests/support/dcmha_cases.h"

namespace braid {
BOOST_AUTO_TEST_SUITE(dcmha_op)

// A row has its bits in tiles of any rows, by the decoding kernel, and on every instruction set (tensor/strict.h).
BOOST_AUTO_TEST_CASE(strict_rows_have_the_same_bits_in_tiles_and_alone) {
  const StrictBits strict;
  constexpr int64_t T = 199;
  const test::DcmhaCase cases[] = {{2, T, T, 1, 8, 1, 32, 2, 2, {}, 0x3fff},
                                   {1, T, T, 2, 3, 1, 7, 3, 2, {}, 0x3fff & ~0x81u},
                                   {1, T, T, 1, 5, 1, 20, 2, 1, {}, 0x1f},
                                   {1, T, T, 4, 1, 2, 24, 0, 0, {}, 0}};
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64})
    for (const test::DcmhaCase& c : cases)
      for (const int64_t window : {0, 1, 50, 64, 130}) {
        const test::DcmhaCall inputs(c, 5, dtype);
        DcmhaInputs call = test::call_of(inputs.x);
        call.groups = c.G, call.mask.window = window, call.scale = 0.25;
        const auto rows = [&](AttentionKernel kernel, int64_t first, int64_t count) {
          const QueryBlock block{.b0 = 0, .samples = c.B, .t0 = first, .rows = count, .s0 = 0, .keys = T};
          DcmhaInputs some = call;
          for_each_tensor(
              [&](const AttentionRole& role, Tensor& t) { t = t ? block.part(t.detach(), role.positions) : t; }, some);
          some.mask.offset = first;
          Tensor y = empty(some.q.shape(), dtype), no_lse;
          backend(kCpu).attention.forward({.forward = kernel}, some, y, no_lse);
          return y.to_vector<double>();
        };
        const Tensor all = from_vector(rows(AttentionKernel::generic, 0, T), call.q.shape());
        for (const int64_t first : {0, 1, 61, 63, 64, 127, 190})
          for (const int64_t count : {1, 2, 7, 8, 9})
            for (const AttentionKernel kernel : {AttentionKernel::generic, AttentionKernel::decode})
              BOOST_TEST(rows(kernel, first, count) == all.sliced(1, first, first + count).to_vector<double>(),
                         str(name(kernel), ": ", count, " rows from ", first, ", ", dtype, ", window ", window, ", ",
                             c.text()));
        for (const auto* variant : cpu::attention::variants<double>()) {
          BOOST_REQUIRE(cpu::attention::use_variant(variant->name));
          BOOST_TEST(rows(AttentionKernel::generic, 0, T) == all.to_vector<double>(),
                     str(variant->name, ": ", dtype, ", window ", window, ", ", c.text()));
        }
        cpu::attention::use_variant("");
      }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace braid
