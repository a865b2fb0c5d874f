// Optimiser steps, in place, one pass over memory. g is the gradient times grad_scale, t the number of the update
// from 1.
//
//   AdamW:  m = b1 m + (1-b1) g,   v = b2 v + (1-b2) g^2,   p -= lr (mh / (sqrt(vh) + eps) + wd p)
//           with mh = m / (1 - b1^t), vh = v / (1 - b2^t).   Adam: g += wd p first, and no wd in the update.
//   SGD:    g += wd p,   u = f u + g (u = g at first),   p -= lr u
#include <cmath>

#include "cuda/kernel.h"
#include "cuda/vector.cuh"
#include "tensor/backend.h"

namespace braid::cuda {

namespace {

constexpr int kThreads = 256;

// From the host, or from the card's memory when that is not null.
struct Scalars {
  StepScalars host;
  const double* card;

  __device__ StepScalars read() const { return card ? StepScalars{card[0], card[1], card[2], card[3]} : host; }
};

template <class Step>
Scalars scalars_for(const Step& s) {
  return {scalars_of(s), s.scalars ? s.scalars.template data<double>() : nullptr};
}

template <class A>
struct AdamW {
  A b1, b2, c1, c2, eps, coupled, decay;
};

// A thread per pack of parameters.
template <class T>
__global__ void __launch_bounds__(kThreads) adamw_kernel(int64_t n, T* p, const T* g, Accumulate<T>* m,
                                                         Accumulate<T>* v, AdamW<Accumulate<T>> f, Scalars scalars) {
  using A = Accumulate<T>;
  constexpr int W = kWidth<T>;
  int64_t i = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * W;
  Pack<T> parameter = load_pack<W>(p, i, n), gradient = load_pack<W>(g, i, n);
  Pack<A, W> first = load_pack<W>(m, i, n), second = load_pack<W>(v, i, n);
  StepScalars now = scalars.read();
  A lr = A(now.lr), scale = A(now.grad_scale), m_scale = A(now.first_scale), v_scale = A(now.second_scale);
#pragma unroll
  for (int j = 0; j < W; ++j) {
    A x = A(parameter[j]), slope = A(gradient[j]) * scale + f.coupled * x;
    first[j] = f.b1 * first[j] + f.c1 * slope;
    second[j] = f.b2 * second[j] + f.c2 * slope * slope;
    A update = first[j] * m_scale / (std::sqrt(second[j] * v_scale) + f.eps) + f.decay * x;
    parameter[j] = T(x - lr * update);
  }
  store_pack(p, i, n, parameter);
  store_pack(m, i, n, first);
  store_pack(v, i, n, second);
}

template <class A>
struct Sgd {
  A decay, keep;
};

// momentum: null for plain descent
template <class T>
__global__ void __launch_bounds__(kThreads)
    sgd_kernel(int64_t n, T* p, const T* g, Accumulate<T>* momentum, Sgd<Accumulate<T>> f, Scalars scalars) {
  using A = Accumulate<T>;
  constexpr int W = kWidth<T>;
  int64_t i = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * W;
  Pack<T> parameter = load_pack<W>(p, i, n), gradient = load_pack<W>(g, i, n);
  Pack<A, W> u = load_pack<W>(momentum, i, momentum ? n : 0);
  StepScalars now = scalars.read();
  A lr = A(now.lr), scale = A(now.grad_scale);
#pragma unroll
  for (int j = 0; j < W; ++j) {
    A x = A(parameter[j]);
    u[j] = f.keep * u[j] + (A(gradient[j]) * scale + f.decay * x);
    parameter[j] = T(x - lr * u[j]);
  }
  store_pack(p, i, n, parameter);
  store_pack(momentum, i, momentum ? n : 0, u);
}

template <class T>
Launch shape_for(int64_t n) {
  int64_t per_block = int64_t{kThreads} * kWidth<T>;
  return {.grid = static_cast<unsigned>((n + per_block - 1) / per_block), .block = kThreads};
}

}  // namespace

void adamw(const AdamWStep& s) {
  Tensor parameter = s.parameter, first = s.first, second = s.second;
  int64_t n = parameter.numel();
  if (n == 0) return;
  visit_float(parameter.dtype(), "adamw", [&]<class T>() {
    using A = Accumulate<T>;
    AdamW<A> f{.b1 = A(s.beta1),
               .b2 = A(s.beta2),
               .c1 = A(1 - s.beta1),
               .c2 = A(1 - s.beta2),
               .eps = A(s.eps),
               .coupled = A(s.coupled_decay ? s.weight_decay : 0),
               .decay = A(s.coupled_decay ? 0 : s.weight_decay)};
    launch(adamw_kernel<T>, shape_for<T>(n), n, parameter.mutable_data<T>(), s.gradient.data<T>(),
           first.mutable_data<A>(), second.mutable_data<A>(), f, scalars_for(s));
  });
}

void sgd(const SgdStep& s) {
  Tensor parameter = s.parameter, momentum = s.momentum;
  int64_t n = parameter.numel();
  if (n == 0) return;
  visit_float(parameter.dtype(), "sgd", [&]<class T>() {
    using A = Accumulate<T>;
    Sgd<A> f{.decay = A(s.weight_decay), .keep = A(s.first || !momentum ? 0 : s.momentum_factor)};
    launch(sgd_kernel<T>, shape_for<T>(n), n, parameter.mutable_data<T>(), s.gradient.data<T>(),
           momentum ? momentum.mutable_data<A>() : nullptr, f, scalars_for(s));
  });
}

}  // namespace braid::cuda
