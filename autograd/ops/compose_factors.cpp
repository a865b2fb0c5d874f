// The factors of Compose from the products of their generator, for every branch, by one kernel each way.
#include "braid/autograd/detail/check.h"
#include "braid/autograd/detail/composed_gradients.h"
#include "braid/autograd/ops.h"
#include "braid/tensor/kernels/backend.h"

namespace braid {

namespace {

// w (G, C, B, T, 2R, M) or an empty handle, gates (B, T, G, C, M).
void check_products(const Tensor& w, const Tensor& gates) {
  const char* op = "compose_factors";
  check_float(op, gates);
  check(gates.rank() == 5 && gates.dim(3) >= 1 && gates.dim(3) <= kComposeBranches, op, [&] {
    return str("the gates must be (B, T, G, C, M) with C from 1 to ", kComposeBranches, ", got ", gates.shape());
  });
  if (!w) return;
  check_same(op, gates, w);
  const Shape& g = gates.shape();
  const int64_t both = w.rank() == 6 ? w.dim(4) : 0;
  check(both % 2 == 0 && w.shape() == Shape{g[2], g[3], g[0], g[1], both, g[4]}, op,
        [&] { return str("w must be (G, C, B, T, 2R, M) for gates ", g, ", got ", w.shape()); });
}

}  // namespace

// down = w[:R] rstd, rstd = 1 / sqrt(mean_m w[:R]^2 + eps);   up = w[R:];   gate = tanh(gates)
// dw = [rstd (d_down - down mean_m(d_down down)), d_up];   dgates = d_gate (1 - gate^2)
std::vector<ComposeFactors> compose_factors(const Tensor& w, const Tensor& gates, double eps) {
  check_products(w, gates);
  const Backend& device = backend(gates.device());
  const int64_t B = gates.dim(0), T = gates.dim(1), G = gates.dim(2), C = gates.dim(3), M = gates.dim(4);
  const int64_t R = w ? w.dim(4) / 2 : 0;
  const Tensor x = w ? w.detach().contiguous().reshaped({G, C, B * T, 2 * R, M}) : Tensor();
  const Tensor g = gates.detach().contiguous().reshaped({B * T, G, C, M});
  Tensor y = empty({B, T, G, C, 2 * R + 1, M}, g.dtype(), g.device());
  device.compose_factors.forward(x, g, eps, y);
  std::vector<Tensor> parts;  // views: of each branch down, up, gate
  for (int64_t c = 0; c < C; ++c) {
    const Tensor branch = y.sliced(3, c, c + 1).squeezed(3);
    parts.push_back(branch.sliced(3, 0, R));
    parts.push_back(branch.sliced(3, R, 2 * R));
    parts.push_back(branch.sliced(3, 2 * R, 2 * R + 1).squeezed(3));
  }
  // The same by ops that record: of each branch down, up, gate.
  const auto composed = [=](const std::vector<Tensor>& in) {
    std::vector<Tensor> results;
    for (int64_t c = 0; c < C; ++c) {
      if (in[0]) {  // (G, B, T, 2R, M) -> (B, T, G, 2R, M)
        const Tensor branch = permute(squeeze(slice(in[0], 1, c, c + 1), 1), {1, 2, 0, 3, 4});
        const Tensor down = cast(slice(branch, 3, 0, R), accumulate_type(branch.dtype()));
        results.push_back(cast(mul(down, rsqrt(mean(square(down), {-1}, true) + eps)), branch.dtype()));
        results.push_back(slice(branch, 3, R, 2 * R));
      } else {
        results.insert(results.end(), 2, Tensor());
      }
      results.push_back(tanh(squeeze(slice(in[1], 3, c, c + 1), 3)));
    }
    return results;
  };
  parts = record_many("compose_factors", std::move(parts), {w, gates},
                      differentiable([x, g, composed, w, gates, eps, &device, from = w ? w.shape() : Shape{},
                                      of_gates = gates.shape()](const std::vector<Tensor>& dys) -> Grads {
                        if (recording()) return detail::composed_gradients({w, gates}, composed, dys);
                        std::vector<Tensor> dense;
                        for (const Tensor& dy : dys) dense.push_back(dy ? dy.contiguous() : dy);
                        Tensor dw = x ? empty(from, g.dtype(), g.device()) : Tensor();
                        Tensor dgates = empty(of_gates, g.dtype(), g.device());
                        device.compose_factors.backward(x, g, eps, dense, dw, dgates);
                        return {dw, dgates};
                      }));
  std::vector<ComposeFactors> factors;
  for (size_t c = 0; c < static_cast<size_t>(C); ++c)
    factors.push_back(x ? ComposeFactors{parts[3 * c], parts[3 * c + 1], parts[3 * c + 2]}
                        : ComposeFactors{{}, {}, parts[3 * c + 2]});
  return factors;
}

}  // namespace braid
