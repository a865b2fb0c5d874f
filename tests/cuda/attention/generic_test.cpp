// Attention on the GPU: against the reference on the CPU, the golden cases, decoding, precision, determinism
// and memory.

#include "braid/autograd.h"
#include "braid/models/families/dcformer/model.h"
#include "tests/cuda/support.h"
#include "tests/models/support.h"
#include "tests/support/dcmha_cases.h"
#include "tests/support/golden.h"

using namespace braid;
using namespace braid::test;

namespace {

// Every result and gradient of the case on the GPU against the CPU's reference, in f64.
void check_against_reference(const DcmhaCase& c, uint64_t seed) {
  DcmhaCall reference_call(c, seed), gpu_call = reference_call.as(DType::f64, kGpu);
  std::vector<Tensor> gpu = gpu_call.run_with_gradients(AttentionImpl::fused),
                      reference = reference_call.run_with_gradients(AttentionImpl::reference);
  BOOST_REQUIRE(gpu.size() == reference.size());
  if (c.T <= 8) {  // without derivatives a few rows take the decoding kernels
    NoGrad off;
    BOOST_TEST(
        is_close(gpu_call.run(AttentionImpl::fused).to_vector<double>(), reference[0].to_vector<double>(), 1e-12, 0.1));
  }
  for (size_t k = 0; k < gpu.size(); ++k) {
    BOOST_TEST_CONTEXT("result " << k) {
      BOOST_REQUIRE(gpu[k].shape() == reference[k].shape());
      BOOST_TEST(is_close(gpu[k].to_vector<double>(), reference[k].to_vector<double>(), k == 0 ? 1e-12 : 1e-10,
                          k == 0 ? 0.1 : 1e-2));
    }
  }
}

const DcmhaCase kTypical{2, 45, 45, 1, 8, 1, 16, 2, 2, {}, 0x3fff};

}  // namespace

BOOST_AUTO_TEST_SUITE(cuda_attention_generic)

BOOST_AUTO_TEST_CASE(random_calls_equal_the_reference) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 120; ++i) {
    DcmhaCase c = random_dcmha_case(random);
    if (random() % 2) c.options.workspace = 1 + static_cast<int64_t>(random() % 20000);  // several blocks
    BOOST_TEST_CONTEXT("case " << i << ": " << c.text() << " workspace " << c.options.workspace) {
      check_against_reference(c, static_cast<uint64_t>(i));
    }
  }
}

BOOST_AUTO_TEST_CASE(more_keys_than_threads_and_many_ranks) {
  for (int64_t window : {0, 130}) {
    DcmhaCase c{1, 9, 301, 1, 3, 1, 8, 5, 9, {}, 0x3fff};
    c.options.mask = {true, window, 292};
    check_against_reference(c, 5);
  }
}

BOOST_AUTO_TEST_CASE(golden_values_and_gradients) {
  for (const char* name : kGoldenAttentions) {
    check_golden_attention(name, DType::f64, 1e-10, AttentionImpl::fused, kGpu);
    check_golden_attention(name, DType::f32, 2e-5, AttentionImpl::fused, kGpu);
  }
}

// At most twice the error of the reference in the same 16-bit type, which rounds after each op.
BOOST_AUTO_TEST_CASE(sixteen_bits_err_no_more_than_twice_the_plain_computation) {
  for (DType dtype : {DType::bf16, DType::f16}) {
    for (unsigned terms : {0x3fffu, 0u}) {
      for (int64_t heads : {8, 16}) {  // 16 in bf16: on tensor cores
        DcmhaCase c = kTypical;
        c.terms = terms;
        c.M = heads;
        DcmhaCall plain(c, 6, dtype), exact = plain.as(DType::f64, kCpu), gpu = plain.as(dtype, kGpu);
        auto want = exact.run_with_gradients(AttentionImpl::reference),
             naive = plain.run_with_gradients(AttentionImpl::reference);
        auto got = gpu.run_with_gradients(AttentionImpl::fused);
        for (size_t k = 0; k < want.size(); ++k) {
          BOOST_TEST_CONTEXT(str(dtype) << " heads " << heads << " terms " << terms << " result " << k) {
            BOOST_TEST(str(got[k].dtype()) == str(dtype));
            BOOST_TEST(largest_error(got[k], want[k]) <= 2 * largest_error(naive[k], want[k]));
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(decoding_equals_the_full_pass) {
  NoGrad off;
  for (int64_t window : {0, 20}) {
    for (int64_t T : {1, 3, 8}) {
      DcmhaCase c = kTypical;
      c.options.mask.window = window;
      c.share = 2;
      DcmhaCall full(c, 9, DType::f64, kGpu);
      Tensor all_rows = full.run(AttentionImpl::fused);
      DcmhaCase last = c;
      last.T = T;
      last.options.workspace = T == 3 ? 20000 : 0;  // one sample at a time
      last.options.mask.offset = c.T - T;
      DcmhaCall few(last, 9, DType::f64, kGpu);
      for (size_t i = 0; i < few.x.size(); ++i) {  // the last rows of the queries, the very same keys
        const bool static_term = i == 3 || i == 10, rows = few.x[i].dim(1) == T && !static_term;
        few.x[i] = rows ? full.x[i].detach().sliced(1, c.T - T, c.T) : full.x[i];
      }
      BOOST_TEST(
          is_close(few.run(AttentionImpl::fused), all_rows.detach().sliced(1, c.T - T, c.T).contiguous(), 1e-13));
    }
  }
}

BOOST_AUTO_TEST_CASE(decoding_in_sixteen_bits_errs_no_more_than_twice_the_plain_computation) {
  NoGrad off;
  DcmhaCase c = kTypical;
  c.T = 2;
  c.options.mask.offset = c.S - 2;
  for (DType dtype : {DType::bf16, DType::f16}) {
    DcmhaCall plain(c, 12, dtype);
    Tensor want = plain.as(DType::f64, kCpu).run(AttentionImpl::reference), naive = plain.run(AttentionImpl::reference);
    Tensor got = plain.as(dtype, kGpu).run(AttentionImpl::fused);
    BOOST_TEST_CONTEXT(str(dtype)) BOOST_TEST(largest_error(got, want) <= 2 * largest_error(naive, want));
  }
}

BOOST_AUTO_TEST_CASE(inputs_may_be_views) {
  DcmhaCall plain(kTypical, 7, DType::f64, kGpu), strided(kTypical, 7, DType::f64, kGpu);
  auto want = plain.run_with_gradients(AttentionImpl::fused);
  for (Tensor& t : strided.x) {  // the same values inside a wider, transposed buffer
    if (t.rank() < 4) continue;
    Tensor wide = zeros({t.dim(1), t.dim(0), t.numel() / t.dim(0) / t.dim(1) + 3}, DType::f64, kGpu);
    Tensor view = wide.transposed(0, 1).sliced(2, 2, wide.dim(2) - 1);
    view.copy_(t.detach().reshaped({t.dim(0), t.dim(1), -1}));
    Strides strides = t.strides();
    strides[0] = view.strides()[0];
    strides[1] = view.strides()[1];
    t = view.view(t.shape(), strides, 0);
    require_grad(t);
  }
  auto got = strided.run_with_gradients(AttentionImpl::fused);
  for (size_t k = 0; k < want.size(); ++k) BOOST_TEST(is_close(got[k], want[k], 0));
}

BOOST_AUTO_TEST_CASE(only_some_gradients_are_required) {
  DcmhaCall all(kTypical, 8, DType::f64, kGpu);
  auto want = all.run_with_gradients(AttentionImpl::fused);
  for (size_t only = 0; only < all.x.size(); ++only) {
    DcmhaCall one(kTypical, 8, DType::f64, kGpu);
    for (size_t i = 0; i < one.x.size(); ++i) {
      if (i != only) one.x[i] = one.x[i].detach().clone();
    }
    backward(one.run(AttentionImpl::fused), one.dy);
    BOOST_TEST_CONTEXT("input " << only) { BOOST_TEST(is_close(grad(one.x[only]), want[only + 1], 0)); }
  }
}

BOOST_AUTO_TEST_CASE(rows_without_keys_give_zeros) {
  DcmhaCase c{1, 12, 3, 1, 2, 1, 3, 2, 2, {}, 0x3fff};
  c.options.mask.offset = -12;
  for (const Tensor& result : DcmhaCall(c, 9, DType::f64, kGpu).run_with_gradients(AttentionImpl::fused)) {
    for (double v : result.to_vector<double>()) BOOST_TEST(v == 0.0);
  }
  check_against_reference({1, 5, 3, 1, 2, 1, 3, 2, 2, {{.mask = {true, 0, -3}}}, 0x3fff}, 9);
}

BOOST_AUTO_TEST_CASE(nan_in_a_score_stays_in_its_row) {
  DcmhaCall call({1, 40, 40, 1, 3, 1, 4, 2, 2, {}, 0x3fff}, 8);
  call.x[0].mutable_data<double>()[17 * 3 * 4] = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> y = call.as(DType::f64, kGpu).run(AttentionImpl::fused).to_vector<double>();
  for (size_t t = 0; t < 40; ++t) BOOST_TEST(std::isnan(y[t * 12]) == (t == 17));
}

BOOST_AUTO_TEST_CASE(same_bits_in_any_order_of_threads) {
  for (unsigned terms : {0x3fffu, 0u}) {
    for (int64_t heads : {8, 16}) {
      DcmhaCase c = kTypical, few;
      c.T = 19;
      c.terms = terms;
      c.M = heads;
      few = c;
      few.T = 2;
      few.options.mask.offset = c.S - 2;
      DcmhaCall training(c, 3, DType::bf16, kGpu), decoding(few, 3, DType::bf16, kGpu);
      std::vector<Tensor> first;
      in_each_order([&] {
        std::vector<Tensor> got = training.run_with_gradients(AttentionImpl::fused);
        NoGrad off;
        got.push_back(decoding.run(AttentionImpl::fused));
        if (first.empty()) first = got;
        for (size_t k = 0; k < got.size(); ++k) BOOST_TEST(same_bits(got[k], first[k]));
      });
    }
  }
}

// The first product takes the workspace of all products.
void make_first_product() { matmul(zeros({1, 1}, DType::f32, kGpu), zeros({1, 1}, DType::f32, kGpu)); }

BOOST_AUTO_TEST_CASE(workspace_bounds_the_memory) {
  make_first_product();
  DcmhaCase c{1, 256, 256, 1, 4, 1, 4, 1, 1, {}, 0};
  const int64_t scores = 4 * 256 * 256 * 4;
  for (int64_t workspace : {scores / 64, scores / 8}) {
    c.options.workspace = workspace;
    DcmhaCall call(c, 10, DType::f32, kGpu);
    const int64_t before = memory_stats(kGpu).current;
    reset_peak_memory(kGpu);
    auto results = call.run_with_gradients(AttentionImpl::fused);
    const int64_t linear = 12 * 256 * 4 * 4 * 4;  // results, gradients, row statistics
    BOOST_TEST(memory_stats(kGpu).peak - before <= workspace + linear);
  }
}

// The same through a model: its setting reaches every layer's attention.
BOOST_AUTO_TEST_CASE(the_workspace_of_a_model_bounds_its_memory) {
  models::DcformerConfig config = small_config();
  config.n_layer = 1;
  config.n_head = 8;
  config.block_size = 192;
  config.window_size = 192;
  config.head_dim = 0;
  config.layer_windows.clear();
  models::resolve(config);
  std::vector<int64_t> words(192);
  for (size_t i = 0; i < words.size(); ++i) words[i] = static_cast<int64_t>(i * i % 200);
  const Tensor ids = from_vector(words, {1, 192}, kGpu);
  const auto peak = [&](auto model, int64_t workspace) {
    model.to(kGpu);
    nn::require_grad(model);
    model.set_attention_workspace(workspace);
    const int64_t before = memory_stats(kGpu).current;
    reset_peak_memory(kGpu);
    backward(model.loss_sum(ids, ids));
    return memory_stats(kGpu).peak - before;
  };
  const int64_t scores = 3 * 8 * 192 * 192 * 4;  // with their gradients and the weights, f32
  const RandomKey key{1, 0};
  make_first_product();
  const int64_t bounded = peak(models::Dcformer(config, key), scores / 8),
                whole = peak(models::Dcformer(config, key), 0);
  BOOST_TEST(bounded < whole - scores / 4);
}

BOOST_AUTO_TEST_CASE(an_unsupported_call_gives_its_reason) {
  DcmhaCase c{1, 3, 3, 1, 200, 1, 2, 1, 1, {}, 0x3fff};
  DcmhaCall call(c, 11, DType::f64, kGpu);
  BOOST_TEST(throws_with([&] { call.run(AttentionImpl::fused); }, "200 heads of a group in f64"));
  BOOST_TEST(
      is_close(call.run(AttentionImpl::automatic), call.as(DType::f64, kCpu).run(AttentionImpl::reference), 1e-12));
  c.terms = 0;  // nothing is mixed: the heads need no shared memory
  check_against_reference(c, 11);
}

BOOST_AUTO_TEST_SUITE_END()
