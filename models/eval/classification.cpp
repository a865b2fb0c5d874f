#include "braid/models/eval/classification.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "braid/autograd/record.h"
#include "braid/models/exact_sum.h"
#include "braid/tensor/strict.h"

namespace braid::models::eval {

namespace {
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
double share(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : kNone;
}
}  // namespace

ClassificationCounts::ClassificationCounts(int64_t classes, int64_t bins)
    : classes_(classes), confusion_(static_cast<size_t>(classes * classes)), bins_(static_cast<size_t>(bins)) {}

void ClassificationCounts::add(const ImageModel& model, const Batch& batch) {
  NoGrad off;
  model.check_batch(batch);
  add(model.logits(batch.at("pixel_values").to(model.device())), batch.at("labels"));
}

// p_k = e^(x_k - m) / z, m = max x, z = sum e^(x_k - m); loss = m + log z - x_label
void ClassificationCounts::add(const Tensor& logits, const Tensor& labels) {
  const std::vector<double> all = logits.to(kCpu).to(DType::f64).to_vector<double>();
  const std::vector<int64_t> labelled = labels.to(kCpu).to(DType::i64).to_vector<int64_t>();
  const auto K = static_cast<size_t>(classes_);
  check(all.size() == labelled.size() * K, "classification",
        [&] { return str("logits must be (", labelled.size(), ", ", K, "), found ", logits.shape()); });
  for (size_t b = 0; b < labelled.size(); ++b) {
    if (labelled[b] < 0) continue;
    const double* x = all.data() + b * K;
    const auto label = static_cast<size_t>(labelled[b]);
    const auto best = static_cast<size_t>(std::max_element(x, x + K) - x);
    double z = 0;
    size_t before = 0;  // classes that are likelier than the label, or as likely and earlier
    for (size_t k = 0; k < K; ++k) {
      z += std::exp(x[k] - x[best]);
      before += x[k] > x[label] || (x[k] == x[label] && k < label);
    }
    losses_.push_back(x[best] + std::log(z) - x[label]);
    ++images_;
    right1_ += best == label;
    right5_ += before < 5;
    ++confusion_[label * K + best];
    double confidence = std::isfinite(z) ? 1 / z : 0;
    if (strict_bits()) confidence = std::round(confidence * 0x1p30) * 0x1p-30;  // sums of such have no order
    const auto last = static_cast<double>(bins_.size() - 1);
    Bin& bin = bins_[static_cast<size_t>(std::min(last, confidence * static_cast<double>(bins_.size())))];
    ++bin.images;
    bin.right += best == label;
    bin.confidence += confidence;
  }
}

void ClassificationCounts::sum_over(const dist::Communicator& group) {
  losses_ = {sum_of(losses_, group)};
  if (group.size() == 1) return;
  std::vector<int64_t*> counts = {&images_, &right1_, &right5_};
  for (int64_t& count : confusion_) counts.push_back(&count);
  for (Bin& bin : bins_) counts.insert(counts.end(), {&bin.images, &bin.right});
  std::vector<double> values;  // exact below 2^53
  for (const int64_t* count : counts) values.push_back(static_cast<double>(*count));
  values = group.all_reduce(from_vector(values, {std::ssize(values)})).to_vector<double>();
  for (size_t i = 0; i < counts.size(); ++i) *counts[i] = static_cast<int64_t>(values[i]);
  for (Bin& bin : bins_) bin.confidence = group.sum(bin.confidence);
}

double ClassificationCounts::loss() const {
  return images_ > 0 ? std::accumulate(losses_.begin(), losses_.end(), 0.0) / static_cast<double>(images_) : kNone;
}

double ClassificationCounts::top(int64_t k) const {
  check(k == 1 || k == 5, "classification", [&] { return str("top-k is counted for k = 1 and 5, asked for ", k); });
  return share(k == 1 ? right1_ : right5_, images_);
}

double ClassificationCounts::recall(int64_t label) const {
  int64_t all = 0;
  for (int64_t k = 0; k < classes_; ++k) all += confusion(label, k);
  return share(confusion(label, label), all);
}

double ClassificationCounts::precision(int64_t label) const {
  int64_t all = 0;
  for (int64_t k = 0; k < classes_; ++k) all += confusion(k, label);
  return share(confusion(label, label), all);
}

double ClassificationCounts::calibration_error() const {
  if (images_ == 0) return kNone;
  double error = 0;
  for (const Bin& bin : bins_) error += std::abs(static_cast<double>(bin.right) - bin.confidence);
  return error / static_cast<double>(images_);
}

}  // namespace braid::models::eval
