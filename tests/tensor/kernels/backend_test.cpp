#include "braid/tensor/kernels/backend.h"

#include <boost/test/unit_test.hpp>

#include "braid/tensor/kernels/kernel_meter.h"
#include "braid/tensor/kernels/pointwise_ops.h"
#include "braid/tensor/kernels/update_rules.h"
#include "braid/tensor/layer_scope.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(backend_table)

namespace {
std::vector<std::string> story;  // what happened around kernels
void outer(In x, Out y);
void inner(In, Out) { story.push_back(std::string("in ") + detail::running_kernel()); }
constexpr Backend kNested{.name = "nested", .softmax = {.forward = outer, .log_forward = inner}};
void outer(In x, Out y) {
  kNested.softmax.log_forward(x, y);
  inner(x, y);
}
}  // namespace

BOOST_AUTO_TEST_CASE(a_missing_kernel_says_its_name) {
  constexpr Backend empty_table{.name = "nothing"};
  Tensor x = zeros({1});
  BOOST_TEST(throws_with([&] { empty_table.softmax.forward(x, x); }, "[softmax] no such kernel"));
  BOOST_TEST(!empty_table.softmax.forward);
  BOOST_TEST(bool(cpu_backend().softmax.forward));
  BOOST_TEST(std::string(empty_table.norm.rms_forward.name()) == "rms_norm");
}

BOOST_AUTO_TEST_CASE(running_kernels_are_known_and_can_be_watched) {
  Tensor x = zeros({1});
  kNested.softmax.forward(x, x);
  BOOST_TEST(story == (std::vector<std::string>{"in log_softmax", "in softmax"}), boost::test_tools::per_element());
  BOOST_TEST(!detail::running_kernel());
  story.clear();
  detail::set_kernel_observer({[](const char* name) { story.push_back(name); }, [] { story.push_back("end"); }});
  kNested.softmax.log_forward(x, x);
  detail::set_kernel_observer({nullptr, nullptr});
  kNested.softmax.log_forward(x, x);
  BOOST_TEST(story == (std::vector<std::string>{"log_softmax", "in log_softmax", "end", "in log_softmax"}),
             boost::test_tools::per_element());
}

// A kernel inside another one counts once, and what watched kernels before watches them again.
BOOST_AUTO_TEST_CASE(calls_are_timed_by_name) {
  const auto times = cpu_backend().stream.launch_times([] {
    Tensor x = zeros({1});
    kNested.softmax.log_forward(x, x);
    kNested.softmax.forward(x, x);
    kNested.softmax.forward(x, x);
  });
  const auto of = [&](const std::string& name) {
    const auto at = std::ranges::find(times, name, &LaunchTime::name);
    BOOST_REQUIRE_MESSAGE(at != times.end(), name);
    BOOST_TEST(at->milliseconds >= 0);
    return at->launches;
  };
  BOOST_TEST(of("log_softmax") == 3);
  BOOST_TEST(of("softmax") == 2);
  story.clear();
  const detail::ObserveKernels observe({[](const char* name) { story.push_back(name); }, [] {}});
  cpu_backend().stream.launch_times([] {});
  Tensor x = zeros({1});
  kNested.softmax.log_forward(x, x);
  BOOST_TEST((std::ranges::count(story, "log_softmax") == 1));
}

// Bytes: each operand once, what a stride of 0 repeats too; an accumulating product and an update read their results.
BOOST_AUTO_TEST_CASE(calls_say_their_work) {
  const Tensor x = zeros({4, 8}), w = zeros({16, 8}), row = zeros({8});
  Tensor y = zeros({4, 16}), z = zeros({4, 8}), half = zeros({4, 16}, DType::bf16);
  UpdateStep step{.items = {{.parameter = zeros({10}),
                             .gradient = zeros({10}),
                             .state = {zeros({10}), zeros({10})},
                             .weight_decay = 0}},
                  .constants = {0.9, 0.999, 1e-8},
                  .scalars = zeros({4}, DType::f64)};
  DcmhaInputs heads{.q = zeros({2, 6, 4, 8}), .k = zeros({2, 6, 4, 8}), .v = zeros({2, 6, 4, 8})};
  heads.pre.base = zeros({1, 4, 4});
  Tensor mixed = zeros({2, 6, 4, 8}), lse = zeros({2, 6, 4});
  const auto calls = record_kernel_calls([&] {
    const Backend& b = backend(kCpu);
    b.matmul.linear(x, w, {}, y);
    const LayerScope layer("head");
    b.matmul.product(x, w.transposed(0, 1), true, y);
    b.matmul.product(x.to(DType::bf16), w.to(DType::bf16).transposed(0, 1), false, half);
    b.pointwise.binary(BinaryOp::add, x, row.expanded({4, 8}), z);
    b.optimizer.update(UpdateRule::adamw, step);
    b.attention.forward(b.attention.plan(heads, true), heads, mixed, lse);
    {
      const LayerScope inner("attention");
      kNested.softmax.log_forward(x, z);
    }
    zeros({1});
  });
  const auto call = [&](std::string_view name, double flops, double bytes, const char* phase, const char* layer,
                        size_t which = 0) {
    for (const KernelCall& found : calls) {
      if (found.name != name || which-- > 0) continue;
      BOOST_TEST(found.flops == flops, name);
      BOOST_TEST(found.bytes == bytes, name);
      BOOST_TEST(found.phase == std::string(phase), name);
      BOOST_TEST(found.layer == std::string(layer), name);
      BOOST_TEST((found.begin <= found.end && found.waiting >= 0 && found.waiting <= found.seconds), name);
      return;
    }
    BOOST_ERROR("no call of " << name);
  };
  const double operands = 4 * 8 + 16 * 8 + 4 * 16;
  call("linear", 2 * 4 * 16 * 8, 4 * operands, "products", "");
  call("matmul", 2 * 4 * 16 * 8, 4 * (operands + 4 * 16), "products", "head");
  call("matmul", 2 * 4 * 16 * 8, 2 * operands, "products", "head", 1);
  call("binary", 0, 4 * (2 * 4 * 8 + 8), "pointwise", "head");
  call("optimizer_update", 0, 4 * 10 * (2 + 1 + 4), "optimizer", "head");
  const double pairs = 2 * 4 * 21;  // 21 unmasked ones of each head
  call("dcmha_forward", pairs * (4 * 8 + 2 * 4), 4 * (4 * 2 * 6 * 4 * 8 + 16 + 2 * 6 * 4), "attention", "head");
  call("log_softmax", 0, 0, "other", "attention");
  const size_t before = calls.size();
  backend(kCpu).pointwise.binary(BinaryOp::add, x, x, z);
  BOOST_TEST(calls.size() == before);
  BOOST_TEST(!detail::metered_backend);
}

BOOST_AUTO_TEST_CASE(visibility_by_its_definition) {
  for (int64_t window : {0, 1, 3}) {
    for (int64_t offset : {-2, 0, 4}) {
      for (bool causal : {true, false}) {
        AttentionMask v{causal, causal ? window : 0, offset};
        for (int64_t t = 0; t < 6; ++t) {
          for (int64_t s = 0; s < 7; ++s) {
            bool want = !causal || (s <= t + offset && (window == 0 || s > t + offset - window));
            bool got = s >= v.first(t) && s < v.end(t, 7);
            BOOST_TEST(got == want);
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
