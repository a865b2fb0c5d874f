// The CPU's table of contents.
#include "braid/tensor/kernels/backend.h"

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
void mask_scores(In x, const AttentionMask& v, double value, Out y);
void dropout(In x, double p, RandomKey key, Out y);
void uniform(double low, double high, RandomKey key, Out y);
void normal(double mean, double deviation, RandomKey key, Out y);

void reduce(ReduceOp op, In x, Out y);
void sum_product(In x, In z, Out y);
void argmax(In x, Out index);
void sum_of_squares(const std::vector<Tensor>& x, Out y);

void matmul(In x, In z, bool accumulate, Out y);
void linear(In x, In weight, In bias, Out y);
void softmax(In x, Out y);
void softmax_backward(In y, In dy, Out dx);
void log_softmax(In x, Out y);
void log_softmax_backward(In y, In dy, Out dx);
void rms_norm(In x, In residual, In weight, double eps, Out sum, Out y, Out rstd);
void rms_norm_backward(In x, In weight, In rstd, In dy, In dsum, Out dx, Out dweight);
void layer_norm(In x, In residual, In weight, In bias, double eps, Out sum, Out y, Out mean, Out rstd);
void layer_norm_backward(In x, In weight, In mean, In rstd, In dy, In dsum, Out dx, Out dweight, Out dbias);
void rope(In x, In cosine, In sine, bool inverse, Out y);
void index_select(In table, In ids, Out y);
void index_add(In dy, In ids, Out dtable);
void gather(In x, In ids, Out y);
void scatter(In dy, In ids, Out dx);
void min_max(In ids, Out low_high);
void cross_entropy(In logits, In targets, Out loss, Out lse);
void cross_entropy_backward(In logits, In targets, In lse, In scale, Out dlogits);
AttentionPlan dcmha_plan(const DcmhaInputs& x, bool derivative);
void dcmha_forward(const AttentionPlan& plan, const DcmhaInputs& x, Out y, Out lse);
void dcmha_backward(const AttentionPlan& plan, const DcmhaInputs& x, In y, In lse, In dy, DcmhaGradients& gradients);
void adamw(const AdamWStep& step);
void sgd(const SgdStep& step);
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
      .mask_scores = cpu::mask_scores,
      .dropout = cpu::dropout,
      .uniform = cpu::uniform,
      .normal = cpu::normal,
      .reduce = cpu::reduce,
      .sum_product = cpu::sum_product,
      .argmax = cpu::argmax,
      .sum_of_squares = cpu::sum_of_squares,
      .matmul = cpu::matmul,
      .linear = cpu::linear,
      .softmax = cpu::softmax,
      .softmax_backward = cpu::softmax_backward,
      .log_softmax = cpu::log_softmax,
      .log_softmax_backward = cpu::log_softmax_backward,
      .rms_norm = cpu::rms_norm,
      .rms_norm_backward = cpu::rms_norm_backward,
      .layer_norm = cpu::layer_norm,
      .layer_norm_backward = cpu::layer_norm_backward,
      .rope = cpu::rope,
      .index_select = cpu::index_select,
      .index_add = cpu::index_add,
      .gather = cpu::gather,
      .scatter = cpu::scatter,
      .min_max = cpu::min_max,
      .cross_entropy = cpu::cross_entropy,
      .cross_entropy_backward = cpu::cross_entropy_backward,
      .dcmha_plan = cpu::dcmha_plan,
      .dcmha_forward = cpu::dcmha_forward,
      .dcmha_backward = cpu::dcmha_backward,
      .adamw = cpu::adamw,
      .sgd = cpu::sgd,
  };
  return table;
}

}  // namespace braid
