// Tensors for kernel tests, and a check that a kernel gives the same bits at any thread count.
#pragma once
#include <cstring>

#include "braid/tensor/kernels/backend.h"
#include "braid/tensor/parallel.h"
#include "tests/support/compare.h"
#include "tests/support/random.h"

namespace braid::test {

inline bool same_bits(const Tensor& a, const Tensor& b) {
  Tensor x = a.detach().contiguous(), y = b.detach().contiguous();
  return x.shape() == y.shape() && x.dtype() == y.dtype() &&
         (x.numel() == 0 || std::memcmp(x.raw(), y.raw(), static_cast<size_t>(x.numel() * size_of(x.dtype()))) == 0);
}

// make() computes a tensor; compared at 1 to 4 threads.
template <class Make>
bool same_at_any_thread_count(Make make) {
  int before = threads();
  set_threads(1);
  Tensor want = make();
  bool same = true;
  for (int n = 2; n <= 4; ++n) {
    set_threads(n);
    same = same && same_bits(make(), want);
  }
  set_threads(before);
  return same;
}

}  // namespace braid::test
