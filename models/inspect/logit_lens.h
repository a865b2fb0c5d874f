// The logit lens: what the model would predict if it ended after a layer (nostalgebraist, 2020).
//
//   lens[i] = softmax(logits(norm(hidden.i)))      i = 0: the embedding, i = L: the model itself
#pragma once
#include <span>
#include <vector>

#include "braid/models/language_model.h"

namespace braid::models {

struct LensLayer {
  std::vector<double> losses;  // (T - 1), of the next tokens
  std::vector<int32_t> best;   // (T), the likeliest token
  std::vector<double> best_p;  // (T), its probability
};

// The final norm of a model, which its interface does not offer by itself: norm.weight, norm.bias, norm_eps.
class FinalNorm {
 public:
  explicit FinalNorm(const LanguageModel& model);
  bool known() const { return bool(weight_); }
  Tensor operator()(const Tensor& hidden) const;  // (..., D) -> (..., D)
  const Tensor& weight() const { return weight_; }

 private:
  Tensor weight_, bias_;
  double eps_ = 1e-5;
};

// normalised (1, T, D): the final norm of a residual stream.
LensLayer lens_of(const LanguageModel& model, const Tensor& normalised, std::span<const int32_t> tokens);

}  // namespace braid::models
