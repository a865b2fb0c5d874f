// A BLAS that executes plans by the definition of the product.
#include <mutex>
#include <set>

#include "braid/cuda/matmul/matmul.h"
#include "tests/cuda/emulation/engine.h"
#include "tests/cuda/emulation/memory.h"

namespace braid::cuda {

namespace {

template <class T, class Y>
void run(const MatmulPlan& p, Accumulate<T> alpha, Accumulate<T> beta) {
  using A = Accumulate<T>;
  const auto at = [](const BlasOperand& o, int64_t row, int64_t column) {
    return o.transposed ? column + row * o.leading : row + column * o.leading;
  };
  for (const auto& call : p.calls) {
    for (int64_t i = 0; i < p.batch; ++i) {
      const T* a = p.a.tensor->data<T>() + call.a + i * p.a.batch;
      const T* b = p.b.tensor->data<T>() + call.b + i * p.b.batch;
      Y* c = Tensor(*p.c.tensor).mutable_data<Y>() + call.c + i * p.c.batch;
      for (int64_t column = 0; column < p.columns; ++column) {
        for (int64_t row = 0; row < p.rows; ++row) {
          A sum = 0;
          for (int64_t k = 0; k < p.inner; ++k) {
            sum += static_cast<A>(a[at(p.a, row, k)]) * static_cast<A>(b[at(p.b, k, column)]);
          }
          Y& y = c[at(p.c, row, column)];
          sum = beta == 0 ? alpha * sum : alpha * sum + beta * static_cast<A>(y);  // y may be NaN
          y = static_cast<Y>(p.bias ? sum + static_cast<A>(p.bias->data<Y>()[row]) : sum);
        }
      }
    }
  }
}

void run(const MatmulPlan& p, double alpha, double beta) {
  const emulated::OnTheGpu on;
  // Arguments that a BLAS rejects.
  check(p.a.leading >= (p.a.transposed ? p.inner : p.rows) && p.b.leading >= (p.b.transposed ? p.columns : p.inner) &&
            p.c.leading >= p.rows && !p.c.transposed,
        "matmul", [] { return std::string("a leading dimension is too small"); });
  visit_float(p.a.tensor->dtype(), "matmul", [&]<class T>() {
    using A = Accumulate<T>;
    if (p.c.tensor->dtype() == dtype_of<T>()) {
      run<T, T>(p, static_cast<A>(alpha), static_cast<A>(beta));
    } else {
      run<T, A>(p, static_cast<A>(alpha), static_cast<A>(beta));
    }
  });
}

}  // namespace

bool execute(const MatmulPlan& plan, double alpha, double beta) {
  {
    static std::mutex mutex;
    static std::set<ProductKey> known;  // as cuBLASLt, whose algorithms are chosen outside of captures
    std::lock_guard lock(mutex);
    for (const auto& call : plan.calls) {
      const ProductKey key = key_of(plan, call, beta != 0);
      if (!known.contains(key)) check_may_choose(plan);
      known.insert(key);
    }
  }
  if (plan.bias && plan.bias->dtype() == DType::f64) return false;  // as cuBLASLt, which has no epilogues there
  const Tensor bias = plan.bias ? *plan.bias : Tensor();
  emulated::submit([plan, a = *plan.a.tensor, b = *plan.b.tensor, c = *plan.c.tensor, bias, alpha, beta] {
    MatmulPlan own = plan;  // its tensors may be gone when a graph is replayed, these are not
    own.bias = bias ? &bias : nullptr;
    own.a.tensor = &a;
    own.b.tensor = &b;
    own.c.tensor = &c;
    run(own, alpha, beta);
  });
  return true;
}

}  // namespace braid::cuda
