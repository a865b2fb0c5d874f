// Checks of exercise 3: every gradient beside that of Braid's engine, on graphs that share values.
#include EXERCISE

using namespace braid;
using exercise::Value;

namespace {

Tensor random(const Shape& shape, uint64_t seed) { return randn(shape, {.seed = seed}, DType::f64); }

// The gradients of the leaves by the student's engine and by Braid's; f is written once for both.
template <class F>
void expect_gradients(const char* name, const std::vector<Tensor>& leaves, const F& f) {
  std::vector<Value> own;
  std::vector<Tensor> real;
  for (const Tensor& x : leaves) own.push_back(exercise::leaf(x)), real.push_back(x.clone());
  for (Tensor& x : real) require_grad(x);
  const Value y = f.own(own);
  const Tensor expected = f.real(real);
  course::expect_close(course::words(name, ", value"), y->value, expected, 1e-12);
  exercise::backward(y);
  backward(expected);
  for (size_t i = 0; i < own.size(); ++i)
    course::expect_close(course::words(name, ", gradient of input ", i), own[i]->gradient, grad(real[i]), 1e-10);
}

template <class Own, class Real>
struct Both {
  Own own;
  Real real;
};
template <class Own, class Real>
Both(Own, Real) -> Both<Own, Real>;

using Values = std::vector<Value>;
using Tensors = std::vector<Tensor>;

}  // namespace

int main() {
  course::Checks check;
  check("add, multiply and sum, with backward", "pull gives one gradient for each input, of the input's shape", [] {
    expect_gradients("sum(a b)", {random({2, 3}, 1), random({2, 3}, 2)},
                     Both{[](const Values& v) { return exercise::sum(exercise::multiply(v[0], v[1])); },
                          [](const Tensors& x) { return sum(x[0] * x[1]); }});
    course::hint("b was repeated for every row: the gradient of an input is summed to the input's shape");
    expect_gradients("sum((a + b) c), b a row", {random({4, 3}, 3), random({3}, 4), random({4, 3}, 8)},
                     Both{[](const Values& v) { return exercise::sum(multiply(add(v[0], v[1]), v[2])); },
                          [](const Tensors& x) { return sum((x[0] + x[1]) * x[2]); }});
  });
  check("matmul and relu", "let the shapes say which product is meant; a mask has a type of its own", [] {
    expect_gradients("sum(relu(a b) c)", {random({4, 3}, 5), random({3, 5}, 6), random({5, 2}, 7)},
                     Both{[](const Values& v) { return exercise::sum(matmul(relu(matmul(v[0], v[1])), v[2])); },
                          [](const Tensors& x) { return sum(matmul(relu(matmul(x[0], x[1])), x[2])); }});
    course::hint("at 0 the derivative of relu is 0");
    expect_gradients("sum(relu(a)), a with a 0", {from_values({-1, 0, 2}, {3}, DType::f64)},
                     Both{[](const Values& v) { return exercise::sum(relu(v[0])); },
                          [](const Tensors& x) { return sum(relu(x[0])); }});
  });
  check("backward: a value that is used twice", "add what arrives; do not overwrite", [] {
    expect_gradients("a b + a", {from_values({2}, {}, DType::f64), from_values({3}, {}, DType::f64)},
                     Both{[](const Values& v) { return add(multiply(v[0], v[1]), v[0]); },
                          [](const Tensors& x) { return x[0] * x[1] + x[0]; }});
    expect_gradients(
        "a a", {from_values({5}, {}, DType::f64)},
        Both{[](const Values& v) { return multiply(v[0], v[0]); }, [](const Tensors& x) { return x[0] * x[0]; }});
  });
  check("backward: each node runs once, after all its consumers", "count the consumers of a node before you start", [] {
    int runs = 0;
    const Value x = exercise::leaf(from_values({1}, {}, DType::f64));
    const Value c = std::make_shared<exercise::Node>(exercise::Node{x->value, {}, {x}, [&runs](const Tensor& dy) {
                                                                      ++runs;
                                                                      return std::vector<Tensor>{dy};
                                                                    }});
    // c is used at once and, over a longer way, once more: (c + (c c) c) + c
    const Value y = add(add(c, multiply(multiply(c, c), c)), c);
    exercise::backward(y);
    course::expect(runs == 1, "(c + c c c) + c: expected the closure of c to run once, it ran ", runs, " times");
    course::hint("add() may send one tensor to both inputs: add what arrives to a new one, not in place");
    course::expect_close("(c + c c c) + c at 1, gradient of c's input", x->gradient, from_values({5}, {}, DType::f64),
                         1e-12);
  });
  check(
      "backward: doubling 40 times is 40 steps, not 2^40", "a node that was met before is not met again",
      [] {
        const Value x = exercise::leaf(from_values({1}, {}, DType::f64));
        Value y = x;
        for (int i = 0; i < 40; ++i) y = add(y, y);
        exercise::backward(y);
        course::expect_close("x doubled 40 times, gradient", x->gradient,
                             from_values({1099511627776.0}, {}, DType::f64), 0);
      },
      10);
  check("backward: a second graph on the same leaf adds", "a leaf's gradient outlives the pass", [] {
    const Value x = exercise::leaf(from_values({3}, {}, DType::f64));
    exercise::backward(multiply(x, x));
    exercise::backward(add(x, x));
    course::expect_close("x x, then x + x at 3, gradient", x->gradient, from_values({8}, {}, DType::f64), 0);
  });
  const auto chain = [](const Value& x) {
    const Value zero = exercise::leaf(zeros({}, DType::f64));
    Value y = x;
    for (int i = 0; i < 200000; ++i) y = add(y, zero);
    return y;
  };
  check("backward: a chain of 200000 ops", "loops and a stack of your own, no function that calls itself", [&] {
    const Value x = exercise::leaf(from_values({1}, {}, DType::f64));
    auto* y = new Value(chain(x));  // never freed: that is the next check
    exercise::backward(*y);
    course::expect_close("gradient of the chain's start", x->gradient, ones({}, DType::f64), 0);
  });
  check("clear: a chain of 200000 ops", "a destructor that calls that of its inputs calls itself, too", [&] {
    Value x = exercise::leaf(from_values({1}, {}, DType::f64)), y = chain(x);
    const std::weak_ptr<exercise::Node> start = std::exchange(x, nullptr);
    exercise::clear(y);
    course::expect(y == nullptr, "clear: expected y to be a null pointer afterwards");
    course::expect(start.expired(), "clear: expected the chain to be gone, but its start is still held");
  });
  check("clear: what others hold stays", "take apart only what nobody else holds", [] {
    const Value x = exercise::leaf(from_values({2}, {}, DType::f64)), kept = multiply(x, x);
    Value y = add(kept, x);
    exercise::clear(y);
    course::expect(kept->inputs.size() == 2, "clear of x x + x, of which x x is held: expected 2 inputs of x x, found ",
                   kept->inputs.size());
    course::hint("what is held keeps its closure, too");
    exercise::backward(kept);
    course::expect_close("gradient of x x at 2", x->gradient, from_values({4}, {}, DType::f64), 0);
  });
  return check.result();
}
