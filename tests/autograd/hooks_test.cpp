// Functions that see gradients: on leaves, and on results by tap().
#include "braid/autograd/hooks.h"

#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <thread>

#include "braid/autograd.h"
#include "tests/support/compare.h"
#include "tests/support/sanitizer.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(hooks)

namespace {
Tensor leaf(double value) {
  Tensor x = full({1}, value, DType::f64);
  return require_grad(x);
}
}  // namespace

BOOST_AUTO_TEST_CASE(hooks_of_a_leaf_are_called_in_order_and_can_be_removed) {
  Tensor x = leaf(3);
  std::string calls;
  const auto append = [&calls](const char* name) {
    return [&calls, name](const Tensor& g) { calls += str(name, static_cast<int>(g.item()), " "); };
  };
  HookHandle a = on_grad(x, append("a"));
  on_grad(x, append("b"));  // stays without its handle
  HookHandle c = on_grad(x, append("c"));
  backward(square(x));
  BOOST_TEST(calls == "a6 b6 c6 ");
  calls.clear();
  a.remove();
  a.remove();
  HookHandle().remove();
  backward(square(x));
  BOOST_TEST(calls == "b12 c12 ");  // with what the first pass left
  require_grad(x, false);
  c.remove();  // of a leaf that is gone
  require_grad(x);
  calls.clear();
  backward(square(x));
  BOOST_TEST(calls.empty());
}

BOOST_AUTO_TEST_CASE(a_hook_may_remove_itself_and_read_the_leaf) {
  Tensor x = leaf(3);
  HookHandle once;
  int calls = 0;
  const Tensor* at = &x;  // by address: a copy of the handle would be a cycle
  once = on_grad(x, [&](const Tensor& g) {
    ++calls;
    BOOST_TEST(g.item() == grad(*at).item());
    once.remove();
  });
  backward(square(x));
  backward(square(x));
  BOOST_TEST(calls == 1);
  BOOST_TEST(grad(x).item() == 12);
}

BOOST_AUTO_TEST_CASE(a_hook_that_writes_to_the_gradient_is_noticed) {
  Tensor x = leaf(3);
  on_grad(x, [](const Tensor& g) {
    Tensor copy = g;
    copy.fill(0);
  });
  BRAID_CHECK_FAILS(backward(square(x)), ErrorKind::misuse, "[on_grad] a hook wrote to the gradient", "tap()");
}

BOOST_AUTO_TEST_CASE(a_gradient_that_a_hook_keeps_does_not_change) {
  Tensor x = leaf(3), kept;
  HookHandle hook = on_grad(x, [&](const Tensor& g) { kept = g; });
  backward(square(x));
  hook.remove();
  backward(square(x));
  BOOST_TEST(kept.item() == 6);
  BOOST_TEST(grad(x).item() == 12);
}

BOOST_AUTO_TEST_CASE(grad_of_tensors_calls_no_hook) {
  Tensor x = leaf(3);
  int calls = 0;
  on_grad(x, [&](const Tensor&) { ++calls; });
  grad(square(x), {x});
  BOOST_TEST(calls == 0);
}

// Every pass of every thread calls the hook, with a sum that no other thread changes while the hook reads it.
BOOST_AUTO_TEST_CASE(hooks_of_a_leaf_that_threads_share) {
  const int passes = less_under_tsan(2000, 300);
  Tensor x = full({16}, 1, DType::f64);
  require_grad(x);
  std::atomic<int> calls = 0, torn = 0;
  on_grad(x, [&](const Tensor& g) {
    ++calls;
    const std::vector<double> values = g.to_vector<double>();
    torn += std::any_of(values.begin(), values.end(), [&](double v) { return v != values[0]; });
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < passes; ++i) backward(sum(x));
    });
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(calls == 2 * passes);
  BOOST_TEST(torn == 0);
  BOOST_TEST(is_close(grad(x).to_vector<double>(), std::vector<double>(16, 2 * passes), 0));
}

BOOST_AUTO_TEST_CASE(a_tap_sees_the_gradient_of_a_result_and_may_replace_it) {
  Tensor x = leaf(3);
  double seen = 0;
  const auto look = [&seen](const Tensor& g) {
    seen = g.item();
    return Tensor();
  };
  const Tensor middle = tap(square(x), look);
  BOOST_TEST(middle.item() == 9);
  backward(scale(middle, 5));
  BOOST_TEST(seen == 5);
  BOOST_TEST(grad(x).item() == 30);
  zero_grad(x);
  backward(scale(tap(square(x), [](const Tensor& g) { return clamp(g, -1, 1); }), 5));
  BOOST_TEST(grad(x).item() == 6);
  BOOST_TEST(!requires_grad(no_grad([&] { return tap(x, look); })));
}

BOOST_AUTO_TEST_CASE(a_tap_is_part_of_second_derivatives) {
  Tensor x = leaf(3);
  const Tensor cube = mul(square(x), tap(x, [](const Tensor& g) { return scale(g, 2); }));
  const Tensor dx = grad(cube, {x}, {.create_graph = true})[0];  // 2 x^2 + 2 x^2
  BOOST_TEST(dx.item() == 36);
  BOOST_TEST(grad(dx, {x})[0].item() == 30);  // of 2 x tap(x): 2 x + 2 (2 x); of 2 x^2: 4 x
}

BOOST_AUTO_TEST_CASE(mistakes) {
  Tensor x = leaf(3);
  BRAID_CHECK_FAILS(on_grad(x, nullptr), ErrorKind::misuse, "[on_grad] needs a function");
  BRAID_CHECK_FAILS(on_grad(square(x), [](const Tensor&) {}), ErrorKind::misuse, "[on_grad] needs a leaf");
  BRAID_CHECK_FAILS(tap(x, nullptr), ErrorKind::misuse, "[tap] needs a function");
  const Tensor y = tap(square(x), [](const Tensor&) { return zeros({2}, DType::f64); });
  BRAID_CHECK_FAILS(backward(y), ErrorKind::misuse, "[tap] the function returned (2) for a gradient of shape (1)");
}

BOOST_AUTO_TEST_SUITE_END()
