// Rotary position embedding: each head of a token is rotated by the angles of its position (rotate.h).
#include <type_traits>

#include "braid/tensor/cpu/map.h"
#include "braid/tensor/cpu/rotate.h"
#include "braid/tensor/kernels/rope.h"
#include "braid/tensor/parallel.h"

namespace braid::cpu {

namespace {

void rope(In x, In cosine, In sine, bool inverse, Out y) {
  visit_float(x.dtype(), "rope", [&]<class T>() {
    using A = Accumulate<T>;
    const T* in = x.data<T>();
    const A *cos = cosine.data<A>(), *sin = sine.data<A>();
    T* out = y.mutable_data<T>();
    int64_t steps = x.dim(1), heads = x.dim(2), d = x.dim(3), h = cosine.dim(2);
    int64_t table_batch = cosine.dim(0) == 1 ? 0 : steps * h;
    const A sign = inverse ? A(-1) : A(1);
    parallel_for(x.dim(0) * steps, grain_for(heads * d * 2), [&](int64_t begin, int64_t end) {
      Lines<A> wide(std::is_same_v<T, A> ? 0 : d);
      for (int64_t r = begin; r < end; ++r) {
        const int64_t at = r / steps * table_batch + r % steps * h;
        for (int64_t n = r * heads; n < (r + 1) * heads; ++n) {
          if constexpr (std::is_same_v<T, A>) {
            rotate<0>(in + n * d, d, h, cos + at, sin + at, sign, out + n * d);
          } else {
            widen(d, in + n * d, wide.data());
            rotate<0, A>(wide.data(), d, h, cos + at, sin + at, sign, wide.data());
            narrow(d, wide.data(), out + n * d);
          }
        }
      }
    });
  });
}

}  // namespace

constinit const RopeKernels rope_kernels{
    .rotate = rope,
};

}  // namespace braid::cpu
