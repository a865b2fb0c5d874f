// Checks that many ops share. For autograd/ops/*.cpp, and for who feeds ids to a device.
#pragma once
#include "braid/tensor/called_op.h"
#include "braid/tensor/scoped_value.h"
#include "braid/tensor/tensor.h"

namespace braid {

// Two inputs of one op must have one type and one device: nothing is promoted or moved silently.
inline void check_same(const char* op, const Tensor& x, const Tensor& y) {
  check(x.dtype() == y.dtype(), op,
        [&] { return str("the inputs are ", x.dtype(), " and ", y.dtype(), "; cast one of them"); });
  check(x.device() == y.device(), op,
        [&] { return str("the inputs are on ", x.device(), " and ", y.device(), "; move one of them"); });
}

inline void check_float(const char* op, const Tensor& x) {
  check(is_float(x.dtype()), op,
        [&] { return str("needs a floating-point tensor, got ", x.dtype(), "; cast(x, DType::f32) makes one"); });
}

// The axis, counted from the front, of an x that has one.
inline int axis_of(const char* op, const Tensor& x, int axis) {
  check(x.rank() >= 1, op, [&] { return str("needs at least one axis, got ", x.shape()); });
  return normal_axis(axis, x.rank(), op);
}

// Ids must lie in [0, limit). `negative_allowed`: negative ids mean "not counted". Throws Error(input) naming the first
// bad id, its position and the range. Waits for the device, unless the ids are there and this thread trusts them.
void check_ids(const char* op, const char* what, const Tensor& ids, int64_t limit, bool negative_allowed = false);

inline void check_mask(const char* op, const Tensor& mask) {
  check(mask.dtype() == DType::u8, op,
        [&] { return str("needs a mask of u8, got ", mask.dtype(), "; comparisons such as x > 0 give one"); });
}

namespace detail {
extern constinit thread_local bool skip_index_check;
}

// While it lives, check_ids() on this thread passes ids on a device without reading them: they were checked on the CPU
// before they were sent there.
class SkipIndexCheck {
  ScopedValue<bool> skip_{detail::skip_index_check, true};
};

}  // namespace braid
