#include "braid/nn/layers/batch_norm.h"

#include <string>
#include <vector>

#include "braid/nn/init.h"

namespace braid::nn {

BatchNorm::BatchNorm(int64_t channels, const Options& options)
    : options_(options),
      running_mean_(Init::constant(0).make({channels}, {})),
      running_var_(Init::constant(1).make({channels}, {})) {
  check(options.momentum >= 0 && options.momentum <= 1, "batch_norm",
        [&] { return "the momentum must lie in [0, 1], got " + std::to_string(options.momentum); });
  if (!options.affine) return;
  weight_ = parameter(Init::constant(1).make({channels}, {}));
  bias_ = parameter(Init::constant(0).make({channels}, {}));
}

Tensor BatchNorm::operator()(const Tensor& x, Mode mode) const {
  const int64_t C = running_mean_.dim(0);
  check(x.rank() >= 2 && x.dim(1) == C, "batch_norm", [&] { return str("needs (B, ", C, ", ...), got ", x.shape()); });
  std::vector<int> axes = {0};
  Shape each = {C};  // (C, 1, ...): broadcasts to x
  for (int a = 2; a < x.rank(); ++a) {
    axes.push_back(a);
    each.push_back(1);
  }
  check(!weight_ || weight_.dtype() == x.dtype(), "batch_norm",
        [&] { return str("the input is ", x.dtype(), ", the weight ", weight_.dtype(), "; cast one of them"); });
  // 16-bit values are computed in f32 and rounded once: a variance may be too large for f16.
  const DType wide = accumulate_type(x.dtype());
  const Tensor values = cast(x, wide);
  const auto of_channel = [&](const Tensor& of_each) { return cast(reshape(of_each, each), wide); };
  Tensor centre, variance;  // broadcast to x
  if (mode == Mode::train) {
    const int64_t n = C == 0 ? 0 : x.numel() / C;
    check(n > 1, "batch_norm",
          [&] { return str("training needs more than one value per channel, got ", x.shape(), "; use Mode::eval"); });
    centre = mean(values, axes, true);
    variance = var(values, axes, 0, true);
    const NoGrad off;
    const auto move = [&](Tensor running, const Tensor& batch, double factor) {
      const Tensor now = scale(cast(reshape(batch, {C}), running.dtype()), options_.momentum * factor);
      running.copy_(running * (1 - options_.momentum) + now);
    };
    const auto count = static_cast<double>(n);
    move(running_mean_, centre.detach(), 1);
    move(running_var_, variance.detach(), count / (count - 1));
  } else {
    centre = of_channel(running_mean_);
    variance = of_channel(running_var_);
  }
  const Tensor y = mul(sub(values, centre), rsqrt(variance + options_.eps));
  return cast(weight_ ? add(mul(y, of_channel(weight_)), of_channel(bias_)) : y, x.dtype());
}

}  // namespace braid::nn
