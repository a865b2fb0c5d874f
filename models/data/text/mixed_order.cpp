#include "braid/models/data/text/mixed_order.h"

#include <algorithm>
#include <set>

#include "braid/tensor/base/integers.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"

namespace braid::models::text {
namespace {

std::vector<TrainingOrder> orders_of(std::vector<Dataset> sources, uint64_t seed) {
  std::vector<TrainingOrder> orders;
  for (Dataset& data : sources) orders.emplace_back(std::move(data), seed);
  return orders;
}

std::vector<Dataset> only(Dataset data) {
  std::vector<Dataset> sources;
  sources.push_back(std::move(data));
  return sources;
}

}  // namespace

MixedOrder::MixedOrder(Dataset data, uint64_t seed) : MixedOrder(only(std::move(data)), {{{0, 1}}}, seed) {}

MixedOrder::MixedOrder(std::vector<Dataset> sources, Weights weights, uint64_t seed)
    : orders_(orders_of(std::move(sources), seed)),
      weights_(std::move(weights)),
      seed_(seed),
      segment_{.counts = std::vector<int64_t>(orders_.size())},
      mixture_(mixture(weights_, segment_, seq_len())) {
  check(orders_.size() == weights_.size(), "mixed_order",
        [&] { return str(orders_.size(), " sources have weights of ", weights_.size()); });
  for (size_t i = 0; i < orders_.size(); ++i)
    check(orders_[i].data().seq_len() == seq_len(), "mixed_order", [&] {
      return str("source ", i, " has sequences of ", orders_[i].data().seq_len(), ", the first one of ", seq_len());
    });
}

std::string MixedOrder::fingerprint(const Weights& weights) const {
  if (orders_.size() == 1) return data(0).fingerprint();
  std::vector<std::string> texts;
  for (size_t i = 0; i < orders_.size(); ++i) {
    texts.push_back(orders_[i].data().fingerprint());
    for (const auto& [token, weight] : weights[i])
      texts.back() += str(" ", detail::shortest(weight), token > 0 ? str("@", token) : "");
  }
  return "mixture of " + detail::join(texts, ", ");
}

bool MixedOrder::begins_as(const Weights& before, const std::string& fingerprint,
                           const std::vector<EarlierLength>& earlier, int64_t count) const {
  if (before.size() != orders_.size() || this->fingerprint(before) != fingerprint) return false;
  std::vector<EarlierLength> lengths = earlier;
  for (const EarlierLength& e : earlier) count -= e.sequences;
  lengths.push_back({seq_len(), count});
  Segment segment;
  for (const auto& [length, sequences] : lengths) {
    if (!mixture(weights_, segment, length).begins_as(mixture(before, segment, length), sequences)) return false;
    segment.begin += sequences, segment.tokens += sequences * length;
  }
  return true;
}

// The phases of the segment: its begin and where any weight changes behind it, with the weights of all sources. Changes
// within one sequence are one.
Mixture MixedOrder::mixture(const Weights& weights, const Segment& segment, int64_t seq_len) const {
  std::set<int64_t> tokens = {segment.tokens};
  for (const auto& changes : weights)
    for (const WeightChange& change : changes)
      if (change.token > segment.tokens) tokens.insert(change.token);
  std::vector<MixturePhase> phases;
  for (const int64_t token : tokens) {
    MixturePhase phase{.first = detail::ceil_div(token - segment.tokens, seq_len), .weights = {}};
    for (const auto& changes : weights) {
      const auto next = std::ranges::upper_bound(changes, token, {}, &WeightChange::token);
      check(next != changes.begin(), "mixed_order", "every source needs a weight from token 0 on");
      phase.weights.push_back(std::prev(next)->weight);
    }
    if (!phases.empty() && phases.back().first == phase.first) phases.pop_back();
    phases.push_back(std::move(phase));
  }
  return Mixture(std::move(phases), seed_ + static_cast<uint64_t>(segment.begin));
}

void MixedOrder::continue_after(const std::vector<EarlierLength>& earlier) {
  std::vector<std::vector<EarlierLength>> of_sources(orders_.size());
  segment_ = {.counts = std::vector<int64_t>(orders_.size())};
  for (const auto& [seq_len, sequences] : earlier) {
    const std::vector<int64_t> read = mixture(weights_, segment_, seq_len).counts(sequences);
    for (size_t i = 0; i < read.size(); ++i) {
      of_sources[i].push_back({seq_len, read[i]});
      segment_.counts[i] += read[i];
    }
    segment_.begin += sequences, segment_.tokens += sequences * seq_len;
  }
  mixture_ = mixture(weights_, segment_, seq_len());
  for (size_t i = 0; i < orders_.size(); ++i) orders_[i].continue_after(of_sources[i]);
}

int64_t MixedOrder::size() const {
  int64_t size = 0;
  for (const TrainingOrder& order : orders_) size += order.data().size();
  return size;
}

bool MixedOrder::separates_documents() const {
  return std::ranges::any_of(orders_, [](const TrainingOrder& order) { return order.data().separates_documents(); });
}

std::vector<MixedOrder::Place> MixedOrder::places(int64_t first, int64_t count) const {
  std::vector<Place> places;
  for (const auto& [source, number] : mixture_.draws(first - segment_.begin, count)) {
    const auto i = static_cast<size_t>(source);
    const auto [data, index] = orders_[i].at(segment_.counts[i] + number);
    places.push_back({data, index, source});
  }
  return places;
}

int64_t MixedOrder::tokens(int64_t count) const { return segment_.tokens + (count - segment_.begin) * seq_len(); }

std::vector<int64_t> MixedOrder::counts(int64_t count) const {
  std::vector<int64_t> counts = mixture_.counts(std::max<int64_t>(count - segment_.begin, 0));
  for (size_t i = 0; i < counts.size(); ++i) counts[i] += segment_.counts[i];
  return counts;
}

std::vector<double> MixedOrder::epochs(int64_t count) const {
  std::vector<double> epochs;
  const std::vector<int64_t> of_sources = counts(count);
  for (size_t i = 0; i < orders_.size(); ++i)
    epochs.push_back(static_cast<double>(orders_[i].tokens(of_sources[i])) /
                     static_cast<double>(orders_[i].data().size() * seq_len()));
  return epochs;
}

}  // namespace braid::models::text
