// The CUDA device's table of contents. Kernels live in cuda/kernels, in files named as those of tensor/cpu.
#include "braid/tensor/kernels/backend.h"

#include "braid/cuda/matmul/blas.h"
#include "braid/cuda/runtime/graph.h"
#include "braid/cuda/runtime/runtime.h"

namespace braid {

namespace cuda {
Allocator& device_allocator();  // cuda/runtime/allocator.cpp

// copy.cu, pointwise.cu, random.cu
void copy(In, Out);
void fill(double, Out);
void unary(UnaryOp, double, double, In, Out);
void unary_backward(UnaryOp, double, double, In, In, Out);
void binary(BinaryOp, In, In, Out);
void binary_backward(BinaryOp, In, In, In, Out, Out);
void masked_fill(In, In, double, Out);
void mask_scores(In, const AttentionMask&, double, Out);
void dropout(In, double, RandomKey, Out);
void uniform(double, double, RandomKey, Out);
void normal(double, double, RandomKey, Out);
// reduce.cu, argmax.cu, sum_of_squares.cu
void reduce(ReduceOp, In, Out);
void sum_product(In, In, Out);
void argmax(In, Out);
void sum_of_squares(const std::vector<Tensor>&, Out);
// kernels/softmax.cu, norm.cu, rope.cu, index.cu, index_add.cu, cross_entropy.cu, adamw.cu
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
void adamw(const AdamWStep& s);
void sgd(const SgdStep& s);
// attention/dispatch.cpp
AttentionPlan dcmha_plan(const DcmhaInputs& x, bool derivative);
void dcmha_forward(const AttentionPlan& plan, const DcmhaInputs& x, Out y, Out lse);
void dcmha_backward(const AttentionPlan& plan, const DcmhaInputs& x, In y, In lse, In dy, DcmhaGradients& gradients);

static void not_in_a_graph(const char* what) {
  check(!capturing(), "graph", [&] {
    return std::string(what) + " while a graph is captured, but its kernels have not run yet; do it before or after";
  });
}

static void transfer(In x, Out y) {
  not_in_a_graph(x.device() == kCpu ? "values were brought to the card" : "values were read back");
  const int64_t bytes = x.numel() * size_of(x.dtype());
  if (bytes == 0) return;
  if (x.device() == kCpu) {
    copy_to_device(y.mutable_raw(), x.raw(), bytes);
  } else {
    copy_to_host(y.mutable_raw(), x.raw(), bytes);
  }
}

static void wait() {
  not_in_a_graph("the host waited for the card");
  synchronize();
}

static void matmul(In x, In z, bool accumulate, Out y) { product(x, z, 1, accumulate ? 1 : 0, y); }
}  // namespace cuda

const Backend& cuda_backend(int index) {
  static constexpr Backend table{
      .name = "cuda",
      .allocator = cuda::device_allocator,
      .synchronize = cuda::wait,
      .begin_capture = cuda::begin_capture,
      .end_capture = cuda::end_capture,
      .abort_capture = cuda::abort_capture,
      .transfer = cuda::transfer,
      .copy = cuda::copy,
      .fill = cuda::fill,
      .unary = cuda::unary,
      .unary_backward = cuda::unary_backward,
      .binary = cuda::binary,
      .binary_backward = cuda::binary_backward,
      .masked_fill = cuda::masked_fill,
      .mask_scores = cuda::mask_scores,
      .dropout = cuda::dropout,
      .uniform = cuda::uniform,
      .normal = cuda::normal,
      .reduce = cuda::reduce,
      .sum_product = cuda::sum_product,
      .argmax = cuda::argmax,
      .sum_of_squares = cuda::sum_of_squares,
      .matmul = cuda::matmul,
      .linear = cuda::linear,
      .softmax = cuda::softmax,
      .softmax_backward = cuda::softmax_backward,
      .log_softmax = cuda::log_softmax,
      .log_softmax_backward = cuda::log_softmax_backward,
      .rms_norm = cuda::rms_norm,
      .rms_norm_backward = cuda::rms_norm_backward,
      .layer_norm = cuda::layer_norm,
      .layer_norm_backward = cuda::layer_norm_backward,
      .rope = cuda::rope,
      .index_select = cuda::index_select,
      .index_add = cuda::index_add,
      .gather = cuda::gather,
      .scatter = cuda::scatter,
      .min_max = cuda::min_max,
      .cross_entropy = cuda::cross_entropy,
      .cross_entropy_backward = cuda::cross_entropy_backward,
      .dcmha_plan = cuda::dcmha_plan,
      .dcmha_forward = cuda::dcmha_forward,
      .dcmha_backward = cuda::dcmha_backward,
      .dcmha_in_16_bits = true,
      .adamw = cuda::adamw,
      .sgd = cuda::sgd,
  };
  cuda::use_device(index);
  return table;
}

}  // namespace braid
