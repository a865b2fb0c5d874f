#include "braid/nn/optim/clip.h"

#include <cmath>

#include "braid/autograd/record.h"
#include "braid/tensor/kernels/backend.h"
#include "braid/tensor/layer_scope.h"

namespace braid::nn {

void sum_of_squares(const std::vector<NamedTensor>& parameters, Tensor sums) {
  const LayerScope layer("optimizer");
  std::vector<Tensor> gradients;
  for (const NamedTensor& p : parameters) {
    Tensor g = requires_grad(p.value) ? grad(p.value) : Tensor();  // frozen: none
    gradients.push_back(g ? g.contiguous() : g);
  }
  backend(sums.device()).optimizer.sum_of_squares(gradients, sums);
}

void sum_of_squared_values(const std::vector<NamedTensor>& parameters, Tensor sums, const std::vector<Tensor>& copies) {
  check(copies.empty() || copies.size() == parameters.size(), "sum_of_squared_values",
        [&] { return str(copies.size(), " copies do not fit ", parameters.size(), " parameters"); });
  const LayerScope layer("optimizer");
  std::vector<Tensor> values;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const bool copied = !copies.empty() && copies[i];
    values.push_back((copied ? copies[i] : parameters[i].value).detach().contiguous());
  }
  backend(sums.device()).optimizer.sum_of_squares(values, sums);
}

namespace {
using SumsOf = void (*)(const std::vector<NamedTensor>& parameters, Tensor sums);

std::vector<double> read_sums(SumsOf sums_of, const std::vector<NamedTensor>& parameters) {
  if (parameters.empty()) return {};
  Device device = parameters[0].value.device();
  Tensor sums = empty({static_cast<int64_t>(parameters.size())}, DType::f64, device);
  sums_of(parameters, sums);
  return sums.to_vector<double>();
}

std::string first_with_bad_sum(SumsOf sums_of, const std::vector<NamedTensor>& parameters) {
  const std::vector<double> sums = read_sums(sums_of, parameters);
  for (size_t i = 0; i < sums.size(); ++i) {
    if (!std::isfinite(sums[i])) return parameters[i].name;
  }
  return "";
}
}  // namespace

double global_norm(const std::vector<NamedTensor>& parameters) {
  double sum = 0;
  for (double s : read_sums(sum_of_squares, parameters)) sum += s;
  return std::sqrt(sum);
}

double clip_factor(double norm, double limit) {
  check(limit >= 0, ErrorKind::setting, [&] {
    return "the limit of the gradient norm must be at least 0 (0: no clipping), found " + std::to_string(limit);
  });
  return limit > 0 && norm >= limit ? limit / norm : 1;
}

std::string first_not_finite(const std::vector<NamedTensor>& parameters) {
  return first_with_bad_sum(sum_of_squares, parameters);
}

std::string first_not_finite_value(const std::vector<NamedTensor>& parameters) {
  return first_with_bad_sum(
      [](const std::vector<NamedTensor>& all, Tensor sums) { sum_of_squared_values(all, std::move(sums)); },
      parameters);
}

}  // namespace braid::nn
