// The op that the user called, for the errors of the ops that it is composed of.
#pragma once
#include "braid/tensor/scoped_value.h"

namespace braid {

namespace detail {
extern constinit thread_local const char* called_op;  // nullptr: an error names the op in which it was found
}

// While it lives, errors of ops on this thread name `op`, or the op that called it where that is composed too.
class [[nodiscard]] CalledOp {
 public:
  explicit CalledOp(const char* op) : called_(detail::called_op, detail::called_op ? detail::called_op : op) {}

 private:
  ScopedValue<const char*> called_;
};

}  // namespace braid
