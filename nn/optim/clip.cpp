#include "nn/optim/clip.h"

#include <cmath>

#include "autograd/record.h"
#include "tensor/backend.h"

namespace braid::nn {

namespace {
double square_sum(const Tensor& parameter) {
  Tensor g = grad(parameter);
  if (!g) return 0;
  Tensor y = empty({1}, DType::f64, g.device());
  backend(g.device()).square_sum(g.contiguous(), y);
  return y.item();
}
}  // namespace

double global_norm(const std::vector<NamedTensor>& parameters) {
  double sum = 0;
  for (const NamedTensor& p : parameters) sum += square_sum(p.value);
  return std::sqrt(sum);
}

double clip_factor(double norm, double limit) {
  check(limit >= 0, ErrorKind::setting, [&] {
    return "the limit of the gradient norm must be at least 0 (0: no clipping), found " + std::to_string(limit);
  });
  return limit > 0 && norm >= limit ? limit / norm : 1;
}

std::string first_not_finite(const std::vector<NamedTensor>& parameters) {
  for (const NamedTensor& p : parameters) {
    if (!std::isfinite(square_sum(p.value))) return p.name;
  }
  return "";
}

}  // namespace braid::nn
