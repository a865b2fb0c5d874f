// The CPU's table of contents.
#include "tensor/backend.h"

namespace braid {

namespace cpu {
void copy(In x, Out y);
void transfer(In x, Out y);
void fill(double value, Out y);

void unary(UnaryOp op, double a, double b, In x, Out y);
void unary_backward(UnaryOp op, double a, double b, In x, In dy, Out dx);
void binary(BinaryOp op, In x, In y, Out z);
void binary_backward(BinaryOp op, In x, In y, In dz, Out dx, Out dy);
void masked_fill(In x, In mask, double value, Out y);
void hide_invisible(In x, const Visibility& v, double value, Out y);
void dropout(In x, double p, RandomKey key, Out y);
void uniform(double low, double high, RandomKey key, Out y);
void normal(double mean, double deviation, RandomKey key, Out y);

void reduce(ReduceOp op, In x, Out y);
void mul_sum(In x, In z, Out y);
void argmax(In x, Out index);
void square_sum(In x, Out y);

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
      .transfer = cpu::transfer,
      .copy = cpu::copy,
      .fill = cpu::fill,
      .unary = cpu::unary,
      .unary_backward = cpu::unary_backward,
      .binary = cpu::binary,
      .binary_backward = cpu::binary_backward,
      .masked_fill = cpu::masked_fill,
      .hide_invisible = cpu::hide_invisible,
      .dropout = cpu::dropout,
      .uniform = cpu::uniform,
      .normal = cpu::normal,
      .reduce = cpu::reduce,
      .mul_sum = cpu::mul_sum,
      .argmax = cpu::argmax,
      .square_sum = cpu::square_sum,
      .softmax = cpu::softmax,
      .softmax_backward = cpu::softmax_backward,
      .log_softmax = cpu::log_softmax,
      .log_softmax_backward = cpu::log_softmax_backward,
  };
  return table;
}

}  // namespace braid
