#include "braid/autograd/gradcheck.h"

#include <cmath>

#include "braid/autograd/ops.h"
#include "braid/tensor/random.h"

namespace braid {

namespace {

Tensor projection(const Shape& shape) {
  std::vector<double> values(static_cast<size_t>(numel(shape)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = 2 * unit(random_bits(i, {7, 7})) - 1;
  return from_vector(values, shape);
}

double dot(const Tensor& a, const Tensor& b) {
  std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

}  // namespace

GradcheckResult gradcheck(const Function& f, const std::vector<Tensor>& inputs, double step) {
  std::vector<Tensor> leaves, moved;
  for (const Tensor& x : inputs) {
    check(!x || !is_float(x.dtype()) || x.dtype() == DType::f64, "gradcheck",
          [&] { return str("runs in f64, got ", x.dtype(), "; cast() the inputs"); });
    leaves.push_back(x ? x.detach().clone() : Tensor());
    moved.push_back(x ? x.detach().clone() : Tensor());
    if (x && is_float(x.dtype())) require_grad(leaves.back());
  }
  Tensor y = f(leaves), weights = projection(y.shape());
  check(requires_grad(y), "gradcheck",
        "the function's result has no history: it must depend on the inputs that it gets, by ops that record");
  backward(y, weights);

  auto value = [&] {
    NoGrad off;
    return dot(f(moved), weights);
  };
  GradcheckResult worst;
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (!requires_grad(leaves[k])) continue;
    Tensor analytic = grad(leaves[k]) ? grad(leaves[k]) : zeros_like(leaves[k]);
    std::vector<double> expected = analytic.to_vector<double>();
    double* x = moved[k].mutable_data<double>();
    for (size_t i = 0; i < expected.size(); ++i) {
      double at = x[i];
      auto slope = [&](double h) {
        x[i] = at + h;
        double high = value();
        x[i] = at - h;
        double low = value();
        x[i] = at;
        return (high - low) / (2 * h);
      };
      double numeric = (4 * slope(step / 2) - slope(step)) / 3;
      double error = std::fabs(numeric - expected[i]) / std::fmax(1.0, std::fabs(numeric));
      if (!(error <= worst.error)) {
        worst.error = error;
        worst.where = str("input ", k, ", element ", i, ": numeric ", std::to_string(numeric), ", analytic ",
                          std::to_string(expected[i]));
        if (std::isnan(error)) return worst;
      }
    }
  }
  return worst;
}

GradcheckResult gradgradcheck(const Function& f, const std::vector<Tensor>& inputs, double step) {
  std::vector<Tensor> all = inputs;  // and last the gradient of the result
  {
    const NoGrad off;
    all.push_back(projection(f(inputs).shape()));
  }
  // The inputs' gradients, projected on fixed numbers and summed.
  const auto derivative = [&f](const std::vector<Tensor>& in) {
    const EnableGrad on;
    std::vector<Tensor> xs(in.begin(), in.end() - 1), wanted;
    bool again = false;
    for (Tensor& x : xs) {
      if (!x || !is_float(x.dtype())) continue;
      again |= requires_grad(x);
      if (!requires_grad(x)) x = x.detach(), require_grad(x);
      wanted.push_back(x);
    }
    const std::vector<Tensor> slopes =
        grad(f(xs), wanted, {.dy = in.back(), .create_graph = again, .allow_unused = true});
    Tensor total = scale(sum(in.back()), 0);  // with a history, also where no slope depends on anything
    for (const Tensor& slope : slopes)
      if (slope) total = add(total, sum(mul(slope, projection(slope.shape()))));
    return total;
  };
  return gradcheck(derivative, all, step);
}

}  // namespace braid
