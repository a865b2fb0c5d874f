#include "braid/nn/layers/group_norm.h"

#include "braid/nn/init.h"

namespace braid::nn {

GroupNorm::GroupNorm(int64_t groups, int64_t channels, double eps)
    : groups_(groups),
      eps_(eps),
      weight_(parameter(Init::constant(1).make({channels}, {}))),
      bias_(parameter(Init::constant(0).make({channels}, {}))) {
  check(groups >= 1 && channels % groups == 0, "group_norm",
        [&] { return str(channels, " channels cannot be divided into ", groups, " groups"); });
}

Tensor GroupNorm::operator()(const Tensor& x) const {
  const int64_t C = weight_.dim(0);
  check(x.rank() >= 2 && x.dim(1) == C, "group_norm", [&] { return str("needs (B, ", C, ", ...), got ", x.shape()); });
  const int64_t rows = x.dim(0) * groups_;
  Shape each = {C};
  for (int a = 2; a < x.rank(); ++a) each.push_back(1);
  const Tensor y = layer_norm(reshape(x, {rows, rows == 0 ? 0 : x.numel() / rows}), {}, {}, eps_);
  return add(mul(reshape(y, x.shape()), reshape(weight_, each)), reshape(bias_, each));
}

}  // namespace braid::nn
