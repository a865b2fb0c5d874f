// The fused kernels against the reference, in f64: random sizes, terms, masks, instruction sets and threads.

#include "braid/autograd.h"
#include "braid/tensor/base/processor.h"
#include "braid/tensor/cpu/attention/kept.h"
#include "braid/tensor/cpu/attention/variants.h"
#include "braid/tensor/memory.h"
#include "braid/tensor/parallel.h"
#include "braid/tensor/strict.h"
#include "tests/support/compare.h"
#include "tests/support/dcmha_cases.h"

namespace braid {
BOOST_AUTO_TEST_SUITE(dcmha_op)

namespace {

using test::DcmhaCall;
using test::DcmhaCase;
using test::is_close;

void check_random_cases(int count, uint64_t seed) {
  std::mt19937_64 random(seed);
  int before = threads();
  auto variants = cpu::attention::variants<double>();
  for (int i = 0; i < count; ++i) {
    DcmhaCase c = test::random_dcmha_case(random);
    DcmhaCall inputs(c, static_cast<uint64_t>(i) + seed);
    const auto* variant = variants[random() % variants.size()];
    BOOST_TEST_CONTEXT("case " << i << " of seed " << seed << ", " << variant->name << ": " << c.text()) {
      BOOST_REQUIRE(cpu::attention::use_variant(variant->name));
      std::vector<Tensor> fused = inputs.run_with_gradients(AttentionImpl::fused, 1 + static_cast<int>(random() % 3));
      std::vector<Tensor> reference = inputs.run_with_gradients(AttentionImpl::reference, 1);
      BOOST_REQUIRE(fused.size() == reference.size());
      if (c.T <= 4) {  // without derivatives a few rows take the decoding kernel
        NoGrad off;
        BOOST_TEST(is_close(inputs.run(AttentionImpl::fused, 2).to_vector<double>(), reference[0].to_vector<double>(),
                            1e-12, 0.1));
      }
      for (size_t k = 0; k < fused.size(); ++k) {
        BOOST_TEST_CONTEXT("result " << k) {
          BOOST_REQUIRE(fused[k].shape() == reference[k].shape());
          BOOST_TEST(is_close(fused[k].to_vector<double>(), reference[k].to_vector<double>(), k == 0 ? 1e-12 : 1e-10,
                              k == 0 ? 0.1 : 1e-2));
        }
      }
    }
  }
  cpu::attention::use_variant("");
  set_threads(before);
}

const DcmhaCase kTypical{2, 150, 150, 1, 8, 1, 32, 2, 2, {}, 0x3fff & ~0x81u};

}  // namespace

BOOST_AUTO_TEST_CASE(fused_is_the_composed_meaning) { check_random_cases(300, 1); }

BOOST_AUTO_TEST_CASE(strict_is_the_composed_meaning) {
  const StrictBits strict;
  check_random_cases(150, 3);
}

// The long version; ctest runs it under the label slow.
BOOST_AUTO_TEST_CASE(fused_is_the_composed_meaning_10000_times, *boost::unit_test::disabled()) {
  check_random_cases(10000, 2);
}

BOOST_AUTO_TEST_CASE(many_tiles_and_blocks) {  // several tiles per block and several blocks per chain
  for (int64_t window : {0, 50, 256}) {
    for (int64_t share : {1, 2}) {
      DcmhaCase c{1, 301, 301, 1, 4, share, 8, 2, 2, {}, 0x3fff};
      c.options.mask.window = window;
      DcmhaCall inputs(c, 5);
      auto fused = inputs.run_with_gradients(AttentionImpl::fused, 2),
           reference = inputs.run_with_gradients(AttentionImpl::reference, 2);
      for (size_t k = 0; k < fused.size(); ++k) BOOST_TEST(is_close(fused[k], reference[k], k == 0 ? 1e-12 : 1e-10));
    }
  }
}

BOOST_AUTO_TEST_CASE(scores_that_are_not_kept_between_the_passes_are_computed_again) {
  for (DType dtype : {DType::f64, DType::f32}) {
    for (int64_t window : {0, 50}) {
      DcmhaCase c{1, 301, 301, 1, 5, 1, 8, 2, 2, {}, 0x3fff};
      c.options.mask.window = window;
      DcmhaCall inputs(c, 12, dtype);
      const auto kept = inputs.run_with_gradients(AttentionImpl::fused, 2);
      cpu::attention::limit_kept_bytes(0);
      const auto again = inputs.run_with_gradients(AttentionImpl::fused, 2);
      cpu::attention::limit_kept_bytes({});
      for (size_t k = 0; k < kept.size(); ++k) BOOST_TEST(kept[k].to_vector<double>() == again[k].to_vector<double>());
      if (dtype != DType::f64) continue;
      const auto reference = inputs.run_with_gradients(AttentionImpl::reference, 2);
      for (size_t k = 0; k < again.size(); ++k) BOOST_TEST(is_close(again[k], reference[k], k == 0 ? 1e-12 : 1e-10));
    }
  }
}

// S and dP of no block fit, those of 64 rows, those of 128.
BOOST_AUTO_TEST_CASE(backward_in_blocks_of_128_rows_or_half) {
  DcmhaCase c{64, 128, 128, 1, 2, 1, 4, 2, 2, {}, 0x3fff};
  DcmhaCall inputs(c, 13);
  const auto usual = inputs.run_with_gradients(AttentionImpl::fused, 1);
  for (int64_t limit : {1 << 17, 3 << 17, 1 << 19}) {
    cpu::attention::limit_kept_bytes(limit);
    const auto got = inputs.run_with_gradients(AttentionImpl::fused, 1);
    cpu::attention::limit_kept_bytes({});
    for (size_t k = 0; k < usual.size(); ++k) BOOST_TEST(is_close(got[k], usual[k], k == 0 ? 1e-12 : 1e-10));
  }
}

BOOST_AUTO_TEST_CASE(one_row_against_many_keys) {  // several segments; a window that begins inside one
  int before = threads();
  for (int64_t window : {0, 300}) {
    for (unsigned terms : {0x3fffu, 0u}) {
      DcmhaCase c{2, 2, 900, 1, 5, 1, 20, 2, 2, {}, terms};
      c.options.mask = {true, window, 898};
      DcmhaCall inputs(c, 11);
      NoGrad off;
      Tensor one = inputs.run(AttentionImpl::fused, 1);
      BOOST_TEST(is_close(one, inputs.run(AttentionImpl::reference, 1), 1e-12));
      BOOST_TEST(one.to_vector<double>() == inputs.run(AttentionImpl::fused, 3).to_vector<double>());
    }
  }
  set_threads(before);
}

BOOST_AUTO_TEST_CASE(same_bits_at_any_thread_count) {
  int before = threads();
  for (unsigned terms : {kTypical.terms, 0u}) {
    for (const auto& [length, window] : {std::pair<int64_t, int64_t>{150, 0}, {150, 40}, {300, 0}, {300, 40}}) {
      DcmhaCase c = kTypical;
      c.T = c.S = length;  // 300: forward takes blocks of 128, 64 and 32 rows on 1, 2 and 3 threads
      c.terms = terms;
      c.share = 2;
      c.options.mask.window = window;
      DcmhaCall inputs(c, 3, DType::f32);
      auto one = inputs.run_with_gradients(AttentionImpl::fused, 1);
      for (int n : {2, 3, 5}) {
        auto many = inputs.run_with_gradients(AttentionImpl::fused, n);
        for (size_t k = 0; k < one.size(); ++k) BOOST_TEST(one[k].to_vector<float>() == many[k].to_vector<float>());
      }
    }
  }
  set_threads(before);
}

BOOST_AUTO_TEST_CASE(every_instruction_set_in_f32) {
  DcmhaCall exact(kTypical, 4);
  auto want = exact.run_with_gradients(AttentionImpl::reference, 2);
  for (const auto* variant : cpu::attention::variants<float>()) {
    BOOST_TEST_CONTEXT(variant->name) {
      BOOST_TEST(cpu::attention::use_variant(variant->name));
      DcmhaCall inputs(kTypical, 4, DType::f32);
      for (size_t i = 0; i < inputs.x.size(); ++i) {
        if (inputs.x[i]) inputs.x[i].copy_(exact.x[i]);
      }
      auto got = inputs.run_with_gradients(AttentionImpl::fused, 2);
      // dy differs by its rounding to f32 only when drawn in f32: compare the values, and the gradients loosely.
      BOOST_TEST(is_close(got[0].to(DType::f64), want[0], 2e-6));
    }
  }
  cpu::attention::use_variant("");
  BOOST_TEST(!cpu::attention::use_variant("abacus"));
}

// Root of the mean square of the difference.
double distance(const Tensor& x, const Tensor& y) {
  const std::vector<double> a = x.to_vector<double>(), b = y.to_vector<double>();
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum / static_cast<double>(std::max<size_t>(1, a.size())));
}

// Values of bf16, without and with inner products as pairs: at most twice the error of the composed meaning, all in
// bf16, and no bit from the number of threads.
void check_bf16_cases() {
  std::mt19937_64 random(18);
  const int before = threads();
  for (uint64_t i = 0; i < 60; ++i) {
    DcmhaCase c = test::random_dcmha_case(random);
    if (i == 0) c = kTypical;
    if (i == 1) c = {1, 301, 301, 1, 4, 2, 8, 2, 2, {}, 0x3fff};
    if (i == 2) c = {2, 140, 140, 1, 4, 1, 37, 2, 2, {}, 0};
    BOOST_TEST_CONTEXT("case " << i << ": " << c.text()) {
      DcmhaCall narrow = DcmhaCall(c, i).as(DType::bf16, kCpu), exact = narrow.as(DType::f64, kCpu);
      const auto got = narrow.run_with_gradients(AttentionImpl::fused, 1);
      const auto again = narrow.run_with_gradients(AttentionImpl::fused, 2 + static_cast<int>(i % 2));
      const auto naive = narrow.run_with_gradients(AttentionImpl::reference, 2);
      const auto want = exact.run_with_gradients(AttentionImpl::reference, 2);
      BOOST_TEST_REQUIRE(got.size() == want.size());
      for (size_t k = 0; k < got.size(); ++k) {
        BOOST_TEST_CONTEXT("result " << k) {
          BOOST_TEST(got[k].to_vector<float>() == again[k].to_vector<float>());
          double size = 0;
          for (const double v : want[k].to_vector<double>()) size = std::max(size, std::fabs(v));
          BOOST_TEST(distance(got[k], want[k]) <= 2 * distance(naive[k], want[k]) + 0x1p-9 * size + 1e-5);
        }
      }
    }
  }
  set_threads(before);
}

BOOST_AUTO_TEST_CASE(bf16_without_pairs_is_as_exact_as_composed_ops) {
  cpu::attention::use_pairs("f32");
  check_bf16_cases();
  cpu::attention::use_pairs("");
}

BOOST_AUTO_TEST_CASE(pairs_of_bf16_are_as_exact_as_composed_ops) {
  for (const auto* variant : cpu::attention::pair_variants()) {
    BOOST_TEST_CONTEXT(variant->name) {
      BOOST_TEST_REQUIRE(cpu::attention::use_pairs(variant->name));
      BOOST_TEST(cpu::attention::pair_kernels() == variant);
      check_bf16_cases();
    }
  }
  cpu::attention::use_pairs("");
}

BOOST_AUTO_TEST_CASE(another_instruction_set_than_the_best_computes_bf16_too) {
  cpu::attention::use_pairs(cpu::attention::pair_variants().front()->name);
  for (const auto* variant : cpu::attention::variants<float>().subspan(1)) {
    BOOST_TEST(cpu::attention::use_variant(variant->name));
    BOOST_TEST(!cpu::attention::pair_kernels(), variant->name);
  }
  cpu::attention::use_variant("");
  cpu::attention::use_pairs("");
}

// Every result is the one of f32 tensors with the same values, rounded once.
BOOST_AUTO_TEST_CASE(sixteen_bit_inputs_are_computed_in_f32_without_pairs) {
  cpu::attention::use_pairs("f32");
  std::mt19937_64 random(6);
  const int before = threads();
  for (uint64_t i = 0; i < 40; ++i) {
    const DType dtype = i % 2 == 0 ? DType::bf16 : DType::f16;
    DcmhaCase c = test::random_dcmha_case(random);
    if (i < 2) c = kTypical;
    if (i == 2) c = {2, 140, 140, 1, 4, 1, 37, 2, 2, {}, 0};
    BOOST_TEST_CONTEXT("case " << i << ", " << str(dtype) << ": " << c.text()) {
      DcmhaCall narrow = DcmhaCall(c, i).as(dtype, kCpu), wide = narrow.as(DType::f32, kCpu);
      const auto got = narrow.run_with_gradients(AttentionImpl::fused, 2);
      const auto want = wide.run_with_gradients(AttentionImpl::fused, 2);
      BOOST_TEST_REQUIRE(got.size() == want.size());
      for (size_t k = 0; k < got.size(); ++k) {
        BOOST_TEST(str(got[k].dtype()) == str(dtype));
        // Without terms behind softmax backward reads y, which is rounded, for all gradients but that of v.
        if (k == 0 || k == 3 || c.terms >> 7 != 0) BOOST_TEST(is_close(got[k], want[k].to(dtype), 0), "result " << k);
      }
      if (c.T > 4) continue;  // without derivatives a few rows take the decoding kernel
      const NoGrad off;
      BOOST_TEST(is_close(narrow.run(AttentionImpl::fused, 2), wide.run(AttentionImpl::fused, 2).to(dtype), 0));
    }
  }
  set_threads(before);
  cpu::attention::use_pairs("");
}

BOOST_AUTO_TEST_CASE(pairs_are_multiplied_on_request_or_where_they_are_faster) {
  DcmhaCall half = DcmhaCall(kTypical, 6).as(DType::bf16, kCpu);
  BOOST_TEST(cpu::attention::use_pairs("f32"));
  BOOST_TEST(!cpu::attention::pair_kernels());
  const Tensor single = half.run(AttentionImpl::automatic, 2);
  BOOST_TEST(cpu::attention::use_pairs(cpu::attention::pair_variants().front()->name));
  BOOST_TEST(!is_close(half.run(AttentionImpl::automatic, 2), single, 0));
  BOOST_TEST(!cpu::attention::use_pairs("abacus"));
  BOOST_TEST(cpu::attention::use_pairs(""));
  BOOST_TEST(bool(cpu::attention::pair_kernels()) == (detail::has_amx() || detail::prefers_avx512_bf16()));
}

// A cache may be long: a token must neither convert it nor need memory for that, and has the bits of a converted one.
BOOST_AUTO_TEST_CASE(decoding_reads_sixteen_bit_keys_where_they_are) {
  const int threads_before = threads();
  for (const DType dtype : {DType::bf16, DType::f16}) {
    for (const unsigned terms : {kTypical.terms, 0u}) {
      DcmhaCase c{1, 1, 3000, 1, 4, 1, 64, 2, 2, {}, terms};
      c.options.mask.offset = c.S - 1;
      DcmhaCall narrow = DcmhaCall(c, 9).as(dtype, kCpu), wide = narrow.as(DType::f32, kCpu);
      const NoGrad off;
      reset_peak_memory(kCpu);
      const int64_t before = memory_by_use(kCpu).peak();
      const Tensor got = narrow.run(AttentionImpl::fused, 2);
      const int64_t max = memory_by_use(kCpu).peak() - before, of_keys = 4 * narrow.x[1].numel();
      BOOST_TEST(max < of_keys, str(dtype) << ", terms " << terms << ": " << max << " bytes");
      BOOST_TEST(is_close(got, wide.run(AttentionImpl::fused, 2).to(dtype), 0));
    }
  }
  set_threads(threads_before);
}

// The maps times the values are the result of the op; masked keys are marked in all four.
BOOST_AUTO_TEST_CASE(maps_are_those_of_the_op) {
  std::mt19937_64 random(4);
  for (uint64_t i = 0; i < 40; ++i) {
    const DcmhaCase c = test::random_dcmha_case(random);
    DcmhaCall inputs(c, i);
    const NoGrad off;
    const DcmhaInputs x = test::call_of(inputs.x);
    DcmhaOptions options = c.options;
    options.groups = c.G;
    const AttentionMaps maps = attention_maps(x.q, x.k, x.pre, x.post, options);
    std::vector<Tensor> values;  // of each head (B, S, d)
    for (int64_t n = 0; n < c.G * c.M; ++n) values.push_back(squeeze(slice(x.v, 2, n / c.share, n / c.share + 1), 2));
    const Tensor y = permute(matmul(maps.probs_composed, stack(values, 1)), {0, 2, 1, 3});
    BOOST_TEST_CONTEXT(c.text()) {
      BOOST_TEST(is_close(y.to_vector<double>(), inputs.run(AttentionImpl::reference).to_vector<double>(), 1e-12, 0.1));
      const Tensor masked = eq(maps.scores, -INFINITY);
      BOOST_TEST(is_close(masked, eq(maps.scores_composed, -INFINITY), 0));
      BOOST_TEST(sum(abs(masked_fill(maps.probs, eq(masked, 0), 0))).item() == 0);
      if (c.terms == 0) BOOST_TEST(is_close(maps.scores, maps.scores_composed, 0));
      if (c.terms == 0) BOOST_TEST(is_close(maps.probs, maps.probs_composed, 0));
    }
  }
  DcmhaCall call(DcmhaCase{1, 3, 3, 1, 2, 1, 2, 1, 1, {}, 0x3fff}, 1);
  const DcmhaInputs x = test::call_of(call.x);
  const auto f = [&](const std::vector<Tensor>& in) {
    return attention_maps(in[0], in[1], x.pre, x.post).probs_composed;
  };
  BOOST_TEST(gradcheck(f, {x.q, x.k}).error < 1e-7);
  const Tensor q = x.q.detach().to(DType::bf16), k = x.k.detach().to(DType::bf16);
  BOOST_TEST((attention_maps(q, k, {}, {}).probs.dtype() == DType::f32));
  BOOST_TEST(
      test::throws_with([&] { attention_maps(q, k.sliced(3, 0, 1), {}, {}); }, "[attention_maps] keys must have"));
}

BOOST_AUTO_TEST_CASE(inputs_may_be_views) {
  DcmhaCase c = kTypical;
  DcmhaCall plain(c, 7);
  auto want = plain.run_with_gradients(AttentionImpl::fused, 2);
  DcmhaCall strided(c, 7);
  for (Tensor& t : strided.x) {  // the same values inside a wider, transposed buffer
    if (!t || t.rank() < 3) continue;
    Tensor wide = zeros({t.dim(1), t.dim(0), t.numel() / t.dim(0) / t.dim(1) + 3}, DType::f64);
    Tensor view = wide.transposed(0, 1).sliced(2, 2, wide.dim(2) - 1);
    view.copy_(t.detach().reshaped({t.dim(0), t.dim(1), -1}));
    Strides strides = t.strides();
    strides[0] = view.strides()[0];
    strides[1] = view.strides()[1];
    t = view.view(t.shape(), strides, 0);
    require_grad(t);
  }
  auto got = strided.run_with_gradients(AttentionImpl::fused, 2);
  for (size_t k = 0; k < want.size(); ++k) BOOST_TEST(is_close(got[k], want[k], 0));
}

BOOST_AUTO_TEST_CASE(nan_in_a_score_stays_in_its_row) {
  DcmhaCall inputs({1, 40, 40, 1, 3, 1, 4, 2, 2, {}, 0x3fff}, 8);
  inputs.x[0].mutable_data<double>()[17 * 3 * 4] = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> y = inputs.run(AttentionImpl::fused, 2).to_vector<double>();
  for (size_t t = 0; t < 40; ++t) BOOST_TEST(std::isnan(y[t * 12]) == (t == 17));
}

// As where all keys are masked. One head of the row, or all keys of a segment alone, leave the others as they are.
BOOST_AUTO_TEST_CASE(scores_of_minus_infinity_alone_give_zeros) {
  for (int64_t keys : {6, 900}) {
    for (int64_t rows : {1, 2, 9}) {
      Tensor q = full({1, rows, 2, 4}, 1, DType::f64),
             v = test::DcmhaCall({1, rows, keys, 1, 2, 1, 4, 2, 2, {}, 0}, 3).x[2];
      Tensor k = full({1, keys, 2, 4}, -std::numeric_limits<double>::infinity(), DType::f64);
      k.sliced(2, 1, 2).sliced(1, keys / 2, keys).fill(0.25);
      const auto run = [&](AttentionImpl impl) {
        return scaled_dot_product_attention(q, k, v, {.mask = {.causal = false}, .impl = impl});
      };
      const Tensor want = run(AttentionImpl::reference);
      for (double y : want.detach().sliced(2, 0, 1).to_vector<double>()) BOOST_TEST(y == 0.0);
      BOOST_TEST(is_close(run(AttentionImpl::fused), want, 1e-13));
      NoGrad off;  // a few rows take the decoding kernel
      BOOST_TEST(is_close(run(AttentionImpl::fused), want, 1e-13));
    }
  }
}

BOOST_AUTO_TEST_CASE(an_empty_batch_or_no_keys) {
  DcmhaCall none({0, 5, 5, 1, 2, 1, 3, 2, 2, {}, 0x3fff}, 9);
  BOOST_TEST(none.run(AttentionImpl::fused, 1).numel() == 0);
  DcmhaCall blind({1, 5, 3, 1, 2, 1, 3, 2, 2, {}, 0x3fff}, 9);
  DcmhaCase before_all_keys{1, 5, 3, 1, 2, 1, 3, 2, 2, {}, 0x3fff};
  before_all_keys.options.mask.offset = -5;
  DcmhaCall masked(before_all_keys, 9);
  for (double v : masked.run(AttentionImpl::fused, 1).to_vector<double>()) BOOST_TEST(v == 0.0);
}

// Forward + backward may hold the packed copies of keys and values and their gradients, never B x N x T x S scores.
BOOST_AUTO_TEST_CASE(memory_does_not_grow_with_the_scores) {
  DcmhaCase c{1, 2048, 2048, 1, 8, 1, 16, 2, 2, {}, 0x3fff & ~0x81u};
  DcmhaCall inputs(c, 10, DType::f32);
  int64_t scores = 8 * 2048 * 2048 * 4;
  int64_t before = memory_stats(kCpu).current;
  reset_peak_memory(kCpu);
  auto results = inputs.run_with_gradients(AttentionImpl::fused, 2);
  BOOST_TEST(memory_stats(kCpu).peak - before < scores / 2);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace braid
