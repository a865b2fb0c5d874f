// The public list of operations: every one is differentiable, or throws when a gradient is wanted.
//
// All inputs of an op have one dtype and one device; there is no silent promotion. Binary ops broadcast by NumPy's
// rules. Letters: B batch, T query positions, S key positions, N heads, d head size, D model width, V vocabulary.
#pragma once
#include <initializer_list>
#include <vector>

#include "braid/autograd/record.h"
#include "braid/tensor/kernels/attention.h"
#include "braid/tensor/random.h"

namespace braid {

// --- pointwise ---
Tensor add(const Tensor& x, const Tensor& y);
Tensor sub(const Tensor& x, const Tensor& y);
Tensor mul(const Tensor& x, const Tensor& y);
Tensor div(const Tensor& x, const Tensor& y);
Tensor maximum(const Tensor& x, const Tensor& y);  // ties: the gradient goes to x
Tensor minimum(const Tensor& x, const Tensor& y);
Tensor swiglu(const Tensor& gate, const Tensor& up);  // silu(gate) * up
Tensor affine(const Tensor& x, double a, double b);   // a x + b
Tensor scale(const Tensor& x, double a);              // a x
Tensor neg(const Tensor& x);
Tensor exp(const Tensor& x);
Tensor log(const Tensor& x);
Tensor sqrt(const Tensor& x);
Tensor rsqrt(const Tensor& x);  // 1 / sqrt(x)
Tensor square(const Tensor& x);
Tensor reciprocal(const Tensor& x);
Tensor abs(const Tensor& x);  // slope 0 at 0
Tensor tanh(const Tensor& x);
Tensor sigmoid(const Tensor& x);    // 1 / (1 + exp(-x))
Tensor silu(const Tensor& x);       // x sigmoid(x)
Tensor gelu(const Tensor& x);       // x Phi(x), exact
Tensor gelu_tanh(const Tensor& x);  // its tanh approximation
Tensor relu(const Tensor& x);
Tensor power(const Tensor& x, double exponent);
Tensor clamp(const Tensor& x, double low, double high);
inline Tensor operator+(const Tensor& x, const Tensor& y) { return add(x, y); }
inline Tensor operator-(const Tensor& x, const Tensor& y) { return sub(x, y); }
inline Tensor operator*(const Tensor& x, const Tensor& y) { return mul(x, y); }
inline Tensor operator/(const Tensor& x, const Tensor& y) { return div(x, y); }
Tensor cast(const Tensor& x, DType dtype);
Tensor masked_fill(const Tensor& x, const Tensor& mask, double value);  // value where mask (u8, broadcast) is not 0
Tensor hide_invisible(const Tensor& x, const AttentionMask& v,
                      double value);  // x (..., T, S): value where key s is hidden from t
// Zero with probability p, else x / (1-p). The pattern is a pure function of the key; p = 0 returns x.
Tensor dropout(const Tensor& x, double p, RandomKey key);

// --- shape (views where the layout allows, otherwise copies) ---
Tensor reshape(const Tensor& x, const Shape& shape);  // one size may be -1
Tensor transpose(const Tensor& x, int axis0 = -2, int axis1 = -1);
Tensor permute(const Tensor& x, std::initializer_list<int> axes);
Tensor expand(const Tensor& x, const Shape& shape);  // repeats axes of size 1; the gradient sums
Tensor squeeze(const Tensor& x, int axis);
Tensor unsqueeze(const Tensor& x, int axis);
Tensor slice(const Tensor& x, int axis, int64_t begin, int64_t end);
Tensor contiguous(const Tensor& x);
Tensor concat(const std::vector<Tensor>& xs, int axis);
std::vector<Tensor> split(const Tensor& x, const std::vector<int64_t>& sizes, int axis);
Tensor index_select(const Tensor& x, const Tensor& ids);  // x (V, D...), ids (...) -> (..., D...)
Tensor gather(const Tensor& x, const Tensor& ids);        // x (..., V), ids (...) -> y[...] = x[..., ids[...]]

// --- reductions (keep: leave the axis with size 1) ---
Tensor sum(const Tensor& x);  // of everything -> ()
Tensor sum(const Tensor& x, std::initializer_list<int> axes, bool keep = false);
Tensor mean(const Tensor& x);
Tensor mean(const Tensor& x, std::initializer_list<int> axes, bool keep = false);
Tensor max(const Tensor& x, int axis, bool keep = false);  // ties: the first one gets the gradient
Tensor min(const Tensor& x, int axis, bool keep = false);
Tensor sum_to(const Tensor& x, const Shape& shape);  // the adjoint of expand
// Sum of x*y over `axes` of their common broadcast shape, without forming the product; the axes stay with size 1.
Tensor sum_product(const Tensor& x, const Tensor& y, std::initializer_list<int> axes);
Tensor argmax(const Tensor& x);  // last axis -> i64; no derivative

// --- products ---
Tensor matmul(const Tensor& x, const Tensor& y);  // (..., M, K) (..., K, N); batch axes broadcast
// y = x W^T + bias. x (..., in), weight (out, in), bias (out) or an empty handle.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});

// --- rows (last axis) ---
Tensor softmax(const Tensor& x);
Tensor log_softmax(const Tensor& x);
// y = x / sqrt(mean(x^2) + eps) * weight; weight (D) or an empty handle; statistics in f32 (f64 for f64).
Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps);
// y = (x - mean) / sqrt(var + eps) * weight + bias, biased variance; weight, bias (D) or empty handles.
Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps);
// The same norms of sum = x + residual, which is also a result, in one pass; shapes equal.
struct SumAndNorm {
  Tensor sum, y;
};
SumAndNorm add_rms_norm(const Tensor& x, const Tensor& residual, const Tensor& weight, double eps);
SumAndNorm add_layer_norm(const Tensor& x, const Tensor& residual, const Tensor& weight, const Tensor& bias,
                          double eps);
// Rotary position embedding of x (B, T, N, d), pairs (e, e + rotary/2), tables (1 or B, T, rotary/2); the rest of d
// passes.
Tensor rope(const Tensor& x, const Tensor& cosine, const Tensor& sine);

// --- language model ends ---
Tensor embedding(const Tensor& table, const Tensor& ids);  // (V, D), ids (...) -> (..., D)
// Mean over counted targets of logsumexp(logits) - logits[target]. logits (..., V), targets (...) i64 or i32, negative
// = not counted. No counted target: 0 with zero gradient.
Tensor cross_entropy(const Tensor& logits, const Tensor& targets);
// The same per token, 0 where not counted: (...) in f32 (f64 for f64).
Tensor cross_entropy_per_token(const Tensor& logits, const Tensor& targets);
// Sum over counted targets of the cross-entropy of the logits hidden weight^T, in chunks of rows: the (rows, V) logits
// never exist as a whole, forward or backward. hidden (..., D), weight (V, D). Multiply by 1/count for the mean.
Tensor linear_cross_entropy(const Tensor& hidden, const Tensor& weight, const Tensor& targets,
                            int64_t chunk_rows = 1024);

}  // namespace braid
