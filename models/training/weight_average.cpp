#include "braid/models/training/weight_average.h"

#include <algorithm>

#include "braid/autograd/ops.h"
#include "braid/autograd/record.h"
#include "braid/tensor/memory.h"

namespace braid::models {

WeightAverage::WeightAverage(std::vector<nn::NamedTensor> pieces, double decay)
    : pieces_(std::move(pieces)), decay_(decay) {
  const MemoryScope scope(MemoryUse::optimizer);
  for (const nn::NamedTensor& piece : pieces_) averages_.push_back(piece.value.detach().clone());
}

double WeightAverage::decay_at(double decay, int64_t update) {
  const auto t = static_cast<double>(update);
  return std::min(decay, (1 + t) / (10 + t));
}

void WeightAverage::update(int64_t update) {
  const NoGrad off;
  const double share = 1 - decay_at(decay_, update);
  for (size_t i = 0; i < pieces_.size(); ++i)
    averages_[i].add_(scale(sub(pieces_[i].value.detach(), averages_[i]), share));
}

void WeightAverage::restart() {
  for (size_t i = 0; i < pieces_.size(); ++i) averages_[i].copy_(pieces_[i].value.detach());
}

void WeightAverage::exchange() {
  for (size_t i = 0; i < pieces_.size(); ++i) {
    Tensor piece = pieces_[i].value.detach();
    const Tensor trained = piece.clone();
    piece.copy_(averages_[i]);
    averages_[i].copy_(trained);
  }
}

Tensor WeightAverage::of(const std::string& name) const {
  for (size_t i = 0; i < pieces_.size(); ++i)
    if (pieces_[i].name == name) return averages_[i];
  return {};
}

}  // namespace braid::models
