#include "braid/models/inspect/logit_lens.h"

#include <algorithm>
#include <cmath>

#include "braid/autograd/ops.h"
#include "braid/autograd/record.h"
#include "braid/models/inspect/parameter_named.h"
#include "braid/models/inspect/token_losses.h"

namespace braid::models {

FinalNorm::FinalNorm(const LanguageModel& model)
    : weight_(parameter_named(model, "norm.weight")),
      bias_(parameter_named(model, "norm.bias")),
      eps_(setting_of(model, "norm_eps").value_or(1e-5)) {
  if (weight_ && setting_text(model, "norm_offset") == "true") weight_ = weight_ + 1.0;
}

Tensor FinalNorm::operator()(const Tensor& hidden) const {
  const NoGrad off;
  return bias_ ? layer_norm(hidden, weight_, bias_, eps_) : rms_norm(hidden, weight_, eps_);
}

LensLayer lens_of(const LanguageModel& model, const Tensor& normalised, std::span<const int32_t> tokens) {
  const NoGrad off;
  LensLayer lens{token_losses(model, normalised, tokens), {}, {}};
  const int64_t T = std::ssize(tokens), V = model.vocab_size(), rows = std::max<int64_t>(1, (1 << 20) / V);
  for (int64_t first = 0; first < T; first += rows) {
    const int64_t last = std::min(T, first + rows);
    const std::vector<double> logits =
        model.logits(contiguous(normalised.sliced(1, first, last))).to(kCpu).to_vector<double>();
    for (int64_t t = first; t < last; ++t) {
      const std::span<const double> row(logits.data() + (t - first) * V, static_cast<size_t>(V));
      const auto best = std::ranges::max_element(row);
      double sum = 0;
      for (const double x : row) sum += std::exp(x - *best);
      lens.best.push_back(static_cast<int32_t>(best - row.begin()));
      lens.best_p.push_back(1 / sum);
    }
  }
  return lens;
}

}  // namespace braid::models
