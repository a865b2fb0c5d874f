#include "braid/models/inference/token_score.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "braid/tensor/kernels/backend.h"
#include "braid/tensor/strict.h"

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

using LogProbability = std::function<double(int32_t id)>;

LogProbability in_f64(std::span<const float> logits) {
  const double max = *std::ranges::max_element(logits);
  double total = 0;
  for (const float l : logits) total += std::exp(l - max);
  return
      [logits, normaliser = max + std::log(total)](int32_t id) { return logits[static_cast<size_t>(id)] - normaliser; };
}

// By the kernel of the loss; its last line once more for each id (tensor/kernels/loss.h).
LogProbability as_trained(std::span<const float> logits) {
  const StrictBits strict;  // of this thread too
  const Tensor row = from_vector(std::vector<float>(logits.begin(), logits.end()), {1, std::ssize(logits)});
  const Tensor target = zeros({1}, DType::i32);
  Tensor loss = empty({1}, DType::f32), top = empty_like(loss), log_sum = empty_like(loss);
  backend(kCpu).loss.cross_entropy(row, target, loss, top, log_sum);
  return [logits, max = top.data<float>()[0], total = log_sum.data<float>()[0]](int32_t id) {
    return -static_cast<double>(total - (logits[static_cast<size_t>(id)] - max));
  };
}

}  // namespace

TokenScore token_score(std::span<const float> logits, int32_t token, int64_t top, size_t position, bool strict) {
  check_logits(logits, position);
  const LogProbability logprob = strict ? as_trained(logits) : in_f64(logits);
  TokenScore score{.token = token, .logprob = logprob(token), .top = {}};
  for (const int32_t id : largest(logits, top)) score.top.emplace_back(id, logprob(id));
  return score;
}

}  // namespace braid::models
