// Rotary position embedding: pairs (e, e + h) of the first 2h channels are rotated by an angle a(t, e); the rest is
// copied.
//   y[e] = x[e] cos a - x[e+h] sin a,   y[e+h] = x[e+h] cos a + x[e] sin a;   inverse: a -> -a, which is also the
//   derivative.
#include <cstring>

#include "braid/tensor/cpu/ivdep.h"
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
    A sign = inverse ? A(-1) : A(1);
    parallel_for(x.dim(0) * steps, grain_for(heads * d * 2), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        int64_t at = r / steps * table_batch + r % steps * h;
        const A *c = cos + at, *s = sin + at;
        for (int64_t n = 0; n < heads; ++n) {
          const T* xr = in + (r * heads + n) * d;
          T* yr = out + (r * heads + n) * d;
          BRAID_IVDEP  // y may be x, but an iteration reads both elements of its pair before it writes them
          for (int64_t e = 0; e < h; ++e) {
            A first = A(xr[e]), second = A(xr[e + h]), sine_e = sign * s[e];
            yr[e] = T(first * c[e] - second * sine_e);
            yr[e + h] = T(second * c[e] + first * sine_e);
          }
          if (d > 2 * h) std::memcpy(yr + 2 * h, xr + 2 * h, static_cast<size_t>(d - 2 * h) * sizeof(T));
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
