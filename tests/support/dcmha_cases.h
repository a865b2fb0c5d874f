// Random calls of dcmha with every combination of terms, for tests that compare a device's kernels with the reference.
#pragma once
#include <random>
#include <string>
#include <vector>

#include "braid/autograd.h"
#include "braid/tensor/kernels/attention.h"

namespace braid::test {

struct DcmhaCase {
  int64_t B, T, S, G, M, share, d, q_rank, k_rank;
  DcmhaOptions options;
  unsigned terms;  // bits: which of the seven members of pre (low) and post (high) exist
  std::string text() const;
};
DcmhaCase random_dcmha_case(std::mt19937_64& random);

// A call from its tensors in the order of for_each_tensor: q, k, v, then of pre and of post base, q_down, q_up, k_down,
// k_up, q_gate, k_gate.
DcmhaInputs call_of(const std::vector<Tensor>& tensors);
// And the gradients with memory, in the same order.
DcmhaGradients gradients_of(const std::vector<Tensor>& tensors);

// A case with values: the same for a seed and type on every device.
class DcmhaCall {
 public:
  DcmhaCall(const DcmhaCase& c, uint64_t seed, DType dtype = DType::f64, Device device = kCpu);

  Tensor run(AttentionImpl impl, int threads_used = 0);  // 0: as many as before
  // The result, then the gradient of every input that exists.
  std::vector<Tensor> run_with_gradients(AttentionImpl impl, int threads_used = 0);
  // The same values, rounded already, in another type or on another device.
  DcmhaCall as(DType dtype, Device device) const;

  std::vector<Tensor> x;  // in the order of for_each_tensor
  Tensor dy;

 private:
  Tensor drawn(const Shape& shape, double deviation, uint64_t stream) const;
  void add(const Shape& shape, bool present, double deviation);
  DcmhaCase c_;
  uint64_t seed_;
  DType dtype_;
  Device device_;
};

}  // namespace braid::test
