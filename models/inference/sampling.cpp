#include "braid/models/inference/sampling.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "braid/autograd/ops.h"
#include "braid/tensor/error.h"
#include "braid/tensor/random.h"

namespace braid::models {
namespace {

// The largest of some numbers, none of them NaN.
float largest(const std::vector<float>& logits) {
  std::array<float, 16> top;  // of every 16th, which the compiler compares in vectors
  top.fill(-std::numeric_limits<float>::infinity());
  size_t i = 0;
  for (; i + top.size() <= logits.size(); i += top.size())
    for (size_t l = 0; l < top.size(); ++l) top[l] = logits[i + l] > top[l] ? logits[i + l] : top[l];
  for (; i < logits.size(); ++i) top[0] = std::max(top[0], logits[i]);
  return std::ranges::max(top);
}

// Token ids from the most to the least likely, equal logits in order of their ids. Tokens of about the same likelihood
// share a bin, and a bin is sorted, as far as it is read, only where a prefix of the ranking ends in it.
class Ranking {
 public:
  struct Prefix {
    size_t count = 0;
    double mass = 0;  // sum of the likelihoods
  };

  // A likelihood is exp((logit - the largest) / temperature), in f32. No logit is NaN, one is finite.
  Ranking(const std::vector<float>& logits, double temperature)
      : logits_(logits), bin_of_(logits.size()), likelihoods_(empty({std::ssize(logits)}, DType::f32)) {
    const double top = largest(logits), scale = std::clamp(1 / temperature, 1e-300, 1e300);
    float* x = likelihoods_.mutable_data<float>();
    for (size_t i = 0; i < logits.size(); ++i) x[i] = static_cast<float>((logits[i] - top) * scale);
    for (size_t i = 0; i < logits.size(); ++i)
      bin_of_[i] = static_cast<uint8_t>(std::min(-kBinsOfE * x[i], static_cast<float>(kBins - 1)));
    likelihoods_ = exp(likelihoods_);
    const float* p = likelihood();
    for (size_t i = 0; i < logits.size(); ++i) ++bins_[bin_of_[i]].count, bins_[bin_of_[i]].mass += p[i];
    for (const Prefix& bin : bins_) all_.count += bin.count, all_.mass += bin.mass;
  }

  const Prefix& all() const { return all_; }

  // The longest prefix for whose tokens more(the prefix before the token, its likelihood) holds. Where it does not
  // hold, it does not for longer prefixes either.
  template <class More>
  Prefix longest(More&& more) {
    Prefix prefix;
    for (size_t b = 0; b < kBins; ++b) {
      const Prefix& bin = bins_[b];
      if (bin.count == 0) continue;
      const Prefix whole{prefix.count + bin.count, prefix.mass + bin.mass};
      const double least = b + 1 < kBins ? std::exp(-static_cast<double>(b + 2) / kBinsOfE) : 0;  // with room to round
      if (more(Prefix{whole.count - 1, whole.mass}, least)) {
        prefix = whole;
        continue;
      }
      for (size_t i = 0; i < bin.count; ++i) {
        const double p = likelihood()[token(b, i)];
        if (!more(prefix, p)) return prefix;
        ++prefix.count, prefix.mass += p;
      }
    }
    return prefix;
  }

  int64_t operator[](size_t rank) {
    size_t b = 0;
    for (; rank >= bins_[b].count; ++b) rank -= bins_[b].count;
    return token(b, rank);
  }

 private:
  static constexpr size_t kBins = 256;
  static constexpr float kBinsOfE = 8;  // from one likelihood to a factor of e below it; the last bin takes the rest

  const float* likelihood() const { return likelihoods_.data<float>(); }

  // Token i of bin b, in order.
  int64_t token(size_t b, size_t i) {
    if (b != sorted_bin_) {
      sorted_bin_ = b, sorted_ = 0;
      ids_.clear();
      for (size_t id = 0; id < bin_of_.size(); ++id)
        if (bin_of_[id] == b) ids_.push_back(static_cast<int64_t>(id));
    }
    while (i >= sorted_) sort_more();
    return ids_[i];
  }
  void sort_more() {
    const auto begin = ids_.begin() + static_cast<std::ptrdiff_t>(sorted_);
    sorted_ = std::min(ids_.size(), std::max<size_t>(64, 8 * sorted_));
    std::partial_sort(begin, ids_.begin() + static_cast<std::ptrdiff_t>(sorted_), ids_.end(),
                      [&](int64_t a, int64_t b) {
                        const float x = logits_[static_cast<size_t>(a)], y = logits_[static_cast<size_t>(b)];
                        return x != y ? x > y : a < b;
                      });
  }

  const std::vector<float>& logits_;
  std::vector<uint8_t> bin_of_;  // by id
  Tensor likelihoods_;           // (V), f32
  std::array<Prefix, kBins> bins_{};
  Prefix all_;
  size_t sorted_bin_ = kBins, sorted_ = 0;
  std::vector<int64_t> ids_;  // of sorted_bin_
};

}  // namespace

void check_options(const SamplingOptions& o) {
  auto range = [](bool ok, const char* name, double value, const char* allowed) {
    check(ok, ErrorKind::setting, [&] {
      return str("sampling option ", name, " is out of range: expected ", allowed, ", found ", std::to_string(value));
    });
  };
  range(o.temperature >= 0 && std::isfinite(o.temperature), "temperature", o.temperature, "0 or more");
  range(o.top_k >= 0, "top-k", static_cast<double>(o.top_k), "0 (all) or more");
  range(o.top_p >= 0 && o.top_p <= 1, "top-p", o.top_p, "a value in [0, 1]");
  range(o.min_p >= 0 && o.min_p <= 1, "min-p", o.min_p, "a value in [0, 1]");
  range(o.repetition_penalty > 0 && std::isfinite(o.repetition_penalty), "repetition-penalty", o.repetition_penalty,
        "a positive value");
  range(std::fabs(o.frequency_penalty) <= 2, "frequency-penalty", o.frequency_penalty, "a value in [-2, 2]");
  range(std::fabs(o.presence_penalty) <= 2, "presence-penalty", o.presence_penalty, "a value in [-2, 2]");
  for (const auto& [token, bias] : o.logit_bias)
    range(std::fabs(bias) <= 100, "logit-bias", bias, "values in [-100, 100]");
}

void check_logits(std::span<const float> logits, size_t position) {
  constexpr float max = std::numeric_limits<float>::max();
  const auto impossible = [](float l) { return !(l <= max); };  // NaN or infinite; -inf excludes a token
  unsigned bad = 0, finite = 0;                                 // flags, which the compiler finds in vectors
  for (const float l : logits) {
    bad |= static_cast<unsigned>(impossible(l));
    finite |= static_cast<unsigned>(l >= -max);
  }
  check(!bad, ErrorKind::numerical, [&] {
    const auto first = std::ranges::find_if(logits, impossible);
    const auto count = std::ranges::count_if(logits, [](float l) { return !std::isfinite(l); });
    return str("no token can be drawn for position ", position, ": the logit of token id ", first - logits.begin(),
               " is ", std::isnan(*first) ? "NaN" : "infinite", ", ", count, " of ", logits.size(),
               " are not finite; compute in a wider type (f32, f64), or use an earlier checkpoint");
  });
  check(finite, ErrorKind::numerical, [&] {
    return str("no token can be drawn for position ", position, ": all ", logits.size(),
               " logits are -inf; compute in a wider type (f32, f64), or use an earlier checkpoint");
  });
}

namespace {

// Adds to the logit of a token, if there is one. It stays finite where it was.
void add(std::vector<float>& logits, int32_t token, double more) {
  constexpr double max = std::numeric_limits<float>::max();
  if (token < 0 || static_cast<size_t>(token) >= logits.size()) return;
  float& l = logits[static_cast<size_t>(token)];
  if (std::isfinite(l)) l = static_cast<float>(std::clamp(l + more, -max, max));
}

void penalise_drawn(std::vector<float>& logits, std::span<const int32_t> drawn, const SamplingOptions& o) {
  std::vector<char> met(logits.size(), 0);
  for (const int32_t t : drawn) {
    add(logits, t, -o.frequency_penalty);
    if (t < 0 || static_cast<size_t>(t) >= met.size() || std::exchange(met[static_cast<size_t>(t)], 1)) continue;
    add(logits, t, -o.presence_penalty);
  }
}

}  // namespace

int64_t sample_token(std::vector<float> logits, std::span<const int32_t> seen, const SamplingOptions& o, size_t given) {
  check(!logits.empty(), "sample_token", "needs at least one logit");
  if (o.vocabulary > 0 && o.vocabulary < std::ssize(logits)) logits.resize(static_cast<size_t>(o.vocabulary));
  check_logits(logits, seen.size());
  for (const auto& [token, bias] : o.logit_bias) add(logits, token, bias);
  if (o.frequency_penalty != 0 || o.presence_penalty != 0)
    penalise_drawn(logits, seen.subspan(std::min(given, seen.size())), o);
  if (o.repetition_penalty != 1) {
    constexpr double max = std::numeric_limits<float>::max();
    std::vector<char> penalised(logits.size(), 0);
    for (int32_t t : seen) {
      if (t < 0 || static_cast<size_t>(t) >= logits.size() || penalised[static_cast<size_t>(t)]) continue;
      float& l = logits[static_cast<size_t>(t)];
      const double changed = l > 0 ? l / o.repetition_penalty : l * o.repetition_penalty;
      if (std::isfinite(l)) l = static_cast<float>(std::clamp(changed, -max, max));
      penalised[static_cast<size_t>(t)] = 1;
    }
  }
  if (o.temperature == 0 || o.top_p == 0) return std::ranges::find(logits, largest(logits)) - logits.begin();

  using Prefix = Ranking::Prefix;
  Ranking ranking(logits, o.temperature);
  Prefix kept = ranking.all();
  if (o.top_k > 0 && o.top_k < std::ssize(logits))
    kept = ranking.longest([&](const Prefix& before, double) { return before.count < static_cast<size_t>(o.top_k); });
  if (o.top_p < 1 || o.min_p > 0) {
    const size_t max = kept.count;
    const double enough = o.top_p < 1 ? o.top_p * kept.mass : INFINITY;
    kept = ranking.longest([&](const Prefix& before, double likelihood) {  // the most likely one has 1
      return before.count < max && before.mass < enough && (before.count == 0 || likelihood >= o.min_p);
    });
  }
  const double u = unit(random_bits(seen.size(), child({o.seed, 0}, "sample"))) * kept.mass;
  const Prefix passed =
      ranking.longest([&](const Prefix& before, double likelihood) { return before.mass + likelihood <= u; });
  return ranking[std::min(passed.count, kept.count - 1)];
}

}  // namespace braid::models
