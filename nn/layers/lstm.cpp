#include "braid/nn/layers/lstm.h"

#include <algorithm>

#include "braid/autograd/composed.h"

namespace braid::nn {

Lstm::Lstm(int64_t in, int64_t width, const RecurrentOptions& options, RandomKey key)
    : Recurrent("lstm", 4, in, width, options, key) {}

Lstm::Result Lstm::operator()(const Tensor& x, const States& first, Mode mode, RandomKey key) const {
  const Tensor h0 = start(first.h, x), c0 = start(first.c, x);
  const int64_t H = width(), T = x.dim(1);
  std::vector<Tensor> last_h, last_c;
  const Tensor y = run(x, mode, key, [&](const Tensor& projected, const Weights& w, int64_t index, bool reverse) {
    Tensor h = select(h0, 0, index), c = select(c0, 0, index);  // (B, H)
    std::vector<Tensor> hs;
    for (int64_t step = 0; step < T; ++step) {
      const Tensor now = select(projected, 1, reverse ? T - 1 - step : step);  // (B, 4 H)
      const std::vector<Tensor> gates = split(add(now, linear(h, w.hidden, w.hidden_bias)), {H, H, H, H}, 1);
      c = add(mul(sigmoid(gates[1]), c), mul(sigmoid(gates[0]), tanh(gates[2])));
      h = mul(sigmoid(gates[3]), tanh(c));
      hs.push_back(h);
    }
    last_h.push_back(h);
    last_c.push_back(c);
    if (reverse) std::reverse(hs.begin(), hs.end());
    return stack(hs, 1);
  });
  return {y, {stack(last_h), stack(last_c)}};
}

}  // namespace braid::nn
