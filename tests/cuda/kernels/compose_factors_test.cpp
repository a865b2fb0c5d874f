// The factors of Compose in one kernel each way, against the kernel of the CPU.
#include "braid/autograd/ops.h"
#include "tests/cuda/support.h"

using namespace braid;
using namespace braid::test;

namespace {

struct Sizes {
  int64_t B, T, G, C, R, M;
};

// Every factor, and the gradients of w and gates; `skip`: that factor of each branch has no gradient.
std::vector<Tensor> factors_and_gradients(const std::vector<Tensor>& in, int skip) {
  Tensor w = in[0] ? in[0].detach() : in[0], gates = in[1].detach();
  if (w) require_grad(w);
  require_grad(gates);
  std::vector<Tensor> results;
  Tensor loss;
  for (const ComposeFactors& f : compose_factors(w, gates, 0.05)) {
    int kind = 0;
    for (const Tensor& t : {f.down, f.up, f.gate}) {
      if (!t) continue;
      results.push_back(t.detach().contiguous());
      if (kind++ == skip) continue;
      const Tensor weight = random_tensor(t.shape(), 7 + results.size(), t.dtype()).to(t.device());
      const Tensor term = sum(t * weight);
      loss = loss ? loss + term : term;
    }
  }
  backward(loss);
  if (w) results.push_back(grad(w));
  results.push_back(grad(gates));
  return results;
}

void check_sizes(const Sizes& z, DType t, int skip, bool misaligned) {
  BOOST_TEST_CONTEXT(str(t) << " B" << z.B << " T" << z.T << " G" << z.G << " C" << z.C << " R" << z.R << " M" << z.M
                            << " without " << skip) {
    Tensor w = z.R > 0 ? random_tensor({z.G, z.C, z.B, z.T, 2 * z.R, z.M}, 1, t) : Tensor();
    check_on_gpu([skip](const auto& in) { return factors_and_gradients(in, skip); },
                 {w, random_tensor({z.B, z.T, z.G, z.C, z.M}, 2, t)}, tolerance_of(t), misaligned, 0.01);
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cuda_compose_factors)

BOOST_AUTO_TEST_CASE(are_those_of_the_cpu) {
  for (DType t : kFloats) {
    for (const Sizes& z : std::vector<Sizes>{
             {2, 3, 1, 4, 2, 16}, {1, 5, 1, 4, 2, 32}, {1, 2, 2, 3, 1, 5}, {2, 2, 1, 2, 0, 16}, {1, 1, 1, 1, 3, 70}}) {
      check_sizes(z, t, -1, false);
      check_sizes(z, t, 1, z.M == 16);
    }
  }
}

BOOST_AUTO_TEST_CASE(groups_too_large_for_registers) {
  check_sizes({1, 1, 1, 1, 1, 2051}, DType::f64, -1, false);
  check_sizes({1, 1, 1, 1, 1, 4099}, DType::f32, -1, false);
  check_sizes({1, 1, 1, 1, 1, 8203}, DType::bf16, -1, false);
  check_sizes({1, 1, 1, 1, 1, 8203}, DType::f16, -1, false);
}

BOOST_AUTO_TEST_SUITE_END()
