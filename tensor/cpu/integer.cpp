#include "braid/tensor/kernels/integer.h"

#include "braid/tensor/parallel.h"

namespace braid::cpu {

namespace {

void integer_binary(IntegerOp op, In x, In y, Out z) {
  integer::visit_type(x.dtype(), "integer", [&]<class T>() {
    const T *a = x.data<T>(), *b = y.data<T>();
    T* to = z.mutable_data<T>();
    integer::visit(op, [&]<IntegerOp o>() {
      parallel_for(z.numel(), grain_for(1), [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) to[i] = integer::value<o>(a[i], b[i]);
      });
    });
  });
}

}  // namespace

constinit const IntegerKernels integer_kernels{.binary = integer_binary};

}  // namespace braid::cpu
