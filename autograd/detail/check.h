// Checks that many ops share. For autograd/ops/*.cpp, and for who feeds ids to a device.
#pragma once
#include "braid/tensor/tensor.h"

namespace braid {

// Two inputs of one op must have one type and one device: nothing is promoted or moved silently.
inline void check_same(const char* op, const Tensor& x, const Tensor& y) {
  check(x.dtype() == y.dtype(), op,
        [&] { return "the inputs are " + str(x.dtype()) + " and " + str(y.dtype()) + "; cast one of them"; });
  check(x.device() == y.device(), op,
        [&] { return "the inputs are on " + str(x.device()) + " and " + str(y.device()) + "; move one of them"; });
}

inline void check_float(const char* op, const Tensor& x) {
  check(is_float(x.dtype()), op, [&] { return "needs a floating-point tensor, got " + str(x.dtype()); });
}

// Ids must lie in [0, limit). `negative_allowed`: negative ids mean "not counted". Throws Error(input) naming the first
// bad id, its position and the range. Waits for the device, unless the ids are there and this thread trusts them.
void check_ids(const char* op, const char* what, const Tensor& ids, int64_t limit, bool negative_allowed = false);

// Ids on a device are believed to be in range while it lives: whoever sent them there has checked them on the CPU.
class SkipIndexCheck {
 public:
  SkipIndexCheck();
  ~SkipIndexCheck();
  SkipIndexCheck(const SkipIndexCheck&) = delete;
  SkipIndexCheck& operator=(const SkipIndexCheck&) = delete;

 private:
  bool before_;
};

}  // namespace braid
