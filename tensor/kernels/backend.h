// What a device must know how to do: one constant table of typed function pointers per device.
//
// Contract of every kernel: inputs are read, outputs are already allocated with their shape and are filled. Kernels
// never allocate results, never check users' mistakes (the op above does, once) and never record history. Unless a line
// says otherwise, all tensors of a call have one dtype and outputs are contiguous. Arithmetic and accumulation are f32
// for f32, bf16 and f16, and f64 for f64. Results have the same bits at any thread count.
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include "braid/tensor/kernels/attention.h"
#include "braid/tensor/kernels/pointwise.h"
#include "braid/tensor/random.h"
#include "braid/tensor/tensor.h"

namespace braid {

struct DeviceGraph;

using In = const Tensor&;
using Out = Tensor&;

enum class ReduceOp : unsigned char { sum, max, min };

// What differs from one update to the next: a tensor `scalars`, f64 (4), holds these numbers in this order, on the
// parameters' device, so that an update that was captured once can be replayed with others.
struct StepScalars {
  double lr, grad_scale;             // the gradient is multiplied by grad_scale first (clipping)
  double first_scale, second_scale;  // 1 / (1 - beta^t) of AdamW's moments, t = 1 for the first update
};

struct AdamWStep {  // see nn/optim/optimizer.h for the formula
  struct Item {     // all the same number of elements, contiguous; the moments f32 (f64 for f64)
    Tensor parameter, gradient, first, second;
    double weight_decay;
  };
  std::vector<Item> items;  // their types may differ
  double beta1, beta2, eps;
  bool coupled_decay;  // Adam's L2: decay is added to the gradient instead of the update
  Tensor scalars;
};

struct SgdStep {
  struct Item {
    Tensor parameter, gradient, momentum;  // momentum may be empty; it starts as zeros
    double weight_decay;
  };
  std::vector<Item> items;
  double momentum_factor;
  Tensor scalars;
};

namespace detail {
template <size_t N>
struct Name {
  char text[N];
  constexpr Name(const char (&s)[N]) {
    for (size_t i = 0; i < N; ++i) text[i] = s[i];
  }
};
[[noreturn]] void no_such_kernel(const char* kernel, const char* device);

// The innermost kernel of the table that this thread is in, for the messages of a device; nullptr outside.
const char* running_kernel();
// Called around every kernel from now on, for profilers.
struct KernelObserver {
  void (*enter)(const char* kernel);
  void (*leave)();
};
void set_kernel_observer(KernelObserver watch);
class KernelScope {
 public:
  explicit KernelScope(const char* kernel);
  ~KernelScope();
  KernelScope(const KernelScope&) = delete;

 private:
  const char* before_;
};
}  // namespace detail

// A function pointer that throws "[softmax] no such kernel on this device" when the device has none.
template <class Signature>
struct KernelOf;
template <class R, class... Args>
struct KernelOf<R(Args...)> {
  template <detail::Name N>
  class Named {
   public:
    constexpr Named() = default;
    constexpr Named(R (*function)(Args...)) : function_(function) {}
    R operator()(Args... args) const {
      if (!function_) [[unlikely]]
        detail::no_such_kernel(N.text, "this device");
      const detail::KernelScope running(N.text);
      return function_(args...);
    }
    explicit constexpr operator bool() const { return function_ != nullptr; }
    static constexpr const char* name() { return N.text; }

   private:
    R (*function_)(Args...) = nullptr;
  };
};
template <detail::Name N, class Signature>
using Kernel = typename KernelOf<Signature>::template Named<N>;

struct Backend {
  const char* name;
  Allocator& (*allocator)();
  void (*synchronize)();

  // --- recording work, for tensor/graph.h; empty where the device cannot ---
  Kernel<"begin_capture", void()> begin_capture;
  Kernel<"end_capture", std::unique_ptr<DeviceGraph>()> end_capture;
  Kernel<"abort_capture", void()> abort_capture;  // throws nothing

  // --- memory ---
  Kernel<"transfer", void(In x, Out y)> transfer;  // between this device and the CPU; contiguous, same dtype
  Kernel<"copy", void(In x, Out y)> copy;  // same shape, any strides on both sides, any dtypes (this is the cast)
  Kernel<"fill", void(double value, Out y)> fill;  // any strides, any dtype

  // --- pointwise: any strides on the inputs (0 repeats), outputs contiguous; y may be the very same view as an input
  // ---
  Kernel<"unary", void(UnaryOp op, double a, double b, In x, Out y)> unary;
  Kernel<"unary_backward", void(UnaryOp op, double a, double b, In x, In dy, Out dx)> unary_backward;
  Kernel<"binary", void(BinaryOp op, In x, In y, Out z)> binary;  // x, y already expanded to z's shape; z: any strides
  // dx and dy have z's full shape (the op sums over repeated axes); either may be an empty handle.
  Kernel<"binary_backward", void(BinaryOp op, In x, In y, In dz, Out dx, Out dy)> binary_backward;
  Kernel<"masked_fill", void(In x, In mask, double value, Out y)> masked_fill;  // mask u8, expanded to x's shape
  Kernel<"mask_scores", void(In x, const AttentionMask& mask, double value, Out y)> mask_scores;  // x (..., T, S)
  Kernel<"dropout", void(In x, double p, RandomKey key, Out y)> dropout;  // y = x / (1-p) where random > p, else 0
  Kernel<"uniform", void(double low, double high, RandomKey key, Out y)> uniform;
  Kernel<"normal", void(double mean, double deviation, RandomKey key, Out y)> normal;

  // --- reductions: y has x's rank and size 1 along the reduced axes; fixed summation order ---
  Kernel<"reduce", void(ReduceOp op, In x, Out y)> reduce;  // any strides on x; y may be f32 when x is bf16 or f16
  // y = sum of x*z over the axes where y has size 1 and the common (broadcast) shape of x and z does not. x and z come
  // expanded to that shape, any strides.
  Kernel<"sum_product", void(In x, In z, Out y)> sum_product;
  Kernel<"argmax", void(In x, Out index)> argmax;  // last axis; index i64; the first of equals; NaN counts as largest
  // y (n), f64: y[i] = sum of x[i]^2, accumulated in f64. x[i] contiguous, of any types, or an empty handle, for 0.
  Kernel<"sum_of_squares", void(const std::vector<Tensor>& x, Out y)> sum_of_squares;

  // --- products: y (..., M, N) = x (..., M, K) z (..., K, N), batch axes already expanded to y's, any strides; y
  //     contiguous. accumulate: y += instead of y =. y may be f32 when x and z are bf16 or f16.
  Kernel<"matmul", void(In x, In z, bool accumulate, Out y)> matmul;
  // y (..., T, out) = x (..., T, in) weight^T + bias: any strides on x and weight (out, in); bias (out) is contiguous
  // or an empty handle. In 16 bits y is rounded once, with the bias in it.
  Kernel<"linear", void(In x, In weight, In bias, Out y)> linear;

  // --- rows: the last axis, contiguous ---
  Kernel<"softmax", void(In x, Out y)> softmax;  // a row of only -inf gives zeros
  Kernel<"softmax_backward", void(In y, In dy, Out dx)> softmax_backward;
  Kernel<"log_softmax", void(In x, Out y)> log_softmax;
  Kernel<"log_softmax_backward", void(In y, In dy, Out dx)> log_softmax_backward;
  // weight, bias (D) may be empty handles. rstd, mean (rows) are f32 (f64 for f64). With a residual, sum = x +
  // residual, rounded to its type, is written and takes the place of x; otherwise both are empty handles. Backward, x
  // is what was normed, and dx the norm's derivative + dsum, what has arrived at x from elsewhere (may be empty).
  Kernel<"rms_norm", void(In x, In residual, In weight, double eps, Out sum, Out y, Out rstd)> rms_norm;
  Kernel<"rms_norm_backward", void(In x, In weight, In rstd, In dy, In dsum, Out dx, Out dweight)> rms_norm_backward;
  Kernel<"layer_norm", void(In x, In residual, In weight, In bias, double eps, Out sum, Out y, Out mean, Out rstd)>
      layer_norm;
  Kernel<"layer_norm_backward", void(In x, In weight, In mean, In rstd, In dy, In dsum, Out dx, Out dweight, Out dbias)>
      layer_norm_backward;
  // x (B, T, N, d), tables (B or 1, T, rotary/2) in f32 (f64 for f64); inverse rotates by the negative angle.
  Kernel<"rope", void(In x, In cosine, In sine, bool inverse, Out y)> rope;

  // --- indexing: ids i64 or i32, contiguous, already checked to be in range ---
  Kernel<"index_select", void(In table, In ids, Out y)> index_select;  // table (V, D...), y (ids..., D...)
  Kernel<"index_add", void(In dy, In ids, Out dtable)> index_add;      // dtable += ; fixed order
  Kernel<"gather", void(In x, In ids, Out y)> gather;                  // y[...] = x[..., ids[...]]
  Kernel<"scatter", void(In dy, In ids, Out dx)> scatter;              // dx = 0 except dx[..., ids[...]] = dy[...]
  Kernel<"min_max", void(In ids, Out low_high)> min_max;               // i64 (2): smallest and largest id

  // --- loss: logits (R, V); targets (R), negative = not counted; loss, lse (R) in f32 (f64 for f64) ---
  Kernel<"cross_entropy", void(In logits, In targets, Out loss, Out lse)> cross_entropy;
  // dlogits = scale (softmax - onehot), 0 where not counted; dlogits may be the same tensor as logits. scale, in the
  // type of loss: (1), or (R) with one factor per row.
  Kernel<"cross_entropy_backward", void(In logits, In targets, In lse, In scale, Out dlogits)> cross_entropy_backward;

  // --- attention, never holding more than some rows of scores. The plan of a call comes first; forward and backward
  //     take it. lse (B, T, N), f32 (f64 for f64): log of the sum of exp(scores), +inf where all keys of a row are
  //     masked; an empty handle when no derivative will be asked for (plan: derivative = false) ---
  Kernel<"dcmha_plan", AttentionPlan(const DcmhaInputs& x, bool derivative)> dcmha_plan;
  Kernel<"dcmha_forward", void(const AttentionPlan& plan, const DcmhaInputs& x, Out y, Out lse)> dcmha_forward;
  Kernel<"dcmha_backward",
         void(const AttentionPlan& plan, const DcmhaInputs& x, In y, In lse, In dy, DcmhaGradients& gradients)>
      dcmha_backward;
  bool dcmha_in_16_bits = false;  // they take bf16 and f16 as they are; otherwise such inputs come as f32

  // --- optimisers, in place, all tensors of a list at once ---
  Kernel<"adamw", void(const AdamWStep&)> adamw;
  Kernel<"sgd", void(const SgdStep&)> sgd;
};

const Backend& backend(Device device);
const Backend& cpu_backend();  // tensor/cpu/backend.cpp
// Makes the card the current one of this thread: its kernels, allocator and stream are then that card's.
const Backend& cuda_backend(int index);  // cuda/backend.cpp, or cuda/no_cuda.cpp
Allocator& cpu_allocator();

}  // namespace braid
