#include <boost/test/unit_test.hpp>

#include "braid/autograd.h"
#include "braid/tensor/kernels/backend.h"
#include "braid/tensor/kernels/pointwise_ops.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(engine)

namespace {
// y = x + x with the derivative written by hand: the smallest op there is.
Tensor twice(const Tensor& x) {
  Tensor y = empty_like(x);
  backend(x.device()).pointwise.binary(BinaryOp::add, x, x, y);
  return record("twice", y, {x}, [](const Tensor& dy) -> Grads {
    Tensor dx = empty_like(dy);
    backend(dy.device()).pointwise.binary(BinaryOp::add, dy, dy, dx);
    return {dx};
  });
}
}  // namespace

BOOST_AUTO_TEST_CASE(gradients_add_up_over_paths_and_passes) {
  Tensor x = full({2}, 3, DType::f64);
  require_grad(x);
  backward(add(twice(x), x), full({2}, 1, DType::f64));
  BOOST_TEST(is_close(grad(x).to_vector<double>(), {3, 3}, 0));
  backward(twice(x), full({2}, 1, DType::f64));
  BOOST_TEST(is_close(grad(x).to_vector<double>(), {5, 5}, 0));
  zero_grad(x);
  BOOST_TEST(!grad(x));
}

BOOST_AUTO_TEST_CASE(second_backward_is_rejected) {
  Tensor x = full({1}, 1);
  require_grad(x);
  Tensor y = twice(x);
  backward(y);
  BOOST_TEST(throws_with([&] { backward(y); }, "[twice] history already used"));
}

BOOST_AUTO_TEST_CASE(a_million_ops_do_not_overflow_the_stack) {
  Tensor x = full({1}, 0, DType::f64);
  require_grad(x);
  int64_t before = memory_stats(kCpu).current;
  {
    Tensor y = x;
    for (int i = 0; i < 1000000; ++i) y = scale(y, 1.0);
    BOOST_TEST(memory_stats(kCpu).current - before < 1024);  // the graph holds no values
    backward(y);
    BOOST_TEST(grad(x).item() == 1.0);
    Tensor unused = x;
    for (int i = 0; i < 1000000; ++i) unused = mul(unused, unused);  // freed without a backward pass, closures and all
  }
  zero_grad(x);
  BOOST_TEST(memory_stats(kCpu).current == before);
}

BOOST_AUTO_TEST_CASE(no_grad_records_nothing) {
  Tensor x = full({1}, 1);
  require_grad(x);
  NoGrad off;
  BOOST_TEST(!requires_grad(twice(x)));
}

BOOST_AUTO_TEST_CASE(no_grad_returns_what_its_function_returns) {
  Tensor x = full({1}, 1);
  require_grad(x);
  Tensor y = no_grad([&] { return twice(x); });
  BOOST_TEST(y.item() == 2.0);
  BOOST_TEST(!requires_grad(y));
  BOOST_TEST(requires_grad(twice(x)));
}

// dy belongs to the caller, and one dy may serve several inputs: a leaf's gradient must share neither.
BOOST_AUTO_TEST_CASE(gradients_share_no_memory) {
  Tensor a = full({2}, 1), b = full({2}, 1), dy = full({2}, 3);
  require_grad(a);
  require_grad(b);
  backward(add(a, b), dy);
  dy.fill(7);
  BOOST_TEST(is_close(grad(a).to_vector<double>(), {3, 3}, 0));
  BOOST_TEST(!grad(a).shares_storage(grad(b)));
  Tensor wide = full({3, 4}, 1);
  require_grad(wide);
  backward(sum(wide));  // sends one element, repeated
  BOOST_TEST(grad(wide).is_contiguous());
  Tensor edited = grad(wide).sliced(0, 0, 1);
  edited.fill(0);
  BOOST_TEST(is_close(grad(wide).to_vector<double>(), {0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1}, 0));
}

BOOST_AUTO_TEST_CASE(a_fresh_gradient_is_taken_without_a_copy) {
  Tensor x = full({1 << 12}, 1);
  require_grad(x);
  const void* made = nullptr;
  Tensor y = record("fresh", full({1}, 1), {x}, [&made](const Tensor&) -> Grads {
    Tensor dx = full({1 << 12}, 1);
    made = dx.raw();
    return {dx};
  });
  backward(y);
  BOOST_TEST(grad(x).raw() == made);
}

BOOST_AUTO_TEST_CASE(results_of_two_types_get_their_gradients) {
  Tensor x = full({2}, 3);
  require_grad(x);
  std::vector<Tensor> ys =
      record_many("both", {full({2}, 3), full({2}, 3, DType::f64)}, {x},
                  [](const std::vector<Tensor>& d) -> Grads { return {add(d[0], cast(d[1], DType::f32))}; });
  backward(add(sum(ys[0]), sum(cast(scale(ys[1], 2), DType::f32))));
  BOOST_TEST(is_close(grad(x).to_vector<double>(), {3, 3}, 0));
}

// The sum was an error that dropped what was there.
BOOST_AUTO_TEST_CASE(a_gradient_of_f32_and_one_of_16_bits_add_up_in_f32) {
  for (const bool wide_first : {true, false}) {
    Tensor x = full({2}, 1, wide_first ? DType::bf16 : DType::f32);
    require_grad(x);
    set_grad(x, full({2}, 1 + 0x1p-4, wide_first ? DType::f32 : DType::bf16));
    backward(sum(scale(x, 0x1p-8)));
    BOOST_TEST(is_close(grad(x).to_vector<double>(), {1 + 0x1p-4 + 0x1p-8, 1 + 0x1p-4 + 0x1p-8}, 0));
  }
}

BOOST_AUTO_TEST_CASE(set_grad_takes_the_shape_and_type_of_the_leaf) {
  Tensor x = full({2}, 1);
  require_grad(x);
  BOOST_TEST(throws_with([&] { set_grad(square(x), x); },
                         "needs a leaf, made by require_grad() (a parameter); of a result see tap()"));
  BOOST_TEST(throws_with([&] { set_grad(x, full({3}, 1)); }, "[set_grad] the gradient is f32 (3)"));
  BOOST_TEST(throws_with([&] { set_grad(x, full({2}, 1, DType::f64)); }, "[set_grad] the gradient is f64 (2)"));
}

BOOST_AUTO_TEST_CASE(only_floating_point_leaves_can_require_a_gradient) {
  Tensor x = full({2}, 1), ids = arange(2);
  require_grad(x);
  Tensor y = square(x);
  BOOST_TEST(throws_with([&] { require_grad(ids); }, "a tensor of i64 has no gradient; cast() it"));
  BOOST_TEST(throws_with([&] { require_grad(y, false); }, "the result of a recorded op, no leaf; take x.detach()"));
}

BOOST_AUTO_TEST_CASE(ops_without_derivative_throw) {
  Tensor x = full({2, 2}, 1);
  require_grad(x);
  BOOST_TEST(throws_with([&] { argmax(x); }, "[argmax] has no derivative"));
}

BOOST_AUTO_TEST_CASE(writing_to_a_result_with_history_throws) {
  Tensor x = full({2}, 1);
  require_grad(x);
  Tensor y = twice(x);
  BOOST_TEST(throws_with([&] { y.fill(0); }, "writing in place"));
  x.fill(2);  // a leaf may be written: that is what optimisers do
  BOOST_TEST(x.to_vector<double>()[1] == 2.0);
}

BOOST_AUTO_TEST_CASE(several_results_get_their_gradients) {
  Tensor x = full({4}, 1, DType::f64);
  require_grad(x);
  std::vector<Tensor> parts = split(x, {1, 2, 1}, 0);
  backward(sum(mul(parts[1], parts[1])));  // parts 0 and 2 are not used
  BOOST_TEST(is_close(grad(x).to_vector<double>(), {0, 2, 2, 0}, 0));
}

BOOST_AUTO_TEST_CASE(wrong_shape_of_a_derivative_is_named) {
  Tensor x = full({2}, 1);
  require_grad(x);
  Tensor y = record("broken", full({2}, 1), {x}, [](const Tensor&) -> Grads { return {full({3}, 1)}; });
  BOOST_TEST(throws_with([&] { backward(y, full({2}, 1)); },
                         "[broken] its derivative has shape (3) for input 0 of shape (2); sum_to()"));
  const std::pair<DType, std::string> types[] = {{DType::f64, "f64"}, {DType::i64, "i64"}};
  for (const auto& [type, name] : types) {
    const auto other = [type = type](const Tensor&) -> Grads { return {full({2}, 1, type)}; };
    BOOST_TEST(throws_with([&] { backward(sum(record("broken", full({2}, 1), {x}, other))); },
                           "[broken] its derivative is " + name + " for input 0 of f32; cast() it"));
  }
  BOOST_TEST(!grad(x));
  Tensor none = record("none", full({2}, 1), {x}, [](const Tensor&) -> Grads { return {}; });
  BOOST_TEST(throws_with([&] { backward(none, full({2}, 1)); },
                         "[none] its derivative returned 0 gradients for 1 inputs; return one"));
}

BOOST_AUTO_TEST_CASE(hooks_see_the_complete_gradient) {
  Tensor x = full({1}, 2, DType::f64);
  require_grad(x);
  std::vector<double> seen;
  on_grad(x, [&](const Tensor& g) { seen.push_back(g.item()); });
  backward(add(twice(x), twice(x)));
  BOOST_TEST(seen == std::vector<double>{4}, boost::test_tools::per_element());
}

// A parameter of two recomputed segments, one of them inside another, used to get a call per segment.
BOOST_AUTO_TEST_CASE(hooks_are_called_once_per_pass_with_recomputed_segments) {
  Tensor w = full({2}, 3, DType::f64), b = full({2}, 1, DType::f64), other = full({2}, 1, DType::f64);
  for (Tensor* leaf : {&w, &b, &other}) require_grad(*leaf);
  std::vector<double> of_w, of_b;
  on_grad(w, [&](const Tensor& g) { of_w.push_back(g.to_vector<double>()[0]); });
  on_grad(b, [&](const Tensor& g) { of_b.push_back(g.to_vector<double>()[0]); });
  const auto times = [w](const std::vector<Tensor>& in) { return mul(in[0], w); };
  const auto nested = [times, b](const std::vector<Tensor>& in) { return recompute(times, {add(in[0], b)}); };
  const auto y = [&] { return sum(recompute(nested, {recompute(times, {full({2}, 1, DType::f64)})})); };
  backward(y());  // y = (w + b) w, dw = 2 w + b, db = w
  BOOST_TEST(of_w == std::vector<double>{7}, boost::test_tools::per_element());
  BOOST_TEST(of_b == std::vector<double>{3}, boost::test_tools::per_element());
  backward(add(y(), sum(scale(w, 2))));  // adds up over passes
  BOOST_TEST((of_w == std::vector<double>{7, 16}), of_w.back());
  BOOST_TEST(of_b.size() == 2u);
  const Tensor unused = no_grad([&] { return y(); });
  BOOST_TEST(!requires_grad(unused));
  BOOST_TEST(!requires_grad(recompute([](const auto& in) { return square(in[0]); }, {full({2}, 1)})));
}

// Such as the bf16 copies of f32 parameters. A second segment that used one found its history used up.
BOOST_AUTO_TEST_CASE(segments_may_capture_results_of_ops) {
  Tensor w = full({2}, 3, DType::f64), x = full({2}, 2, DType::f64);
  require_grad(w);
  std::vector<double> seen;
  on_grad(w, [&](const Tensor& g) { seen.push_back(g.to_vector<double>()[0]); });
  const Tensor half = scale(w, 0.5);
  const auto times = [half](const std::vector<Tensor>& in) { return mul(in[0], half); };
  const auto itself = [half](const std::vector<Tensor>&) { return half; };
  backward(sum(add(recompute(times, {recompute(times, {x})}), recompute(itself, {x}))));
  BOOST_TEST(seen == std::vector<double>{3.5}, boost::test_tools::per_element());  // x w^2 / 4 + w / 2
}

BOOST_AUTO_TEST_CASE(a_parameter_written_before_its_segment_is_recomputed_is_noticed) {
  Tensor w = full({1}, 3);
  require_grad(w);
  const Tensor y = recompute([w](const auto& in) { return mul(in[0], w); }, {full({1}, 2)});
  w.fill(4);
  BOOST_TEST(throws_with([&] { backward(y); }, "[recompute] input 1 was written in place"));
}

BOOST_AUTO_TEST_CASE(recompute_gives_the_same_gradients_and_keeps_less) {
  Tensor w = full({64}, 0.5, DType::f64), x = full({64}, 0.3, DType::f64);
  auto segment = [w](const std::vector<Tensor>& in) {
    Tensor y = in[0];
    for (int i = 0; i < 20; ++i) y = tanh(mul(y, w));
    return y;
  };
  auto run = [&](bool recomputed) {
    Tensor xl = x.clone();
    require_grad(xl);
    zero_grad(w);
    int64_t before = memory_stats(kCpu).current;
    Tensor y = sum(recomputed ? recompute(segment, {xl}) : segment({xl}));
    int64_t held = memory_stats(kCpu).current - before;
    backward(y);
    std::vector<double> out = grad(xl).to_vector<double>();
    for (double v : grad(w).to_vector<double>()) out.push_back(v);
    out.push_back(static_cast<double>(held));
    return out;
  };
  require_grad(w);
  std::vector<double> plain = run(false), saved = run(true);
  double held_plain = plain.back(), held_saved = saved.back();
  plain.pop_back();
  saved.pop_back();
  BOOST_TEST(is_close(saved, plain, 0));
  BOOST_TEST(held_saved < held_plain / 8);
}

BOOST_AUTO_TEST_SUITE_END()
