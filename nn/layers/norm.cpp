#include "braid/nn/layers/norm.h"

#include "braid/nn/init.h"
#include "braid/nn/outputs.h"
#include "braid/tensor/layer_scope.h"

namespace braid::nn {

RmsNorm::RmsNorm(int64_t width, double eps, const char* name, bool offset)
    : name_(name), eps_(eps), offset_(offset), weight_(parameter(Init::constant(offset ? 0 : 1).make({width}, {}))) {}

Tensor RmsNorm::gain() const { return offset_ ? cast(weight_, accumulate_type(weight_.dtype())) + 1 : weight_; }

Tensor RmsNorm::operator()(const Tensor& x) const {
  const LayerScope layer("norm");
  const DType type = offset_ ? accumulate_type(x.dtype()) : x.dtype();
  return output(*this, cast(rms_norm(cast(x, type), gain(), eps_), x.dtype()));
}
SumAndNorm RmsNorm::operator()(const Tensor& x, const Tensor& residual) const {
  const LayerScope layer("norm");
  if (offset_ && accumulate_type(x.dtype()) != x.dtype()) {
    const Tensor sum = residual ? add(x, residual) : x;
    return {sum, (*this)(sum)};
  }
  SumAndNorm both = add_rms_norm(x, residual, gain(), eps_);
  output(*this, both.y);
  return both;
}

LayerNorm::LayerNorm(int64_t width, double eps)
    : eps_(eps),
      weight_(parameter(Init::constant(1).make({width}, {}))),
      bias_(parameter(Init::constant(0).make({width}, {}))) {}

Tensor LayerNorm::operator()(const Tensor& x) const {
  const LayerScope layer("norm");
  return output(*this, layer_norm(x, weight_, bias_, eps_));
}
SumAndNorm LayerNorm::operator()(const Tensor& x, const Tensor& residual) const {
  const LayerScope layer("norm");
  SumAndNorm both = add_layer_norm(x, residual, weight_, bias_, eps_);
  output(*this, both.y);
  return both;
}

Norm::Norm(Kind kind, int64_t width, double eps, bool offset) {
  if (kind == Kind::layer) {
    norm_ = LayerNorm(width, eps);
  } else {
    norm_ = RmsNorm(width, eps, "weight", offset);
  }
}

Tensor Norm::operator()(const Tensor& x) const {
  if (const auto* rms = std::get_if<RmsNorm>(&norm_)) return output(*this, (*rms)(x));
  if (const auto* layer = std::get_if<LayerNorm>(&norm_)) return output(*this, (*layer)(x));
  return x;
}
SumAndNorm Norm::operator()(const Tensor& x, const Tensor& residual) const {
  const auto* rms = std::get_if<RmsNorm>(&norm_);
  const auto* layer = std::get_if<LayerNorm>(&norm_);
  if (!rms && !layer) {
    const Tensor sum = residual ? add(x, residual) : x;
    return {sum, sum};
  }
  SumAndNorm both = rms ? (*rms)(x, residual) : (*layer)(x, residual);
  output(*this, both.y);
  return both;
}
const Tensor& Norm::weight() const {
  const auto* rms = std::get_if<RmsNorm>(&norm_);
  return rms ? rms->weight() : std::get<LayerNorm>(norm_).weight();
}
void Norm::visit(Visitor& v) const {
  if (const auto* rms = std::get_if<RmsNorm>(&norm_)) rms->visit(v);
  if (const auto* layer = std::get_if<LayerNorm>(&norm_)) layer->visit(v);
}

}  // namespace braid::nn
