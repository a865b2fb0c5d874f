// The CPU's table of contents.
#include "tensor/backend.h"

namespace braid {

namespace cpu {
void softmax(In x, Out y);
void softmax_backward(In y, In dy, Out dx);
void log_softmax(In x, Out y);
void log_softmax_backward(In y, In dy, Out dx);
}  // namespace cpu

const Backend& cpu_backend() {
  static constexpr Backend table{
      .name = "cpu",
      .allocator = cpu_allocator,
      .synchronize = [] {},
      .softmax = cpu::softmax,
      .softmax_backward = cpu::softmax_backward,
      .log_softmax = cpu::log_softmax,
      .log_softmax_backward = cpu::log_softmax_backward,
  };
  return table;
}

}  // namespace braid
