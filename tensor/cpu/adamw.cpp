// Optimiser steps, in place, one pass over memory. g is the gradient times grad_scale, t the number of the update
// from 1.
//
//   AdamW:  m = b1 m + (1-b1) g,   v = b2 v + (1-b2) g^2,   p -= lr (mh / (sqrt(vh) + eps) + wd p)
//           with mh = m / (1 - b1^t), vh = v / (1 - b2^t).   Adam: g += wd p first, and no wd in the update.
//   SGD:    g += wd p,   u = f u + g (u = g at first),   p -= lr u
#include <cmath>

#include "tensor/backend.h"
#include "tensor/cpu/parallel.h"

namespace braid::cpu {

namespace {

template <class Step>
StepScalars current_scalars(const Step& s) {
  if (!s.scalars) return scalars_of(s);
  const double* v = s.scalars.template data<double>();
  return {v[0], v[1], v[2], v[3]};
}

}  // namespace

void adamw(const AdamWStep& s) {
  Tensor parameter = s.parameter, first = s.first, second = s.second;
  visit_float(parameter.dtype(), "adamw", [&]<class T>() {
    using A = Accumulate<T>;
    T* p = parameter.mutable_data<T>();
    const T* gradient = s.gradient.data<T>();
    A *m = first.mutable_data<A>(), *v = second.mutable_data<A>();
    StepScalars now = current_scalars(s);
    A b1 = A(s.beta1), b2 = A(s.beta2), c1 = A(1 - s.beta1), c2 = A(1 - s.beta2);
    A m_scale = A(now.first_scale), v_scale = A(now.second_scale);
    A lr = A(now.lr), eps = A(s.eps), scale = A(now.grad_scale);
    A coupled = A(s.coupled_decay ? s.weight_decay : 0), decay = A(s.coupled_decay ? 0 : s.weight_decay);
    parallel_for(parameter.numel(), grain_for(8), [&](int64_t begin, int64_t end) {
#pragma GCC ivdep  // four separate buffers
      for (int64_t i = begin; i < end; ++i) {
        A x = A(p[i]), g = A(gradient[i]) * scale + coupled * x;
        m[i] = b1 * m[i] + c1 * g;
        v[i] = b2 * v[i] + c2 * g * g;
        A update = m[i] * m_scale / (std::sqrt(v[i] * v_scale) + eps) + decay * x;
        p[i] = T(x - lr * update);
      }
    });
  });
}

void sgd(const SgdStep& s) {
  Tensor parameter = s.parameter, momentum = s.momentum;
  visit_float(parameter.dtype(), "sgd", [&]<class T>() {
    using A = Accumulate<T>;
    T* p = parameter.mutable_data<T>();
    const T* gradient = s.gradient.data<T>();
    A* u = momentum ? momentum.mutable_data<A>() : nullptr;
    StepScalars now = current_scalars(s);
    A lr = A(now.lr), decay = A(s.weight_decay), scale = A(now.grad_scale), keep = A(s.first ? 0 : s.momentum_factor);
    parallel_for(parameter.numel(), grain_for(4), [&](int64_t begin, int64_t end) {
      if (u) {
#pragma GCC ivdep  // three separate buffers
        for (int64_t i = begin; i < end; ++i) {
          A x = A(p[i]), g = A(gradient[i]) * scale + decay * x;
          u[i] = keep * u[i] + g;
          p[i] = T(x - lr * u[i]);
        }
      } else {
#pragma GCC ivdep
        for (int64_t i = begin; i < end; ++i) {
          A x = A(p[i]), g = A(gradient[i]) * scale + decay * x;
          p[i] = T(x - lr * g);
        }
      }
    });
  });
}

}  // namespace braid::cpu
