#include "braid/nn/layers/gru.h"

#include <algorithm>

#include "braid/autograd/composed.h"

namespace braid::nn {

Gru::Gru(int64_t in, int64_t width, const RecurrentOptions& options, RandomKey key)
    : Recurrent("gru", 3, in, width, options, key) {}

Gru::Result Gru::operator()(const Tensor& x, const Tensor& first, Mode mode, RandomKey key) const {
  const Tensor h0 = start(first, x);
  const int64_t H = width(), T = x.dim(1);
  std::vector<Tensor> last;
  const Tensor y = run(x, mode, key, [&](const Tensor& projected, const Weights& w, int64_t index, bool reverse) {
    Tensor h = select(h0, 0, index);  // (B, H)
    std::vector<Tensor> hs;
    for (int64_t step = 0; step < T; ++step) {
      const Tensor now = select(projected, 1, reverse ? T - 1 - step : step);  // (B, 3 H)
      const std::vector<Tensor> a = split(now, {H, H, H}, 1);
      const std::vector<Tensor> b = split(linear(h, w.hidden, w.hidden_bias), {H, H, H}, 1);
      const Tensor z = sigmoid(add(a[1], b[1]));
      const Tensor n = tanh(add(a[2], mul(sigmoid(add(a[0], b[0])), b[2])));
      h = add(n, mul(z, sub(h, n)));
      hs.push_back(h);
    }
    last.push_back(h);
    if (reverse) std::reverse(hs.begin(), hs.end());
    return stack(hs, 1);
  });
  return {y, stack(last)};
}

}  // namespace braid::nn
