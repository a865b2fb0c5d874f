// Scaled dot-product attention by cuDNN: its calls, and the calls that the generic kernels compute instead.
#include "braid/cuda/attention/sdpa_cudnn.h"

#include "braid/autograd.h"
#include "braid/cuda/attention/generic.h"
#include "braid/tensor/graph.h"
#include "braid/tensor/kernels/backend.h"
#include "tests/cuda/support.h"
#include "tests/support/dcmha_cases.h"
#if defined(BRAID_EMULATION)
#include "tests/cuda/emulation/gpu.h"
#endif

using namespace braid;
using namespace braid::test;
using cuda::attention::sdpa_cudnn::backward;
using cuda::attention::sdpa_cudnn::forward;

namespace {

// Values and gradients err at most twice as much as the reference in the same type.
void check_case(DcmhaCase c, DType dtype) {
  c.terms = 0;
  DcmhaCall naive_call(c, 6, dtype), exact_call = naive_call.as(DType::f64, kCpu), call = naive_call.as(dtype, kGpu);
  const auto want = exact_call.run_with_gradients(AttentionImpl::reference),
             naive = naive_call.run_with_gradients(AttentionImpl::reference);
  const auto got = call.run_with_gradients(AttentionImpl::fused);
  for (size_t k = 0; k < want.size(); ++k) {
    BOOST_TEST_CONTEXT(c.text() << " " << str(dtype) << " workspace " << c.options.workspace << " result " << k) {
      BOOST_TEST(largest_error(got[k], want[k]) <= 2 * largest_error(naive[k], want[k]) + 1e-5);
    }
  }
}

DcmhaCase sizes(int64_t B, int64_t T, int64_t S, int64_t N, int64_t share, int64_t d, AttentionMask mask) {
  return {B, T, S, 1, N, share, d, 0, 0, {{.mask = mask}}, 0};
}

// Inputs of shape (B, T, N, d), (B, S, Nkv, d) on the GPU.
DcmhaInputs inputs(int64_t B, int64_t T, int64_t S, int64_t N, int64_t Nkv, int64_t d, AttentionMask mask,
                   DType dtype = DType::bf16) {
  return {.q = random_tensor({B, T, N, d}, 1, dtype).to(kGpu),
          .k = random_tensor({B, S, Nkv, d}, 2, dtype).to(kGpu),
          .v = random_tensor({B, S, Nkv, d}, 3, dtype).to(kGpu),
          .pre = {},
          .post = {},
          .groups = 1,
          .mask = mask,
          .scale = 0.3};
}

// Where Braid was built without cuDNN, or finds an old one, the generic kernels compute all of this.
bool without_cudnn() {
#if defined(BRAID_EMULATION)
  return false;
#elif defined(BRAID_HAVE_CUDNN)
  const DcmhaInputs x = inputs(1, 64, 64, 1, 1, 8, {});
  Tensor y = empty_like(x.q), lse = empty({1, 64, 1}, DType::f32, kGpu);
  const std::string reason = forward(x, y, lse).value_or("");
  const bool old = reason.find("or newer is needed") != std::string::npos;
  if (old) BOOST_TEST_MESSAGE("not tested: " << reason);
  return old;
#else
  BOOST_TEST_MESSAGE("not tested: Braid was built without cuDNN");
  return true;
#endif
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cuda_attention_sdpa_cudnn)

BOOST_AUTO_TEST_CASE(sizes_and_masks) {
  const AttentionMask aligned{true, 0, 0}, last{true, 0, 9}, window{true, 7, 0}, both{true, 7, 9}, none{false, 0, 0};
  for (DType dtype : {DType::bf16, DType::f16}) {
    check_case(sizes(2, 37, 37, 4, 1, 16, aligned), dtype);
    check_case(sizes(2, 28, 37, 16, 1, 8, last), dtype);
    check_case(sizes(2, 37, 37, 3, 1, 8, window), dtype);
    check_case(sizes(2, 28, 37, 4, 2, 8, both), dtype);
    check_case(sizes(2, 19, 37, 4, 4, 8, none), dtype);
    check_case(sizes(2, 37, 19, 32, 2, 8, aligned), dtype);
    check_case(sizes(1, 64, 128, 4, 2, 8, none), dtype);
  }
}

// In backward the workspace allows some samples, or some heads of one sample.
BOOST_AUTO_TEST_CASE(backward_in_pieces) {
  const int64_t head = 2 * 64 * 128;  // bytes that one query head of at most 64 rows and 128 keys takes
  for (int64_t heads : {24, 12, 8, 5, 2}) {
    DcmhaCase c = sizes(3, 20, 20, 8, 2, 8, {});
    c.options.workspace = heads * head;
    check_case(c, DType::bf16);
  }
}

BOOST_AUTO_TEST_CASE(log_sums_are_those_of_the_generic_kernels) {
  if (without_cudnn()) return;
  for (const AttentionMask& v : {AttentionMask{true, 0, 5}, {true, 4, 5}, {false, 0, 0}}) {
    const DcmhaInputs x = inputs(2, 21, 26, 6, 3, 8, v);
    DcmhaInputs wide = x;
    for (Tensor* t : {&wide.q, &wide.k, &wide.v}) *t = t->to(DType::f32);
    Tensor y = empty_like(x.q), lse = empty({2, 21, 6}, DType::f32, kGpu), want = empty_like(lse),
           other = empty_like(wide.q);
    BOOST_TEST(!forward(x, y, lse));
    backend(kGpu).attention.forward({}, wide, other, want);
    BOOST_TEST(is_close(lse, want, 1e-5));
    BOOST_TEST(is_close(y.to_vector<double>(), other.to_vector<double>(), 0x1p-7, 0.1));
  }
}

BOOST_AUTO_TEST_CASE(views_and_fewer_gradients) {
  if (without_cudnn()) return;
  const DcmhaInputs x = inputs(2, 12, 12, 4, 4, 8, {});
  DcmhaInputs strided = x;
  Tensor all = empty({2, 12, 3, 4, 8}, DType::bf16, kGpu);  // q, k and v side by side, as one projection writes them
  Tensor* parts[] = {&strided.q, &strided.k, &strided.v};
  for (int i = 0; i < 3; ++i) {
    Tensor part = all.sliced(2, i, i + 1).squeezed(2);
    part.copy_(*parts[i]);
    *parts[i] = part;
  }
  DcmhaInputs odd = x;  // nothing here lies at multiples of 16 bytes
  odd.q = misaligned_on_gpu(x.q);
  odd.k = empty({2, 12, 4, 9}, DType::bf16, kGpu).sliced(3, 0, 8);
  odd.k.copy_(x.k);

  const Tensor dy = random_tensor({2, 12, 4, 8}, 4, DType::bf16).to(kGpu);
  std::vector<Tensor> first;
  for (const DcmhaInputs& in : {x, strided, odd}) {
    Tensor y = empty_like(x.q), lse = empty({2, 12, 4}, DType::f32, kGpu);
    BOOST_TEST(!forward(in, y, lse));
    DcmhaGradients g{.q = empty_like(x.q), .k = empty_like(x.k), .v = empty_like(x.v), .pre = {}, .post = {}};
    BOOST_TEST(!backward(in, y, lse, dy, g, 1 << 20));
    DcmhaGradients only_keys{.q = {}, .k = empty_like(x.k), .v = {}, .pre = {}, .post = {}};
    BOOST_TEST(!backward(in, y, lse, dy, only_keys, 1 << 20));
    const std::vector<Tensor> got{y, lse, g.q, g.k, g.v};
    if (first.empty()) first = got;
    for (size_t i = 0; i < got.size(); ++i) BOOST_TEST(same_bits(got[i], first[i]));
    BOOST_TEST(same_bits(only_keys.k, g.k));
  }
}

BOOST_AUTO_TEST_CASE(a_captured_call_reads_its_inputs_again) {
  if (without_cudnn()) return;
  DcmhaInputs x = inputs(1, 9, 9, 2, 2, 8, {});
  Tensor y = empty_like(x.q), lse = empty({1, 9, 2}, DType::f32, kGpu), want = empty_like(x.q);
  BOOST_TEST(!forward(x, y, lse));
  Graph graph(kGpu, [&] { forward(x, y, lse); });
  x.q.copy_(random_tensor({1, 9, 2, 8}, 8, DType::bf16).to(kGpu));
  graph.replay();
  forward(x, want, lse);
  BOOST_TEST(same_bits(y, want));
}

BOOST_AUTO_TEST_CASE(unsupported_calls_have_a_reason_and_are_computed_by_the_generic_kernels) {
  const auto unsupported = [](const DcmhaInputs& x, const char* part) {
    const std::string reason = cuda::attention::sdpa_cudnn::unsupported_reason(x).value_or("");
    BOOST_TEST(reason.find(part) != std::string::npos, "\"" << reason << "\" lacks \"" << part << "\"");
  };
  unsupported(inputs(1, 4, 4, 2, 2, 8, {}, DType::f32), "needs bf16 or f16, the queries are f32");
  unsupported(inputs(1, 4, 4, 2, 2, 6, {}), "multiple of 8 and at most 256, here is d = 6");
  unsupported(inputs(1, 4, 9, 2, 2, 8, {true, 0, 2}), "4 queries begin at position 2 of 9 keys");
  unsupported(inputs(1, 9, 4, 2, 2, 8, {true, 3, 0}), "may have all of the 4 keys masked");
  unsupported(inputs(1, 9, 4, 2, 2, 8, {true, 0, -5}), "may have all of the 4 keys masked");
  unsupported(inputs(1, 0, 4, 2, 2, 8, {}), "no elements");
  unsupported(inputs(1, 64, 65, 2, 2, 8, {}), "multiples of 64, here are 64 queries and 65 keys");
  BOOST_TEST(!cuda::attention::sdpa_cudnn::unsupported_reason(inputs(2, 64, 65, 2, 2, 8, {})));
  BOOST_TEST(!cuda::attention::sdpa_cudnn::unsupported_reason(inputs(1, 64, 128, 2, 2, 8, {})));
  DcmhaInputs mixed = inputs(1, 4, 4, 2, 2, 8, {});
  mixed.pre.base = random_tensor({1, 2, 2}, 5, DType::bf16).to(kGpu);
  unsupported(mixed, "cannot mix heads");

  check_case(sizes(2, 17, 17, 16, 1, 6, {}), DType::bf16);
  check_case(sizes(1, 17, 29, 32, 1, 8, {true, 0, 3}), DType::bf16);
  check_case(sizes(1, 17, 9, 4, 1, 8, {true, 3, 0}), DType::f16);
  DcmhaCase tight = sizes(1, 17, 17, 4, 2, 8, {});
  tight.options.workspace = 1000;  // less than backward needs for one key/value head
  check_case(tight, DType::bf16);
}

// cuDNN's log-sums are those of f32 scores; the generic kernels round scores to 16 bits. Scores are large here: with
// cuDNN's log-sums the rows of P would be far from 1.
BOOST_AUTO_TEST_CASE(generic_backward_after_cudnn_is_that_of_the_generic_kernels) {
  if (without_cudnn()) return;
  DcmhaInputs x = inputs(2, 40, 40, 4, 4, 16, {true, 0, 0});
  x.scale = 16;
  x.workspace = 1000;  // less than cuDNN's backward needs for one head
  const AttentionPlan plan = backend(kGpu).attention.plan(x, true);
  BOOST_REQUIRE((plan.forward == AttentionKernel::sdpa_cudnn && plan.backward == AttentionKernel::generic));
  DcmhaInputs groups = x;
  groups.groups = 4;
  const Tensor dy = random_tensor({2, 40, 4, 16}, 4, DType::bf16).to(kGpu);
  Tensor y = empty_like(x.q), lse = empty({2, 40, 4}, DType::f32, kGpu);
  const auto gradients = [&](auto&& backward) {
    DcmhaGradients g{.q = empty_like(x.q), .k = empty_like(x.k), .v = empty_like(x.v), .pre = {}, .post = {}};
    backward(g);
    return std::vector<Tensor>{g.q, g.k, g.v};
  };
  backend(kGpu).attention.forward(plan, x, y, lse);
  const auto got = gradients([&](auto& g) { backend(kGpu).attention.backward(plan, x, y, lse, dy, g); });
  cuda::attention::generic::forward(groups, y, lse, x.workspace);
  const auto want = gradients([&](auto& g) { cuda::attention::generic::backward(groups, lse, dy, g, x.workspace); });
  for (size_t i = 0; i < got.size(); ++i) BOOST_TEST(same_bits(got[i], want[i]));
}

#if defined(BRAID_EMULATION)
// Calls of `pass` that `kernel` computed for this reason.
int64_t uses(const std::string& pass, const std::string& kernel, const std::string& reason = "") {
  for (const AttentionUse& use : attention_uses())
    if (use.pass == pass && use.kernel == kernel && use.reason == reason) return use.calls;
  return 0;
}

// Which kernels served a call is recorded, and why they are not the planned ones.
BOOST_AUTO_TEST_CASE(what_serves_a_call_is_recorded) {
  const std::string none = "cuDNN 9.16 or newer is needed, found version number 90100",
                    wide = "cuDNN's attention needs bf16 or f16, the queries are f32";
  const auto run = [](DType dtype) {
    Tensor q = random_tensor({2, 6, 2, 8}, 1, dtype).to(kGpu);
    require_grad(q);
    backward(sum(scaled_dot_product_attention(q, q, q)));
  };
  const int64_t served[2] = {uses("forward", "sdpa_cudnn"), uses("backward", "sdpa_cudnn")};
  run(DType::bf16);
  BOOST_TEST(uses("forward", "sdpa_cudnn") == served[0] + 1);
  BOOST_TEST(uses("backward", "sdpa_cudnn") == served[1] + 1);
  {
    emulated::OtherGpu gpu;
    gpu->no_cudnn = none;
    run(DType::bf16);
  }
  BOOST_TEST(uses("forward", "generic", none) == 1);
  BOOST_TEST(uses("backward", "generic", none) == 1);
  BOOST_TEST(uses("forward", "sdpa_cudnn") == served[0] + 1);
  const int64_t before = uses("forward", "generic", wide);
  run(DType::f32);
  BOOST_TEST(uses("forward", "generic", wide) == before + 1);
  BOOST_TEST(text_of({{"forward", "sdpa_cudnn", "", 3}, {"backward", "generic", "no plan", 2}}) ==
             "forward by sdpa_cudnn; backward by generic (no plan)");
}
#endif

BOOST_AUTO_TEST_SUITE_END()
