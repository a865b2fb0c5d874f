// The public list of operations. Each op is differentiable, or throws when a gradient is required (no_gradient).
//
// All inputs of an op have one dtype and one device; nothing is promoted or moved silently. Arithmetic is for floats,
// that of integers.h for integers too; comparisons, where, shape ops take every dtype. Binary ops broadcast by NumPy's
// rules. Wrong shapes, dtypes and devices throw Error with the op's name and both values. An axis may be negative: -1
// is the last one. Letters: B batch, T query positions, S key positions, N heads, d head size, D model width, V
// vocabulary.
#pragma once
#include <vector>

#include "braid/autograd/dcmha.h"
#include "braid/autograd/record.h"
#include "braid/tensor/random.h"

namespace braid {

// --- factories (besides empty, zeros, full, arange and from_vector of tensor.h) ---
Tensor ones(const Shape& shape, DType dtype = DType::f32, Device device = kCpu);
Tensor eye(int64_t n, DType dtype = DType::f32, Device device = kCpu);  // (n, n), 1 on the diagonal
// Element i is a function of the key and of i alone: the same on every device and at any thread count.
Tensor rand(const Shape& shape, RandomKey key, DType dtype = DType::f32,
            Device device = kCpu);  // uniform in (0, 1), in every type
Tensor randn(const Shape& shape, RandomKey key, DType dtype = DType::f32,
             Device device = kCpu);  // normal, mean 0, deviation 1

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
Tensor reciprocal(const Tensor& x);  // 1 / x
Tensor abs(const Tensor& x);         // derivative 0 at 0
Tensor tanh(const Tensor& x);
Tensor erf(const Tensor& x);        // 2/sqrt(pi) times the integral of exp(-t^2) from 0 to x
Tensor sigmoid(const Tensor& x);    // 1 / (1 + exp(-x))
Tensor silu(const Tensor& x);       // x sigmoid(x)
Tensor gelu(const Tensor& x);       // x Phi(x), exact
Tensor gelu_tanh(const Tensor& x);  // its tanh approximation
Tensor relu(const Tensor& x);
Tensor pow(const Tensor& x, double exponent);
Tensor clamp(const Tensor& x, double low, double high);
inline Tensor operator+(const Tensor& x, const Tensor& y) { return add(x, y); }
inline Tensor operator-(const Tensor& x, const Tensor& y) { return sub(x, y); }
inline Tensor operator*(const Tensor& x, const Tensor& y) { return mul(x, y); }
inline Tensor operator/(const Tensor& x, const Tensor& y) { return div(x, y); }
inline Tensor operator-(const Tensor& x) { return neg(x); }
// With a number, in the type of the arithmetic (f64 for f64, else f32). A quotient is rounded once, its gradient too.
Tensor operator+(const Tensor& x, double b);
Tensor operator-(const Tensor& x, double b);
Tensor operator-(double b, const Tensor& x);
Tensor operator*(const Tensor& x, double a);
Tensor operator/(const Tensor& x, double a);
Tensor operator/(double a, const Tensor& x);
inline Tensor operator+(double b, const Tensor& x) { return x + b; }
inline Tensor operator*(double a, const Tensor& x) { return x * a; }
Tensor cast(const Tensor& x, DType dtype);
Tensor to(const Tensor& x, Device device);
Tensor masked_fill(const Tensor& x, const Tensor& mask, double value);  // value where mask (u8, broadcast) is not 0
// x (..., T, S): value where the mask excludes key s from query t.
Tensor mask_scores(const Tensor& x, const AttentionMask& mask, double value);
// Zero with probability p, else x / (1-p). The pattern is a pure function of the key; p = 0 returns x.
Tensor dropout(const Tensor& x, double p, RandomKey key);

// --- comparisons of any dtype -> u8, 1 where true. Their derivative is 0 wherever it exists, so x and y may require a
// gradient. A comparison with NaN is false, ne excepted. ---
Tensor eq(const Tensor& x, const Tensor& y);
Tensor ne(const Tensor& x, const Tensor& y);
Tensor lt(const Tensor& x, const Tensor& y);
Tensor le(const Tensor& x, const Tensor& y);
Tensor gt(const Tensor& x, const Tensor& y);
Tensor ge(const Tensor& x, const Tensor& y);
Tensor eq(const Tensor& x, double y);
Tensor ne(const Tensor& x, double y);
Tensor lt(const Tensor& x, double y);
Tensor le(const Tensor& x, double y);
Tensor gt(const Tensor& x, double y);
Tensor ge(const Tensor& x, double y);
inline Tensor operator<(const Tensor& x, const Tensor& y) { return lt(x, y); }
inline Tensor operator<=(const Tensor& x, const Tensor& y) { return le(x, y); }
inline Tensor operator>(const Tensor& x, const Tensor& y) { return gt(x, y); }
inline Tensor operator>=(const Tensor& x, const Tensor& y) { return ge(x, y); }
inline Tensor operator<(const Tensor& x, double y) { return lt(x, y); }
inline Tensor operator<=(const Tensor& x, double y) { return le(x, y); }
inline Tensor operator>(const Tensor& x, double y) { return gt(x, y); }
inline Tensor operator>=(const Tensor& x, double y) { return ge(x, y); }
// x where mask (u8) is not 0, else y; x and y of any dtype; all broadcast.
Tensor where(const Tensor& mask, const Tensor& x, const Tensor& y);

// --- shape (views where the layout allows, otherwise copies) ---
Tensor reshape(const Tensor& x, const Shape& shape);  // one size may be -1
Tensor transpose(const Tensor& x, int axis0 = -2, int axis1 = -1);
Tensor permute(const Tensor& x, Axes axes);          // axis i of the result is axis axes[i] of x
Tensor expand(const Tensor& x, const Shape& shape);  // repeats axes of size 1; the gradient sums
Tensor squeeze(const Tensor& x, int axis);
Tensor unsqueeze(const Tensor& x, int axis);
Tensor slice(const Tensor& x, int axis, int64_t begin, int64_t end);
Tensor contiguous(const Tensor& x);
Tensor concat(const std::vector<Tensor>& xs, int axis);
Tensor stack(const std::vector<Tensor>& xs, int axis = 0);  // equal shapes, joined along a new axis
std::vector<Tensor> split(const Tensor& x, const std::vector<int64_t>& sizes, int axis);
Tensor index_select(const Tensor& x, const Tensor& ids);  // x (V, D...), ids (...) -> (..., D...)
Tensor gather(const Tensor& x, const Tensor& ids);        // x (..., V), ids (...) -> y[...] = x[..., ids[...]]

// --- reductions and scans (keep: leave the axis with size 1) ---
Tensor sum(const Tensor& x);  // of all elements -> (); sums of i64, i32, u8 are i64, modulo 2^64
Tensor sum(const Tensor& x, Axes axes, bool keep = false);
Tensor mean(const Tensor& x);
Tensor mean(const Tensor& x, Axes axes, bool keep = false);
// sum((x - mean)^2) / (n - correction): correction 1 is the unbiased estimate, 0 the variance of the values themselves.
Tensor var(const Tensor& x);
Tensor var(const Tensor& x, Axes axes, int64_t correction = 1, bool keep = false);
Tensor max(const Tensor& x, int axis, bool keep = false);  // any dtype; ties: the first one gets the gradient
Tensor min(const Tensor& x, int axis, bool keep = false);
Tensor logsumexp(const Tensor& x, int axis, bool keep = false);  // log(sum(exp(x))), without overflow
Tensor cumsum(const Tensor& x, int axis = -1);       // y[i] = x[0] + ... + x[i]; of integers i64; summed in f64
Tensor sum_to(const Tensor& x, const Shape& shape);  // the adjoint of expand
// Sum of x*y over `axes` of their common broadcast shape, without forming the product; the axes stay with size 1.
Tensor sum_product(const Tensor& x, const Tensor& y, Axes axes);
Tensor argmax(const Tensor& x);  // last axis, any dtype -> i64; the first NaN where there is one; no derivative

// --- order along the last axis, of any dtype: equal elements by their index, NaN above every number ---
struct ValuesAndIndices {
  Tensor values, indices;  // the values are differentiable; indices i64
};
ValuesAndIndices sort(const Tensor& x, bool descending = false);
ValuesAndIndices topk(const Tensor& x, int64_t k);         // the k largest, descending: (..., V) -> (..., k)
Tensor argsort(const Tensor& x, bool descending = false);  // no derivative

// --- products ---
Tensor matmul(const Tensor& x, const Tensor& y);  // (..., M, K) (..., K, N); batch axes broadcast
// y = x W^T + bias. x (..., in), weight (out, in), bias (out) or an empty handle.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});
// linear(x, weight_a) and linear(x, weight_b), for weights of one shape. Weights that are adjacent in a GPU's memory
// take one product, and the results are its halves.
struct LinearPair {
  Tensor a, b;
};
LinearPair linear_pair(const Tensor& x, const Tensor& weight_a, const Tensor& weight_b);

// --- softmax, norms, rotary embedding ---
// A row of only -inf has no largest element: its softmax is 0 everywhere, and log_softmax the logarithm of that, -inf.
Tensor softmax(const Tensor& x, int axis = -1);
Tensor log_softmax(const Tensor& x, int axis = -1);
// y = x / sqrt(mean(x^2) + eps) * weight; weight (D) or an empty handle; statistics in f32 (f64 for f64).
Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps);
// y = (x - mean) / sqrt(var + eps) * weight + bias, biased variance; weight, bias (D) or empty handles.
Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps);
// The same norms of sum = x + residual, which is also a result, in one pass; shapes equal. Without residual (an empty
// handle) sum is x, and backward adds both gradients of x in one pass.
struct SumAndNorm {
  Tensor sum, y;
};
SumAndNorm add_rms_norm(const Tensor& x, const Tensor& residual, const Tensor& weight, double eps);
SumAndNorm add_layer_norm(const Tensor& x, const Tensor& residual, const Tensor& weight, const Tensor& bias,
                          double eps);
// Rotary position embedding (Su et al. 2021) of x (B, T, N, d), pairs (e, e + rotary/2), tables (1 or B, T, rotary/2);
// the other elements of d pass unchanged.
Tensor rope(const Tensor& x, const Tensor& cosine, const Tensor& sine);
// Splits the projection x (B, T, (N + 2 Nkv) d) of a layer's input into q (B, T, N, d) and k, v (B, T, Nkv, d); q and k
// are then normalised (rms_norm) and rotated (rope) as `how` says. On a GPU each lies in memory as a contiguous (B, N,
// T, d).
struct Qkv {
  Tensor q, k, v;
};
Qkv split_qkv(const Tensor& x, const QkvSplit& how);

// --- attention: the formula and the options are in autograd/dcmha.h ---
// q (B, T, N, d); k, v (B, S, Nkv, d) with Nkv dividing N (grouped key/value heads); result (B, T, N, d). A query whose
// keys are all masked gives zeros. Differentiable in every tensor, in every implementation.
Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v, const SdpaOptions& options = {});
// The same with the heads of a group mixed before (pre) and after (post) softmax.
Tensor dcmha(const Tensor& q, const Tensor& k, const Tensor& v, const HeadMixing& pre, const HeadMixing& post,
             const DcmhaOptions& options = {});
// The factors of each of the C branches of Compose from the outputs of the generator, w (G, C, B, T, 2R, M), an empty
// handle for R = 0, and gates (B, T, G, C, M): down = w[:R] / sqrt(mean_m w[:R]^2 + eps), up = w[R:], gate =
// tanh(gates).
std::vector<ComposeFactors> compose_factors(const Tensor& w, const Tensor& gates, double eps);

// --- embeddings and losses ---
Tensor embedding(const Tensor& table, const Tensor& ids);  // (V, D), ids (...) -> (..., D)
Tensor mse_loss(const Tensor& x, const Tensor& y);         // mean of (x - y)^2 -> ()
// Mean over counted targets of logsumexp(logits) - logits[target]. logits (..., V), targets (...) i64 or i32, negative
// = not counted. No counted target: 0 with zero gradient.
Tensor cross_entropy(const Tensor& logits, const Tensor& targets);
// The same per token, 0 where not counted: (...) in f32 (f64 for f64).
Tensor cross_entropy_per_token(const Tensor& logits, const Tensor& targets);
// Sum over counted targets of the cross-entropy of the logits hidden weight^T, in chunks of rows: the (rows, V) logits
// never exist all at once, forward or backward. hidden (..., D), weight (V, D). Multiply by 1/count for the mean.
Tensor linear_cross_entropy(const Tensor& hidden, const Tensor& weight, const Tensor& targets,
                            int64_t chunk_rows = 1024);

}  // namespace braid
