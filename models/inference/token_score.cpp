#include "braid/models/inference/token_score.h"

#include <algorithm>
#include <cmath>

namespace braid::models {
namespace {

// The ids of the `top` largest logits, the largest first; equal ones in order of their ids.
std::vector<int32_t> largest(std::span<const float> logits, int64_t top) {
  std::vector<int32_t> best;
  const auto before = [&](int32_t a, int32_t b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  };
  for (int32_t id = 0; id < std::ssize(logits) && top > 0; ++id) {
    if (std::ssize(best) == top && !before(id, best.back())) continue;
    if (std::ssize(best) == top) best.pop_back();
    best.insert(std::upper_bound(best.begin(), best.end(), id, before), id);
  }
  return best;
}

}  // namespace

TokenScore token_score(std::span<const float> logits, int32_t token, int64_t top, size_t position) {
  check_logits(logits, position);
  const double max = *std::ranges::max_element(logits);
  double total = 0;
  for (const float l : logits) total += std::exp(l - max);
  const double normaliser = max + std::log(total);
  const auto logprob = [&](int32_t id) { return logits[static_cast<size_t>(id)] - normaliser; };
  TokenScore score{.token = token, .logprob = logprob(token), .top = {}};
  for (const int32_t id : largest(logits, top)) score.top.emplace_back(id, logprob(id));
  return score;
}

}  // namespace braid::models
