// The same call, again and again, has the same bits. BRAID_REPEATS=N says how often (scripts/gpu_check: 1000); without
// it a few times, which is what the emulated GPU can do in a test. The calls, each once, are also what the sanitizers
// of the CUDA toolkit are shown (suite sanitizer_selection): one of every family of kernels, small.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdlib>
#include <functional>

#include "braid/autograd.h"
#include "braid/autograd/ops.h"
#include "braid/tensor/kernels/backend.h"

using namespace braid;

namespace {

const Device kGpu{Device::Kind::cuda, 0};

struct Call {
  const char* name;
  std::function<std::vector<Tensor>()> run;  // results on the GPU
};

// The value of f and the gradients of its leaves, for an incoming gradient that is not constant.
std::vector<Tensor> with_gradients(const std::vector<Tensor>& inputs,
                                   const std::function<Tensor(const std::vector<Tensor>&)>& f) {
  std::vector<Tensor> leaves;
  for (const Tensor& x : inputs) require_grad(leaves.emplace_back(x.detach()));
  Tensor y = f(leaves);
  std::vector<Tensor> results{y.detach()};
  backward(y, randn(y.shape(), {11, 99}, y.dtype(), kGpu));
  for (const Tensor& leaf : leaves) results.push_back(grad(leaf));
  return results;
}

Call attention(const char* name, DType dtype, int64_t T, int64_t N, int64_t d, int64_t window) {
  return {name, [=] {
            std::vector<Tensor> in;
            for (uint64_t i = 0; i < 3; ++i) in.push_back(randn({1, T, N, d}, {11, i}, dtype, kGpu));
            for (uint64_t stage = 0; stage < 2; ++stage) {
              for (uint64_t i = 0; i < 4; ++i)
                in.push_back(randn({1, T, 1, 2, N}, {11, 10 * stage + i + 3}, dtype, kGpu));
              for (uint64_t i = 0; i < 2; ++i) in.push_back(randn({1, T, 1, N}, {11, 10 * stage + i + 7}, dtype, kGpu));
            }
            return with_gradients(in, [window](const std::vector<Tensor>& x) {
              HeadMixing pre{{}, x[3], x[4], x[5], x[6], x[7], x[8]}, post{{}, x[9], x[10], x[11], x[12], x[13], x[14]};
              DcmhaOptions options;
              options.mask.window = window;
              return dcmha(x[0], x[1], x[2], pre, post, options);
            });
          }};
}

std::vector<Call> calls() {
  auto ids = [] { return from_vector(std::vector<int64_t>{3, 1, 3, 3, 0, 1, 3, 2}, {8}, kGpu); };
  return {
      attention("dcmha bf16, 16 heads", DType::bf16, 40, 16, 16, 0),
      attention("dcmha bf16, 16 heads, window", DType::bf16, 40, 16, 16, 8),
      attention("dcmha f32, 4 heads", DType::f32, 20, 4, 8, 0),
      {"attention bf16, no heads mixed",
       [] {
         const Shape shape{2, 40, 4, 16};
         return with_gradients({randn(shape, {11, 1}, DType::bf16, kGpu), randn(shape, {11, 2}, DType::bf16, kGpu),
                                randn(shape, {11, 3}, DType::bf16, kGpu)},
                               [](const auto& x) { return dcmha(x[0], x[1], x[2], {}, {}, {}); });
       }},
      {"linear with bias",
       [] {
         return with_gradients({randn({70, 24}, {11, 1}, DType::bf16, kGpu),
                                randn({40, 24}, {11, 2}, DType::bf16, kGpu), randn({40}, {11, 3}, DType::bf16, kGpu)},
                               [](const auto& x) { return linear(x[0], x[1], x[2]); });
       }},
      {"rms_norm",
       [] {
         return with_gradients({randn({70, 33}, {11, 1}, DType::f32, kGpu), randn({33}, {11, 2}, DType::f32, kGpu)},
                               [](const auto& x) { return rms_norm(x[0], x[1], 1e-5); });
       }},
      {"layer_norm",
       [] {
         return with_gradients({randn({70, 33}, {11, 1}, DType::f32, kGpu), randn({33}, {11, 2}, DType::f32, kGpu),
                                randn({33}, {11, 3}, DType::f32, kGpu)},
                               [](const auto& x) { return layer_norm(x[0], x[1], x[2], 1e-5); });
       }},
      {"softmax",
       [] {
         return with_gradients({randn({5, 300}, {11, 1}, DType::bf16, kGpu)},
                               [](const auto& x) { return softmax(x[0]); });
       }},
      {"swiglu",
       [] {
         return with_gradients(
             {randn({9, 130}, {11, 1}, DType::bf16, kGpu), randn({9, 130}, {11, 2}, DType::bf16, kGpu)},
             [](const auto& x) { return swiglu(x[0], x[1]); });
       }},
      {"sum and sum_product",
       [] {
         return with_gradients(
             {randn({6, 7, 40}, {11, 1}, DType::f32, kGpu), randn({6, 1, 40}, {11, 2}, DType::f32, kGpu)},
             [](const auto& x) {
               return sum(sum_product(x[0], x[1], {2}), {0, 1});
             });
       }},
      {"embedding",
       [ids] {
         return with_gradients({randn({4, 24}, {11, 1}, DType::f32, kGpu)},
                               [&](const auto& x) { return embedding(x[0], ids()); });
       }},
      {"cross_entropy",
       [ids] {
         return with_gradients({randn({8, 50}, {11, 1}, DType::bf16, kGpu)},
                               [&](const auto& x) { return cross_entropy(x[0], ids()); });
       }},
      {"matmul",
       [] {
         return with_gradients(
             {randn({2, 17, 24}, {11, 1}, DType::bf16, kGpu), randn({2, 24, 9}, {11, 2}, DType::bf16, kGpu)},
             [](const auto& x) { return matmul(x[0], x[1]); });
       }},
      {"dropout",
       [] {
         return with_gradients({randn({300}, {11, 1}, DType::f32, kGpu)}, [](const auto& x) {
           return dropout(x[0], 0.3, {5, 6});
         });
       }},
  };
}

std::vector<std::vector<double>> values(const std::vector<Tensor>& tensors) {
  std::vector<std::vector<double>> all;
  for (const Tensor& x : tensors)
    all.push_back(x.to_vector<double>());  // exact: equal numbers are equal bits but for -0
  return all;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(repeats)

BOOST_AUTO_TEST_CASE(of_a_call_have_the_same_bits) {
  const char* setting = std::getenv("BRAID_REPEATS");
  const int64_t times = setting ? std::stoll(setting) : 2;
  for (const Call& call : calls()) {
    const std::vector<std::vector<double>> first = values(call.run());
    int64_t different = 0;
    for (int64_t i = 1; i < times; ++i) different += values(call.run()) != first;
    BOOST_TEST(different == 0, call.name << ": " << different << " of " << times << " differ from the first");
    BOOST_TEST_MESSAGE("- " << call.name << ": " << times << " times bit-equal");
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(sanitizer_selection)

BOOST_AUTO_TEST_CASE(every_call_once) {
  for (const Call& call : calls()) {
    for (const std::vector<double>& result : values(call.run())) {
      bool finite = true;
      for (double x : result) finite = finite && std::isfinite(x);
      BOOST_TEST(finite, call.name);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
