// Losses, composed of other ops: derivatives of every order. mse_loss and the plain cross_entropy are in ops.h.
//
// x and y have one shape, unless said otherwise; a result is () for mean and sum, one number per element, row or pair
// for none. The mean of nothing is 0 with gradient 0 for targets that are not counted, and NaN for an empty tensor.
#pragma once
#include "braid/autograd/ops.h"

namespace braid {

enum class Reduction : uint8_t { mean, sum, none };

struct CrossEntropyOptions {
  Tensor weight = {};           // (V), of each class, or an empty handle
  int64_t ignore_index = -100;  // a target that is not counted; negative ones never are
  double label_smoothing = 0;   // in [0, 1]: this share of the target is spread evenly over all classes
  Reduction reduction = Reduction::mean;
};
// logits (..., V), targets t (...) i64 or i32. With p = softmax(logits), the smoothing e, weights w:
//   loss = -(1 - e) w[t] log p[t] - e / V sum_c w[c] log p[c]
// mean: the sum over counted targets divided by the sum of their w[t]. In f32 (f64 for f64).
Tensor cross_entropy(const Tensor& logits, const Tensor& targets, const CrossEntropyOptions& options);

struct LinearLossOptions {
  int64_t chunk_rows = 1024;
  double softcap = 0;  // c: the logits are c tanh(x / c), 0: x
  double z_loss = 0;   // z, the coefficient of the z-loss
};
// The loss of ops.h with, of the weight's products x = hidden weight^T, logits y = softcap(x):
//   sum over counted targets of logsumexp(y) - y[target] + z logsumexp(y)^2
// The z-loss (Chowdhery et al. 2022) keeps the logsumexp near 0, where 16-bit logits have their digits.
Tensor linear_cross_entropy(const Tensor& hidden, const Tensor& weight, const Tensor& targets,
                            const LinearLossOptions& options);

// cross_entropy() with these options of logarithms of probabilities (..., V), in their type.
Tensor nll_loss(const Tensor& log_probabilities, const Tensor& targets, const CrossEntropyOptions& options = {});

Tensor mse_loss(const Tensor& x, const Tensor& y, Reduction reduction);                   // (x - y)^2
Tensor l1_loss(const Tensor& x, const Tensor& y, Reduction reduction = Reduction::mean);  // |x - y|, derivative 0 at 0
// d^2 / 2 for d = |x - y| up to delta > 0, delta (d - delta / 2) beyond.
Tensor huber_loss(const Tensor& x, const Tensor& y, double delta = 1, Reduction reduction = Reduction::mean);
// huber_loss / beta; beta = 0: l1_loss.
Tensor smooth_l1_loss(const Tensor& x, const Tensor& y, double beta = 1, Reduction reduction = Reduction::mean);

struct BceOptions {
  Tensor weight = {};      // of each element, broadcast to the logits, or an empty handle
  Tensor pos_weight = {};  // of the positive part, broadcast to the logits, or an empty handle
  Reduction reduction = Reduction::mean;
};
// -weight (pos_weight t log sigmoid(x) + (1 - t) log(1 - sigmoid(x))), x logits, t from 0 to 1.
Tensor bce_with_logits_loss(const Tensor& logits, const Tensor& targets, const BceOptions& options = {});

struct KlDivOptions {
  bool log_target = false;  // the targets are logarithms too
  bool batch_mean = false;  // divide the sum by the first size, the divergence's mean; `reduction` is not read
  Reduction reduction = Reduction::mean;
};
// t (log t - x), x logarithms of probabilities, t probabilities: Kullback and Leibler's divergence of x from t. 0 for
// t = 0, where the derivative in t is -x.
Tensor kl_div(const Tensor& x, const Tensor& targets, const KlDivOptions& options = {});

// max(0, margin - x y), y of 1 and -1.
Tensor hinge_loss(const Tensor& x, const Tensor& y, double margin = 1, Reduction reduction = Reduction::mean);

// x y / (|x| |y|) along an axis, which is removed; lengths below eps count as eps. Shapes broadcast.
Tensor cosine_similarity(const Tensor& x, const Tensor& y, int axis = -1, double eps = 1e-8);
// x, y (B, D), labels (B) of 1 and -1, in the type of x: 1 - cos for 1, max(0, cos - margin) for -1; none: (B).
Tensor cosine_embedding_loss(const Tensor& x, const Tensor& y, const Tensor& labels, double margin = 0,
                             Reduction reduction = Reduction::mean);
// max(0, margin + |anchor - positive| - |anchor - negative|), each (..., D); |d| = sqrt(sum (d + 1e-6)^2); none: (...).
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative, double margin = 1,
                           Reduction reduction = Reduction::mean);

}  // namespace braid
