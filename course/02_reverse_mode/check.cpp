// Checks of exercise 2: values beside Braid's ops, derivatives beside finite differences in f64.
#include EXERCISE

using namespace braid;
using Inputs = std::vector<Tensor>;

namespace {

Tensor random(const Shape& shape, uint64_t seed) { return randn(shape, {.seed = seed}, DType::f64); }

void expect_derivative(const char* name, const Function& f, const Inputs& inputs) {
  const GradcheckResult result = gradcheck(f, inputs);
  course::expect(result.error < 1e-6, name, ": the derivative differs from finite differences: ", result.where);
}

}  // namespace

int main() {
  course::Checks check;
  check(
      "softplus: values", "e^x overflows where x is large and the answer is x: what is left of it beside relu(x)?", [] {
        const Tensor x = from_values({-800, -100, -1, 0, 1, 100, 800}, {7}, DType::f64);
        const Tensor y = exercise::softplus(x);
        course::expect_close(
            "softplus of -800, -100, -1, 0, 1, 100, 800", y,
            from_values({0, 0, 0.31326168751822286, 0.6931471805599453, 1.3132616875182228, 100, 800}, {7}, DType::f64),
            1e-15);
        course::expect(y.to_vector<double>()[1] > 0,
                       "softplus(-100): expected about 3.7e-44, found 0: log(1 + e) where e ",
                       "is below the last bit of 1 loses it; log1p does not");
      });
  check("softplus: derivative", "the derivative of log(1 + e^x), by the chain rule, times dy", [] {
    expect_derivative("softplus", [](const Inputs& in) { return exercise::softplus(in[0]); }, {random({3, 4}, 1)});
    course::hint("e^x / (1 + e^x) overflows, too; Braid has this function");
    Tensor large = from_values({-800, 800}, {2}, DType::f64);
    require_grad(large);
    backward(sum(exercise::softplus(large)));
    course::expect_close("derivative of softplus at -800, 800", grad(large), from_values({0, 1}, {2}, DType::f64),
                         1e-15);
  });
  check("linear: value and both derivatives", "w is (out, in): x times its transpose", [] {
    const Inputs in{random({5, 3}, 2), random({4, 3}, 3)};
    course::expect_close("linear", exercise::linear(in[0], in[1]), matmul(in[0], transpose(in[1])), 1e-12);
    course::hint("dx has the shape of x: which product of dy and w has it? And dw that of w");
    expect_derivative(
        "linear", [](const Inputs& x) { return exercise::linear(x[0], x[1]); }, in);
  });
  check("sum_to_shape: sums what broadcasting repeated", "first the axes in front, then the axes of size 1", [] {
    const Tensor dy = random({2, 3, 4}, 4);
    for (const Shape& shape : {Shape{2, 3, 4}, Shape{3, 4}, Shape{4}, Shape{3, 1}, Shape{2, 1, 1}, Shape{}})
      course::expect_close(course::words("sum_to_shape of (2, 3, 4) to ", shape), exercise::sum_to_shape(dy, shape),
                           sum_to(dy, shape), 1e-12);
  });
  check("multiply: value, derivative with broadcasting", "the gradient of one input is dy times the other", [] {
    const auto expect_product = [](const char* name, const Inputs& x) {
      course::expect_close(name, exercise::multiply(x[0], x[1]), x[0] * x[1], 1e-12);
      expect_derivative(
          name, [](const Inputs& in) { return exercise::multiply(in[0], in[1]); }, x);
    };
    expect_product("multiply (2, 3) by (2, 3)", {random({2, 3}, 5), random({2, 3}, 6)});
    course::hint("the gradient of an input has the shape of the input: sum_to_shape()");
    expect_product("multiply (2, 3) by (3)", {random({2, 3}, 7), random({3}, 8)});
    expect_product("multiply (4, 1) by (2, 1, 3)", {random({4, 1}, 9), random({2, 1, 3}, 10)});
  });
  check("multiply: one tensor twice", "the engine adds the gradients that reach a tensor; return both", [] {
    expect_derivative("x x", [](const Inputs& in) { return exercise::multiply(in[0], in[0]); }, {random({3}, 11)});
  });
  check("row_max: value, derivative, ties", "dy of a row goes to the place of its largest entry, zeros elsewhere", [] {
    const Tensor x = random({4, 5}, 12);
    course::expect_close("row_max", exercise::row_max(x), max(x, 1), 0);
    expect_derivative("row_max", [](const Inputs& in) { return exercise::row_max(in[0]); }, {x});
    course::hint("several entries equal the maximum: keep the index of one, not the value");
    Tensor tied = from_values({1, 7, 7, 2}, {1, 4}, DType::f64);
    require_grad(tied);
    backward(sum(exercise::row_max(tied)));
    course::expect_close("gradient of row_max of 1 7 7 2", grad(tied), from_values({0, 1, 0, 0}, {1, 4}, DType::f64),
                         0);
  });
  return check.result();
}
