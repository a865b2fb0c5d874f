// cuDNN's attention, by the CPU's.
#include <mutex>
#include <set>

#include "braid/cuda/attention/sdpa_cudnn.h"
#include "braid/tensor/kernels/backend.h"
#include "tests/cuda/emulation/engine.h"
#include "tests/cuda/emulation/gpu.h"
#include "tests/cuda/emulation/memory.h"

namespace braid::cuda::attention::sdpa_cudnn {

namespace {

const Device kCpu{Device::Kind::cpu, 0};

// visit(i, offset) for every element of x (rank 3 or 4), i counting them in the order of a contiguous tensor.
template <class F>
void each(const Tensor& x, F visit) {
  const int64_t inner = x.rank() == 4 ? x.dim(3) : 1, step = x.rank() == 4 ? x.strides()[3] : 0;
  for (int64_t i = 0; i < x.numel(); ++i) {
    const int64_t n = i / inner, t = n / x.dim(2), b = t / x.dim(1);
    visit(i, b * x.strides()[0] + t % x.dim(1) * x.strides()[1] + n % x.dim(2) * x.strides()[2] + i % inner * step);
  }
}

Tensor read(const Tensor& x) {  // as f32, on the CPU
  Tensor copy = empty(x.shape(), DType::f32, kCpu);
  float* to = copy.mutable_data<float>();
  visit_float(x.dtype(), "attention", [&]<class T>() {
    each(x, [&, from = x.data<T>()](int64_t i, int64_t at) { to[i] = static_cast<float>(from[at]); });
  });
  return copy;
}
void write(const Tensor& copy, Tensor x) {
  const float* from = copy.data<float>();
  visit_float(x.dtype(), "attention", [&]<class T>() {
    each(x, [&, to = x.mutable_data<T>()](int64_t i, int64_t at) { to[at] = static_cast<T>(from[i]); });
  });
}

// Throws where cuDNN would return an error or read past the end.
void check_layout(const Tensor& x) {
  bool fits = reinterpret_cast<uintptr_t>(x.raw()) % 16 == 0 && x.strides()[3] == 1;
  for (int axis = 0; axis < 3; ++axis) fits = fits && x.strides()[axis] * size_of(x.dtype()) % 16 == 0;
  check(fits, "attention", [] { return std::string("a tensor is not laid out for cuDNN"); });
}

void run(const AttentionCall& call) {
  const emulated::OnTheGpu on;
  for (const Tensor* t : {&call.q, &call.k, &call.v, &call.y, &call.dy, &call.dq, &call.dk, &call.dv}) {
    if (*t) check_layout(*t);
  }
  check(call.lse.is_contiguous(), "attention", [] { return std::string("lse is not contiguous"); });
  const DcmhaInputs x{.q = read(call.q),
                      .k = read(call.k),
                      .v = read(call.v),
                      .pre = {},
                      .post = {},
                      .groups = 1,
                      .mask = call.mask,
                      .scale = call.scale};
  Tensor lse = call.lse.transposed(1, 2);  // (B, T, N)
  if (!call.dy) {
    Tensor y = empty(x.q.shape(), DType::f32, kCpu), sums = empty(lse.shape(), DType::f32, kCpu);
    cpu_backend().attention.forward({}, x, y, sums);
    write(y, call.y);
    write(sums, lse);
  } else {
    DcmhaGradients to{.q = empty_like(x.q), .k = empty_like(x.k), .v = empty_like(x.v), .pre = {}, .post = {}};
    cpu_backend().attention.backward({}, x, read(call.y), read(lse), read(call.dy), to);
    write(to.q, call.dq);
    write(to.k, call.dk);
    write(to.v, call.dv);
  }
}

}  // namespace

std::optional<std::string> run_attention(const AttentionCall& call) {
  if (!emulated::gpu().no_cudnn.empty()) return emulated::gpu().no_cudnn;
  static std::mutex mutex;
  static std::set<std::vector<int64_t>> known;  // as cuDNN, whose kernels are made outside of captures
  std::vector<int64_t> key{static_cast<int64_t>(call.q.dtype()), call.mask.window, call.mask.offset, bool(call.dy)};
  for (const Tensor* t : {&call.q, &call.k, &call.v})
    for (int axis = 0; axis < 4; ++axis) key.insert(key.end(), {t->dim(axis), t->strides()[axis]});
  {
    std::lock_guard lock(mutex);
    if (!known.contains(key)) check_may_plan(call);
    known.insert(key);
  }
  emulated::submit([call] { run(call); });
  return std::nullopt;
}

}  // namespace braid::cuda::attention::sdpa_cudnn
