#include "tests/support/dcmha_cases.h"

#include <sstream>

#include "braid/tensor/parallel.h"
#include "tests/support/random.h"

namespace braid::test {

std::string DcmhaCase::text() const {
  std::ostringstream out;
  const AttentionMask& v = options.mask;
  out << "B " << B << " T " << T << " S " << S << " G " << G << " M " << M << " share " << share << " d " << d
      << " ranks " << q_rank << ' ' << k_rank << " causal " << v.causal << " window " << v.window << " offset "
      << v.offset << " terms " << terms;
  return out.str();
}

DcmhaCase random_dcmha_case(std::mt19937_64& random) {
  auto pick = [&](std::initializer_list<int64_t> of) { return *(of.begin() + random() % of.size()); };
  DcmhaCase c{};
  c.B = pick({1, 1, 2, 3});
  c.M = pick({1, 1, 2, 3, 4, 5, 8, 17});
  c.G = c.M > 5 ? 1 : pick({1, 2, 3});
  c.share = pick({1, 1, 1, 2, 3, 6});
  if (c.G * c.M % c.share != 0) c.share = 1;
  c.d = pick({1, 2, 3, 7, 8, 16, 20, 33});
  c.q_rank = pick({1, 2, 2, 3});
  c.k_rank = pick({1, 2, 2, 4});
  int64_t W = pick({1, 2, 5, 8, 17, 30});
  c.T = pick({1, 2, 7, 8, 9, 31, 70, W, W + 1, 2 * W, 2 * W + 1});
  c.S = pick({c.T, c.T, c.T, c.T + 5, 1, 40});
  c.options.mask.causal = random() % 4 != 0;
  c.options.mask.window = random() % 2 && c.options.mask.causal ? W : 0;
  c.options.mask.offset = random() % 2 ? c.S - c.T : pick({0, 3, -2});
  if (random() % 3 == 0) c.options.scale = 0.7;
  c.terms = static_cast<unsigned>(random() % 4 == 0 ? 0x3fff : random() & 0x3fff);
  if (random() % 8 == 0) c.terms = 0;
  return c;
}

DcmhaInputs call_of(const std::vector<Tensor>& tensors) {
  DcmhaInputs call;
  size_t i = 0;
  for_each_tensor([&](const AttentionRole&, Tensor& t) { t = tensors.at(i++); }, call);
  return call;
}

DcmhaGradients gradients_of(const std::vector<Tensor>& tensors) {
  DcmhaGradients gradients;
  size_t i = 0;
  for_each_tensor([&](const AttentionRole&, Tensor& t) { t = tensors.at(i++); }, gradients);
  return gradients;
}

DcmhaCall::DcmhaCall(const DcmhaCase& c, uint64_t seed, DType dtype, Device device)
    : c_(c), seed_(seed), dtype_(dtype), device_(device) {
  int64_t N = c.G * c.M;
  add({c.B, c.T, N, c.d}, true, 1);
  for (int i = 0; i < 2; ++i) add({c.B, c.S, N / c.share, c.d}, true, 1);
  for (int stage = 0; stage < 2; ++stage) {
    unsigned t = c.terms >> (7 * stage);
    add({c.G, c.M, c.M}, t & 1, 0.3);
    for (int i = 0; i < 2; ++i) add({c.B, c.T, c.G, c.q_rank, c.M}, t & 2, 0.4);
    for (int i = 0; i < 2; ++i) add({c.B, c.S, c.G, c.k_rank, c.M}, t & 4, 0.4);
    add({c.B, c.T, c.G, c.M}, t & 8, 0.4);
    add({c.B, c.S, c.G, c.M}, t & 16, 0.4);
  }
  dy = drawn({c.B, c.T, N, c.d}, 1, 99);
}

Tensor DcmhaCall::drawn(const Shape& shape, double deviation, uint64_t stream) const {
  return normal_tensor(shape, deviation, {seed_, stream}, dtype_).to(device_);
}

void DcmhaCall::add(const Shape& shape, bool present, double deviation) {
  Tensor t;
  if (present) {
    t = drawn(shape, deviation, x.size() + 1);
    require_grad(t);
  }
  x.push_back(t);
}

Tensor DcmhaCall::run(AttentionImpl impl, int threads_used) {
  if (threads_used > 0) set_threads(threads_used);
  DcmhaOptions options = c_.options;
  options.groups = c_.G;
  options.impl = impl;
  const DcmhaInputs call = call_of(x);
  return dcmha(call.q, call.k, call.v, call.pre, call.post, options);
}

std::vector<Tensor> DcmhaCall::run_with_gradients(AttentionImpl impl, int threads_used) {
  for (Tensor& t : x) {
    if (t) zero_grad(t);
  }
  Tensor y = run(impl, threads_used);
  std::vector<Tensor> results{y.detach()};
  backward(y, dy);
  for (Tensor& t : x) {
    if (t) results.push_back(grad(t) ? grad(t) : zeros_like(t));
  }
  return results;
}

DcmhaCall DcmhaCall::as(DType dtype, Device device) const {
  DcmhaCall other = *this;
  other.dtype_ = dtype;
  other.device_ = device;
  other.dy = dy.to(dtype).to(device);
  for (Tensor& t : other.x) {
    if (!t) continue;
    t = t.detach().to(dtype).to(device).clone();
    require_grad(t);
  }
  return other;
}

}  // namespace braid::test
