// DCMHA on tensor cores against the reference in f64. The bound is the error of the reference itself when it is
// computed in bf16, rounding after every operation.
#include "braid/cuda/attention/tensor_core.h"

#include <array>
#include <cmath>

#include "braid/autograd.h"
#include "braid/tensor/kernels/backend.h"
#include "braid/tensor/kernels/pointwise_ops.h"
#include "tests/support/compare.h"
#include "tests/support/dcmha_cases.h"
#include "tests/support/random.h"
#if defined(BRAID_EMULATION)
#include "tests/cuda/emulation/engine.h"
#endif

using namespace braid;
using namespace braid::test;

namespace {

const Device kGpu{Device::Kind::cuda, 0};

struct Case {
  int64_t B, T, S, N, Nkv, d, q_rank, k_rank;
  AttentionMask mask;
  unsigned terms = kAll;  // bits: base, q factors, k factors, q gate, k gate; of pre (low five) and of post
  int64_t workspace = kAttentionWorkspace;
  static constexpr unsigned kAll = 0x3ff;
};

const char* const kNames[] = {"y",           "q",          "k",           "v",          "pre.base",    "pre.q_down",
                              "pre.q_up",    "pre.k_down", "pre.k_up",    "pre.q_gate", "pre.k_gate",  "post.base",
                              "post.q_down", "post.q_up",  "post.k_down", "post.k_up",  "post.q_gate", "post.k_gate"};

using Tensors = std::vector<Tensor>;  // in the order of for_each_tensor

// bf16 values on the CPU, so that every computation starts from the same values.
Tensors inputs_of(const Case& c) {
  Tensors x;
  auto add = [&](const Shape& shape, bool present, double deviation) {
    x.push_back(present ? normal_tensor(shape, deviation, {41, x.size()}, DType::bf16) : Tensor());
  };
  add({c.B, c.T, c.N, c.d}, true, 1);
  add({c.B, c.S, c.Nkv, c.d}, true, 1);
  add({c.B, c.S, c.Nkv, c.d}, true, 1);
  for (unsigned terms : {c.terms, c.terms >> 5}) {
    add({1, c.N, c.N}, terms & 1, 0.1);
    add({c.B, c.T, 1, c.q_rank, c.N}, terms & 2, 0.5);
    add({c.B, c.T, 1, c.q_rank, c.N}, terms & 2, 0.2);
    add({c.B, c.S, 1, c.k_rank, c.N}, terms & 4, 0.5);
    add({c.B, c.S, 1, c.k_rank, c.N}, terms & 4, 0.2);
    add({c.B, c.T, 1, c.N}, terms & 8, 0.3);
    add({c.B, c.S, 1, c.N}, terms & 16, 0.3);
  }
  return x;
}
Tensor output_gradient(const Case& c) { return normal_tensor({c.B, c.T, c.N, c.d}, 1, {41, 99}, DType::bf16); }

DcmhaInputs call_of(const Tensors& x, const Case& c, double scale) {
  DcmhaInputs call = test::call_of(x);
  call.mask = c.mask;
  call.scale = scale;
  return call;
}

// y, then the gradient of every input (an empty handle where it is absent).
Tensors composed(const Case& c, DType dtype) {
  Tensors x = inputs_of(c), results;
  for (Tensor& t : x) {
    if (!t) continue;
    t = t.to(dtype);
    require_grad(t);
  }
  const DcmhaInputs call = test::call_of(x);
  Tensor y = dcmha(call.q, call.k, call.v, call.pre, call.post, {{.mask = c.mask, .impl = AttentionImpl::reference}});
  results.push_back(y.detach());
  backward(y, output_gradient(c).to(dtype));
  for (Tensor& t : x) results.push_back(t ? grad(t) : t);
  return results;
}

struct OnGpu {
  DcmhaInputs in;
  Tensor lse;
  Tensors results;  // y and gradients
};

OnGpu on_gpu(const Case& c) {
  Tensors x = inputs_of(c), g;
  for (Tensor& t : x) {
    if (t) t = t.to(kGpu);
    g.push_back(t ? empty_like(t) : t);
  }
  OnGpu run{call_of(x, c, 1 / std::sqrt(static_cast<double>(c.d))), {}, {}};
  BOOST_TEST_REQUIRE(!cuda::attention::tensor_core::unsupported_reason(run.in));
  Tensor y = empty_like(x[0]);
  run.lse = empty({c.B, c.T, c.N}, DType::f32, kGpu);
  cuda::attention::tensor_core::forward(run.in, y, run.lse, c.workspace);
  DcmhaGradients gradients = gradients_of(g);
  cuda::attention::tensor_core::backward(run.in, y, run.lse, output_gradient(c).to(kGpu), gradients, c.workspace);
  run.results.push_back(y);
  run.results.insert(run.results.end(), g.begin(), g.end());
  return run;
}

// Root of the mean square, and largest, of the differences.
struct Distance {
  double mean = 0, largest = 0;
  Distance(const Tensor& got, const Tensor& want) {
    const auto x = got.to_vector<double>(), y = want.to_vector<double>();
    for (size_t i = 0; i < x.size(); ++i) {
      const double d = std::fabs(x[i] - y[i]);
      mean += d * d / static_cast<double>(x.size());
      if (!(d <= largest)) largest = d;
    }
    mean = std::sqrt(mean);
  }
};

void check_case(const Case& c) {
  const Tensors got = on_gpu(c).results, want = composed(c, DType::f64), plain = composed(c, DType::bf16);
  for (size_t i = 0; i < got.size(); ++i) {
    BOOST_REQUIRE(bool(got[i]) == bool(want[i]));
    if (!got[i]) continue;
    BOOST_TEST_CONTEXT(kNames[i]) {
      BOOST_TEST_REQUIRE((got[i].shape() == want[i].shape()));
      const Distance tested(got[i], want[i]), naive(plain[i], want[i]);
      BOOST_TEST_MESSAGE(kNames[i] << ": " << tested.mean << " of " << naive.mean << ", " << tested.largest << " of "
                                   << naive.largest);
      // Where a row has one unmasked key its probability is 1, and gradients vanish but for the rounding of f32.
      BOOST_TEST((tested.mean <= 2 * naive.mean + 1e-5), "mean " << tested.mean << ", naive " << naive.mean);
      BOOST_TEST((tested.largest <= 2 * naive.largest + 1e-5),
                 "largest " << tested.largest << ", naive " << naive.largest);
    }
  }
}

bool equal_bits(const Tensors& x, const Tensors& y) {
  bool equal = x.size() == y.size();
  for (size_t i = 0; i < x.size(); ++i) equal = equal && (!x[i] || x[i].to_vector<float>() == y[i].to_vector<float>());
  return equal;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cuda_attention_tensor_core)

// Keys and rows in tails of every kind; several blocks of keys, several segments of rows, samples.
BOOST_AUTO_TEST_CASE(sizes) {
  for (int64_t N : {16, 32}) {
    for (const auto& [B, T, S] : {std::array<int64_t, 3>{2, 48, 48}, {1, 1, 1}, {3, 7, 19}, {1, 5, 130}}) {
      BOOST_TEST_CONTEXT("N " << N << " T " << T << " S " << S)
      check_case({B, T, S, N, N, 8, 2, 2, {true, 0, S - T}});
    }
  }
  check_case({1, 85, 85, 16, 16, 4, 2, 2, {}});
}

BOOST_AUTO_TEST_CASE(masks) {
  const AttentionMask all[] = {{false, 0, 0},  {true, 0, 3},   {true, 0, -6},  {true, 5, 0},  {true, 16, 4},
                               {true, 20, -3}, {false, 0, 70}, {true, 0, 300}, {true, 3, 300}};
  for (const AttentionMask& v : all) {
    BOOST_TEST_CONTEXT("causal " << v.causal << " window " << v.window << " offset " << v.offset) {
      check_case({1, 42, 37, 16, 16, 8, 2, 2, v});
    }
  }
  check_case({1, 42, 37, 32, 32, 8, 2, 2, {true, 17, 2}});
}

BOOST_AUTO_TEST_CASE(each_absent_member) {
  for (int64_t N : {16, 32}) {
    for (unsigned absent = 0; absent < 10; ++absent) {
      BOOST_TEST_CONTEXT("N " << N << " absent " << absent)
      check_case({1, 18, 18, N, N, 4, 2, 2, {}, Case::kAll & ~(1u << absent)});
    }
    for (unsigned only : {0x1fu, 0x3e0u}) check_case({1, 18, 18, N, N, 4, 2, 2, {}, only});
  }
}

BOOST_AUTO_TEST_CASE(ranks_and_shared_keys) {
  check_case({2, 20, 20, 16, 16, 8, 1, 1, {}});
  check_case({2, 20, 20, 32, 32, 8, 3, 1, {}});
  check_case({2, 20, 20, 16, 4, 8, 2, 2, {}});
  check_case({2, 20, 20, 32, 1, 6, 2, 2, {}});
}

// The workspace allows few rows, or few samples, at a time; windows then begin at other keys for every block.
BOOST_AUTO_TEST_CASE(several_blocks) {
  for (int64_t N : {16, 32}) {
    for (const AttentionMask& v : {AttentionMask{true, 0, 0}, {true, 21, 0}, {false, 0, 0}}) {
      BOOST_TEST_CONTEXT("N " << N << " causal " << v.causal << " window " << v.window) {
        check_case({3, 45, 45, N, N, 8, 2, 2, v, Case::kAll, 1});
        check_case({3, 45, 45, N, N, 8, 2, 2, v, Case::kAll, N == 16 ? 700'000 : 1'800'000});  // two samples, one
      }
    }
  }
}

// 16 heads of up to 64 elements are computed forward by one kernel, in tiles of 32 queries and 16 keys.
BOOST_AUTO_TEST_CASE(forward_in_one_pass) {
  check_case({1, 70, 70, 16, 16, 64, 2, 2, {}});
  check_case({2, 33, 50, 16, 4, 40, 2, 2, {true, 0, 17}});
  check_case({1, 80, 80, 16, 1, 24, 1, 2, {true, 20, 0}});
  check_case({1, 40, 100, 16, 16, 16, 2, 1, {false, 0, 0}, Case::kAll, 70'000});  // 32 rows at a time, one sample
}

// Panels of 64 rows whose columns end at their last key; the workspace holds all of them, or some.
BOOST_AUTO_TEST_CASE(panels_of_rows) {
  check_case({1, 150, 150, 16, 16, 4, 2, 2, {true, 0, 0}});
  check_case({2, 70, 70, 32, 32, 4, 2, 2, {true, 0, 0}});
  check_case({1, 70, 95, 16, 16, 4, 2, 2, {true, 0, 25}});
  check_case({1, 90, 70, 16, 16, 4, 2, 2, {true, 0, -40}});
  check_case({1, 100, 100, 16, 16, 4, 2, 2, {true, 80, 0}});
  check_case({1, 90, 90, 16, 2, 4, 2, 2, {true, 0, 0}});
  for (const AttentionMask& v : {AttentionMask{true, 0, 0}, {true, 120, -3}})
    check_case({2, 140, 140, 16, 16, 4, 2, 2, v, Case::kAll, 4'000'000});
}

// Each panel of rows of a window and its keys is a sample: whole panels and an incomplete one, windows of one to three
// panels, repeated heads of keys, all samples at once and one at a time.
BOOST_AUTO_TEST_CASE(windows_as_samples) {
  check_case({2, 64, 64, 16, 16, 4, 2, 2, {true, 16, 0}});
  check_case({1, 70, 70, 32, 32, 4, 2, 2, {true, 16, 0}});
  check_case({2, 37, 37, 16, 16, 4, 2, 2, {true, 7, 0}});
  check_case({1, 150, 150, 16, 16, 4, 2, 2, {true, 49, 0}});
  check_case({2, 50, 50, 16, 4, 4, 2, 2, {true, 16, 0}});
  check_case({2, 50, 50, 16, 16, 4, 2, 2, {true, 1, 0}, Case::kAll, 500'000});
}

// Views with gaps between heads, tokens and samples; and gradients that are not required.
BOOST_AUTO_TEST_CASE(strided_inputs_and_fewer_gradients) {
  const Case c{2, 21, 21, 16, 16, 8, 2, 2, {}};
  const OnGpu plain = on_gpu(c);
  OnGpu run = plain;
  const auto spread = [](Tensor& x, const Shape& shape) {  // the same values inside a larger tensor
    Tensor wide = zeros(shape, DType::bf16), part = wide;
    for (int axis = 0; axis < x.rank(); ++axis) part = part.sliced(axis, 0, x.dim(axis));
    part.copy_(x.to(kCpu));
    Tensor on_gpu = wide.to(kGpu);
    x = on_gpu.view(x.shape(), on_gpu.strides(), 0);
  };
  spread(run.in.q, {2, 25, 18, 10});
  spread(run.in.k, {3, 21, 17, 8});
  spread(run.in.v, {2, 22, 16, 12});
  for (HeadMixing* stage : {&run.in.pre, &run.in.post}) {
    spread(stage->base, {1, 16, 19});
    spread(stage->q_down, {2, 22, 1, 3, 17});
    spread(stage->k_up, {2, 23, 2, 2, 19});
    spread(stage->k_gate, {2, 21, 2, 17});
  }
  Tensor y = empty_like(plain.results[0]), lse = empty({c.B, c.T, c.N}, DType::f32, kGpu), none;
  cuda::attention::tensor_core::forward(run.in, y, lse);
  BOOST_TEST(equal_bits({y, lse}, {plain.results[0], plain.lse}));
  cuda::attention::tensor_core::forward(run.in, y, none);
  BOOST_TEST(equal_bits({y}, {plain.results[0]}));

  DcmhaGradients some{.q = empty_like(y), .k = {}, .v = empty_like(y), .pre = {}, .post = {}};
  some.pre.k_down = empty_like(plain.results[8]);
  some.post.q_gate = empty_like(plain.results[16]);
  const Tensor dy = output_gradient(c).to(kGpu);
  cuda::attention::tensor_core::backward(run.in, y, lse, dy, some);
  BOOST_TEST(equal_bits({some.q, some.v, some.pre.k_down, some.post.q_gate},
                        {plain.results[1], plain.results[3], plain.results[7], plain.results[16]}));
  DcmhaGradients values_only{.q = {}, .k = {}, .v = empty_like(y), .pre = {}, .post = {}};
  cuda::attention::tensor_core::backward(run.in, y, lse, dy, values_only);
  BOOST_TEST(equal_bits({values_only.v}, {plain.results[3]}));
}

// The same bits whether q, k, v, the result and the gradients lie heads first in memory or not.
BOOST_AUTO_TEST_CASE(heads_first_memory) {
  for (const AttentionMask& v : {AttentionMask{true, 0, 0}, {true, 16, 0}}) {
    const Case c{2, 48, 48, 16, 16, 8, 2, 2, v};
    OnGpu run = on_gpu(c);
    const Tensors plain = run.results;
    const auto heads_first = [](const Tensor& x) {
      Tensor copy = empty({x.dim(0), x.dim(2), x.dim(1), x.dim(3)}, x.dtype(), x.device()).permuted({0, 2, 1, 3});
      copy.copy_(x);
      return copy;
    };
    for (Tensor* x : {&run.in.q, &run.in.k, &run.in.v}) *x = heads_first(*x);
    Tensor y = heads_first(plain[0]);
    cuda::attention::tensor_core::forward(run.in, y, run.lse);
    DcmhaGradients some{.q = heads_first(y), .k = heads_first(y), .v = heads_first(y), .pre = {}, .post = {}};
    cuda::attention::tensor_core::backward(run.in, y, run.lse, heads_first(output_gradient(c).to(kGpu)), some);
    BOOST_TEST(equal_bits({y, some.q, some.k, some.v}, {plain[0], plain[1], plain[2], plain[3]}));
  }
}

BOOST_AUTO_TEST_CASE(rows_whose_keys_are_all_masked) {
  const Case c{1, 30, 30, 16, 16, 8, 2, 2, {true, 0, -9}};
  const OnGpu run = on_gpu(c);
  const auto y = run.results[0].to_vector<float>(), dq = run.results[1].to_vector<float>();
  const auto lse = run.lse.to_vector<float>();
  for (size_t i = 0; i < lse.size(); ++i) BOOST_TEST(std::isinf(lse[i]) == (i / 16 < 9));
  for (size_t i = 0; i < y.size(); ++i) BOOST_TEST((i / 128 >= 9 || (y[i] == 0 && dq[i] == 0)));
}

// lse is what the row's exponentials sum to: with large scores too, whose exponentials would overflow.
BOOST_AUTO_TEST_CASE(large_scores) {
  Case c{1, 33, 33, 16, 16, 8, 2, 2, {}};
  Tensors x = inputs_of(c);
  x[0] = x[0].to(DType::f32);
  backend(kCpu).pointwise.unary(UnaryOp::affine, 200, 0, x[0], x[0]);
  x[0] = x[0].to(DType::bf16);
  for (Tensor& t : x) t = t.to(kGpu);
  const DcmhaInputs in = call_of(x, c, 1);
  Tensor y = empty_like(x[0]), lse = empty({c.B, c.T, c.N}, DType::f32, kGpu);
  cuda::attention::tensor_core::forward(in, y, lse);
  for (float value : lse.to_vector<float>()) BOOST_TEST(std::isfinite(value));
  for (float value : y.to_vector<float>()) BOOST_TEST(std::isfinite(value));
}

#if defined(BRAID_EMULATION)
// No result depends on which threads and blocks come first, nor on when an asynchronous copy happens.
BOOST_AUTO_TEST_CASE(same_bits_in_any_order_of_threads) {
  using emulated::Order;
  for (const Case& c : {Case{1, 21, 140, 16, 16, 8, 2, 2, {true, 0, 119}},
                        Case{2, 13, 20, 32, 32, 8, 2, 2, {true, 9, 7}},
                        {1, 70, 70, 16, 16, 4, 2, 2, {true, 16, 0}}}) {
    emulated::set_order(Order::forward);
    const uint64_t conflicts = emulated::statistics().bank_conflicts;
    const OnGpu first = on_gpu(c);
    BOOST_TEST(emulated::statistics().bank_conflicts == conflicts);
    for (const auto& [order, seed] : {std::pair{Order::reverse, 0}, {Order::random, 1}, {Order::random, 2}}) {
      emulated::set_order(order, static_cast<uint64_t>(seed));
      const OnGpu again = on_gpu(c);
      BOOST_TEST(equal_bits(again.results, first.results));
      BOOST_TEST(equal_bits({again.lse}, {first.lse}));
    }
    emulated::set_order(Order::forward);
  }
}
#endif

BOOST_AUTO_TEST_CASE(unsupported_calls_have_a_reason) {
  const auto reason = [](const Case& c, DType dtype, int64_t groups) {
    Tensors x = inputs_of(c);
    for (Tensor& t : x) {
      if (t) t = t.to(dtype);
    }
    DcmhaInputs call = call_of(x, c, 1);
    call.groups = groups;
    return cuda::attention::tensor_core::unsupported_reason(call).value_or("");
  };
  const auto says = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  const Case good{1, 4, 4, 16, 16, 8, 2, 2, {}};
  BOOST_TEST(reason(good, DType::bf16, 1) == "");
  BOOST_TEST(says(reason(good, DType::f32, 1), "bf16"));
  BOOST_TEST(says(reason(good, DType::bf16, 2), "2 groups"));
  Case bad = good;
  bad.N = bad.Nkv = 8;
  BOOST_TEST(says(reason(bad, DType::bf16, 1), "16 or 32 heads"));
  bad = good;
  bad.k_rank = 3;
  BOOST_TEST(says(reason(bad, DType::bf16, 1), "rank 3"));
  bad = good;
  bad.d = 7;
  BOOST_TEST(says(reason(bad, DType::bf16, 1), "even head size"));
  bad = good;
  bad.terms = 0;
  BOOST_TEST(says(reason(bad, DType::bf16, 1), "no heads are mixed"));
  bad = good;
  bad.T = 0;
  BOOST_TEST(says(reason(bad, DType::bf16, 1), "no elements"));
}

BOOST_AUTO_TEST_SUITE_END()
