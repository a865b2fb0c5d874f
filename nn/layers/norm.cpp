#include "braid/nn/layers/norm.h"

#include "braid/nn/init.h"
#include "braid/nn/outputs.h"

namespace braid::nn {

RmsNorm::RmsNorm(int64_t width, double eps, const char* name)
    : name_(name), eps_(eps), weight_(parameter(Init::constant(1).make({width}, {}))) {}

Tensor RmsNorm::operator()(const Tensor& x) const { return output(*this, rms_norm(x, weight_, eps_)); }
SumAndNorm RmsNorm::operator()(const Tensor& x, const Tensor& residual) const {
  SumAndNorm both = add_rms_norm(x, residual, weight_, eps_);
  output(*this, both.y);
  return both;
}

LayerNorm::LayerNorm(int64_t width, double eps)
    : eps_(eps),
      weight_(parameter(Init::constant(1).make({width}, {}))),
      bias_(parameter(Init::constant(0).make({width}, {}))) {}

Tensor LayerNorm::operator()(const Tensor& x) const { return output(*this, layer_norm(x, weight_, bias_, eps_)); }
SumAndNorm LayerNorm::operator()(const Tensor& x, const Tensor& residual) const {
  SumAndNorm both = add_layer_norm(x, residual, weight_, bias_, eps_);
  output(*this, both.y);
  return both;
}

Norm::Norm(Kind kind, int64_t width, double eps) {
  if (kind == Kind::layer) {
    norm_ = LayerNorm(width, eps);
  } else {
    norm_ = RmsNorm(width, eps);
  }
}

Tensor Norm::operator()(const Tensor& x) const {
  return output(*this, std::visit([&](const auto& norm) { return norm(x); }, norm_));
}
SumAndNorm Norm::operator()(const Tensor& x, const Tensor& residual) const {
  SumAndNorm both = std::visit([&](const auto& norm) { return norm(x, residual); }, norm_);
  output(*this, both.y);
  return both;
}
const Tensor& Norm::weight() const {
  return std::visit([](const auto& norm) -> const Tensor& { return norm.weight(); }, norm_);
}
void Norm::visit(Visitor& v) const {
  std::visit([&](auto& norm) { norm.visit(v); }, norm_);
}

}  // namespace braid::nn
