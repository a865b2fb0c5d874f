// Attention as ops on blocks of scores: with the softmax it is scaled dot-product attention.
#include "braid/nn/attention/composed_attention.h"

#include <boost/test/unit_test.hpp>
#include <limits>

#include "braid/autograd.h"
#include "braid/tensor/memory.h"
#include "braid/tensor/trace_device.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(composed_attention_op)

namespace {

nn::ScoreFunctions softmax_of_products() {
  return {.scores =
              [](const Tensor& q, const Tensor& k, const DcmhaOptions& how, const AttentionMask& mask) {
                return mask_scores(nn::attention_scores(q, k, how), mask, -std::numeric_limits<double>::infinity());
              },
          .probabilities = [](const Tensor& s, const AttentionMask& mask) { return mask_scores(softmax(s), mask, 0); }};
}

Tensor leaf(Tensor x) {
  require_grad(x);
  return x;
}

struct Operands {
  Tensor q, k, v;
  Operands(int64_t B, int64_t T, int64_t S, int64_t N, int64_t Nkv, DType type = DType::f64)
      : q(leaf(randn({B, T, N, 4}, {1, 1}, type))),
        k(leaf(randn({B, S, Nkv, 4}, {1, 2}, type))),
        v(leaf(randn({B, S, Nkv, 4}, {1, 3}, type))) {}
};

// Results and gradients of the two.
void check_like_softmax(const Operands& x, const DcmhaOptions& options) {
  const Tensor dy = randn(x.q.shape(), {1, 4}, x.q.dtype());
  const auto gradients = [&](const Tensor& y) { return grad(sum(mul(y, dy)), {x.q, x.k, x.v}); };
  const Tensor want = scaled_dot_product_attention(x.q, x.k, x.v, options);
  const Tensor got = nn::composed_attention({x.q, x.k, x.v, {}, {}, nullptr, softmax_of_products()}, options);
  BOOST_TEST(is_close(got.detach(), want.detach(), 1e-12));
  const std::vector<Tensor> expected = gradients(want), found = gradients(got);
  for (size_t i = 0; i < 3; ++i) BOOST_TEST(is_close(found[i], expected[i], 1e-12), "input " << i);
}

DcmhaOptions with(const AttentionMask& mask) {
  DcmhaOptions options;
  options.mask = mask;
  return options;
}

}  // namespace

BOOST_AUTO_TEST_CASE(with_the_softmax_it_is_scaled_dot_product_attention) {
  for (const int64_t kv_heads : {1, 2, 4}) {
    check_like_softmax(Operands(2, 7, 7, 4, kv_heads), with({}));
    check_like_softmax(Operands(2, 7, 7, 4, kv_heads), with({.causal = false}));
    check_like_softmax(Operands(2, 7, 7, 4, kv_heads), with({.window = 3}));
    check_like_softmax(Operands(2, 3, 9, 4, kv_heads), with({.offset = 6}));  // the last queries of a text
    check_like_softmax(Operands(2, 3, 9, 4, kv_heads), with({.window = 4, .offset = 6}));
    DcmhaOptions capped = with({.window = 3});
    capped.scale = 0.7, capped.softcap = 0.5;
    check_like_softmax(Operands(2, 7, 7, 4, kv_heads), capped);
  }
  DcmhaOptions scaled = with({});
  scaled.scale = 0.1;
  check_like_softmax(Operands(1, 5, 5, 2, 2), scaled);
}

BOOST_AUTO_TEST_CASE(many_blocks_are_one_call) {
  check_like_softmax(Operands(1, 1000, 1000, 8, 4), with({}));  // 131 rows a block
  check_like_softmax(Operands(1, 1000, 1000, 8, 4), with({.window = 100}));
}

BOOST_AUTO_TEST_CASE(documents_are_calls_of_their_own) {
  const std::vector<Document> documents = {{0, 0, 4}, {0, 4, 7}, {1, 0, 7}};
  DcmhaOptions options = with({});
  options.documents = &documents;
  check_like_softmax(Operands(2, 7, 7, 4, 2), options);
  options.mask.window = 2;
  check_like_softmax(Operands(2, 7, 7, 4, 2), options);
}

BOOST_AUTO_TEST_CASE(sixteen_bits_compute_in_f32) {
  const Operands x(1, 6, 6, 2, 2, DType::bf16);
  const Tensor got = nn::composed_attention({x.q, x.k, x.v, {}, {}, nullptr, softmax_of_products()}, with({})).detach();
  BOOST_TEST((got.dtype() == DType::bf16));
  const auto wide = [](const Tensor& t) { return t.detach().to(DType::f32); };
  const Tensor want = scaled_dot_product_attention(wide(x.q), wide(x.k), wide(x.v), with({}));
  BOOST_TEST(is_close(got.to(DType::f32), want.to(DType::bf16).to(DType::f32), 0.01));
}

BOOST_AUTO_TEST_CASE(scores_of_one_block_are_all_that_is_kept) {
  const Operands x(1, 2048, 2048, 8, 8, DType::f32);
  const int64_t scores = 8 * 2048 * 2048 * 4, before = memory_stats(kCpu).current;
  reset_peak_memory(kCpu);
  const Tensor y = nn::composed_attention({x.q, x.k, x.v, {}, {}, nullptr, softmax_of_products()}, with({}));
  BOOST_TEST(memory_stats(kCpu).current - before < scores / 50);
  backward(sum(y));
  BOOST_TEST(memory_stats(kCpu).peak - before < scores / 2);
}

// As fused attention, whatever the blocks are.
BOOST_AUTO_TEST_CASE(a_trace_counts_unmasked_keys_and_nothing_again) {
  const TraceDevice trace;
  for (const AttentionMask& mask : {AttentionMask{}, AttentionMask{.causal = false}, AttentionMask{.window = 100}}) {
    const Operands x(1, 1000, 1000, 8, 4, DType::f32);
    double pairs = 0;
    for (int64_t t = 0; t < 1000; ++t) pairs += static_cast<double>(mask.end(t, 1000) - mask.first(t));
    const double forward = 8 * pairs * 4 * 4;  // N pairs (2 d + 2 d)
    const TracedFlops before = trace.flops();
    const Tensor y = nn::composed_attention({x.q, x.k, x.v, {}, {}, nullptr, softmax_of_products()}, with(mask));
    BOOST_TEST((trace.flops() - before).attention == forward);
    backward(sum(y));
    BOOST_TEST((trace.flops() - before).attention == 3 * forward);
    BOOST_TEST((trace.flops() - before).total() == 3 * forward);
  }
}

BOOST_AUTO_TEST_SUITE_END()
