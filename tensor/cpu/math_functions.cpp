#include "braid/tensor/kernels/math_functions.h"

#include "braid/tensor/cpu/ivdep.h"
#include "braid/tensor/kernels/math_formulas.h"
#include "braid/tensor/parallel.h"

namespace braid::cpu {

namespace {

constexpr int64_t kCost = 32;  // operations of one value

void math_unary(MathOp op, In x, Out y) {
  visit_float(x.dtype(), "math", [&]<class T>() {
    const T* from = x.data<T>();
    T* to = y.mutable_data<T>();
    math_functions::visit(op, [&]<MathOp o>() {
      using A = Accumulate<T>;
      parallel_for(y.numel(), grain_for(kCost), [=](int64_t begin, int64_t end) {
        BRAID_IVDEP  // no overlap
        for (int64_t i = begin; i < end; ++i) to[i] = T(math_functions::unchecked<o>(A(from[i])));
        if constexpr (math_functions::kHasRange<o, A>) {
          int outside = 0;
          for (int64_t i = begin; i < end; ++i) outside |= !math_functions::in_range(A(from[i]));
          for (int64_t i = begin; i < end && outside; ++i) {
            if (!math_functions::in_range(A(from[i]))) to[i] = T(math_functions::value<o>(A(from[i])));
          }
        }
      });
    });
  });
}

void math_binary(MathOp2 op, In x, In y, Out z) {
  visit_float(x.dtype(), "math_of_two", [&]<class T>() {
    const T *a = x.data<T>(), *b = y.data<T>();
    T* to = z.mutable_data<T>();
    math_functions::visit(op, [&]<MathOp2 o>() {
      using A = Accumulate<T>;
      parallel_for(z.numel(), grain_for(kCost), [=](int64_t begin, int64_t end) {
        BRAID_IVDEP  // no overlap
        for (int64_t i = begin; i < end; ++i) to[i] = T(math_functions::unchecked<o>(A(a[i]), A(b[i])));
        if constexpr (math_functions::kHasRange2<o, A>) {
          int outside = 0;
          for (int64_t i = begin; i < end; ++i) outside |= !math_functions::in_range(A(a[i]), A(b[i]));
          for (int64_t i = begin; i < end && outside; ++i) {
            if (!math_functions::in_range(A(a[i]), A(b[i]))) to[i] = T(math_functions::value<o>(A(a[i]), A(b[i])));
          }
        }
      });
    });
  });
}

}  // namespace

constinit const MathKernels math_kernels{
    .unary = math_unary,
    .binary = math_binary,
};

}  // namespace braid::cpu
