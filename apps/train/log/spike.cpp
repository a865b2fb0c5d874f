#include "apps/train/log/spike.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace braid::apps {

SpikeDetector::SpikeDetector(double threshold, int64_t warmup, int64_t window)
    : threshold_(threshold), warmup_(warmup), window_(std::max<int64_t>(window, 2)) {}

SpikeDetector::Verdict SpikeDetector::add(double loss) {
  ++seen_;
  if (!std::isfinite(loss)) return {std::numeric_limits<double>::infinity(), true};
  Verdict verdict;
  if (last_.size() >= 2) {
    // Two passes over a short window: no drift of running sums, the same result for the same losses.
    const auto n = static_cast<double>(last_.size());
    double mean = 0, squares = 0;
    for (double x : last_) mean += x / n;
    for (double x : last_) squares += (x - mean) * (x - mean);
    // A run that stands still has no deviation; a thousandth of its loss is never a spike's scale.
    const double deviation = std::max({std::sqrt(squares / (n - 1)), 1e-3 * std::fabs(mean), 1e-12});
    verdict.z = (loss - mean) / deviation;
  }
  verdict.spike = threshold_ > 0 && seen_ > warmup_ && verdict.z > threshold_;
  if (!verdict.spike) {
    last_.push_back(loss);
    if (static_cast<int64_t>(last_.size()) > window_) last_.pop_front();
  }
  return verdict;
}

}  // namespace braid::apps
