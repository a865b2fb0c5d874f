// Every rung of the ladder against the reference: the same inputs, forward.
#include "tests/cuda/attention/ladder/ladder.h"

#include <cmath>

#include "braid/autograd.h"
#include "tests/cuda/support.h"
#include "tests/support/dcmha_cases.h"

using namespace braid;
using namespace braid::test;

namespace {

using Rung = void (*)(const DcmhaInputs&, Tensor&);

constexpr int64_t kHeads = 16;
constexpr unsigned kAllTerms = 0x3fff;

DcmhaCase case_of(int64_t T, int64_t S, int64_t rank, AttentionMask mask, int64_t d = 8) {
  return {2, T, S, 1, kHeads, 1, d, rank, rank, {{.mask = mask}}, kAllTerms};
}

Tensor run(Rung rung, const DcmhaCase& c, const DcmhaCall& call) {
  DcmhaInputs in = call_of(call.x);
  in.mask = c.options.mask;
  in.scale = 1 / std::sqrt(static_cast<double>(c.d));
  Tensor y = empty(in.q.shape(), in.q.dtype(), kGpu);
  rung(in, y);
  return y;
}

// Tails of rows, keys and tiles; windows; rows whose keys are all masked; cross-attention; heads of several tiles.
const DcmhaCase kCases[] = {
    case_of(21, 21, 2, {}),           case_of(5, 40, 2, {true, 0, 35}),  case_of(37, 37, 1, {true, 9, 0}),
    case_of(9, 33, 2, {false, 0, 0}), case_of(12, 12, 2, {true, 0, -4}), case_of(7, 18, 1, {true, 0, 11}, 40),
};

}  // namespace

BOOST_AUTO_TEST_SUITE(attention_ladder)

BOOST_AUTO_TEST_CASE(naive_and_tiled_equal_the_reference) {
  const NoGrad off;
  for (const DcmhaCase& c : kCases) {
    DcmhaCall exact(c, 3), f32 = exact.as(DType::f32, kGpu);
    const Tensor want = exact.run(AttentionImpl::reference);
    BOOST_TEST_CONTEXT(c.text()) {
      BOOST_TEST(largest_error(run(ladder::naive, c, f32), want) < 2e-5);
      BOOST_TEST(largest_error(run(ladder::tiled, c, f32), want) < 2e-5);
    }
  }
}

// In bf16 the bound is twice the error of the reference when it is computed in bf16; the kernels of the library, the
// top of the ladder, keep it too.
BOOST_AUTO_TEST_CASE(tensor_cores_err_at_most_twice_as_much_as_the_reference_in_bf16) {
  const NoGrad off;
  for (const DcmhaCase& c : kCases) {
    DcmhaCall rounded(c, 3, DType::bf16), exact = rounded.as(DType::f64, kCpu), gpu = rounded.as(DType::bf16, kGpu);
    const Tensor want = exact.run(AttentionImpl::reference);
    const double bound = 2 * largest_error(rounded.run(AttentionImpl::reference), want);
    BOOST_TEST_CONTEXT(c.text()) {
      BOOST_TEST(largest_error(run(ladder::tensor_cores, c, gpu), want) <= bound);
      BOOST_TEST(largest_error(run(ladder::fused, c, gpu), want) <= bound);
      BOOST_TEST(largest_error(gpu.run(AttentionImpl::fused), want) <= bound);
    }
  }
}

// Threads that share memory are ordered by barriers, and rows of shared memory are spread over its banks.
BOOST_AUTO_TEST_CASE(fused_is_the_same_in_every_order_and_without_bank_conflicts) {
  const NoGrad off;
  const DcmhaCase c = case_of(19, 35, 2, {true, 0, 16}, 24);
  const DcmhaCall gpu = DcmhaCall(c, 3, DType::bf16).as(DType::bf16, kGpu);
  const Tensor first = run(ladder::fused, c, gpu);
  in_each_order([&] { BOOST_TEST(same_bits(run(ladder::fused, c, gpu), first)); });
#if defined(BRAID_EMULATION)
  const uint64_t conflicts = emulated::statistics().bank_conflicts;
  run(ladder::fused, c, gpu);
  BOOST_TEST(emulated::statistics().bank_conflicts == conflicts);
#endif
}

BOOST_AUTO_TEST_SUITE_END()
