#include "braid/models/generation/sampling.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "braid/tensor/error.h"
#include "braid/tensor/random.h"

namespace braid::models {
namespace {

// Token ids from the most to the least likely, equal logits in order of their ids; sorted as far as they are read,
// which is most often a small part of the vocabulary.
class Ranking {
 public:
  explicit Ranking(const std::vector<float>& logits) : logits_(logits), ids_(logits.size()) {
    std::iota(ids_.begin(), ids_.end(), 0);
  }
  int64_t operator[](size_t rank) {
    while (rank >= sorted_) sort_more();
    return ids_[rank];
  }

 private:
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
  std::vector<int64_t> ids_;
  size_t sorted_ = 0;
};

// The smallest id with the largest logit; none is NaN.
int64_t first_of_the_largest(const std::vector<float>& logits) {
  std::array<float, 16> top;  // of every 16th, which the compiler compares in vectors
  top.fill(-std::numeric_limits<float>::infinity());
  size_t i = 0;
  for (; i + top.size() <= logits.size(); i += top.size())
    for (size_t l = 0; l < top.size(); ++l) top[l] = logits[i + l] > top[l] ? logits[i + l] : top[l];
  for (; i < logits.size(); ++i) top[0] = std::max(top[0], logits[i]);
  return std::ranges::find(logits, std::ranges::max(top)) - logits.begin();
}

}  // namespace

void check_options(const SamplingOptions& o) {
  auto range = [](bool ok, const char* name, double value, const char* allowed) {
    check(ok, ErrorKind::setting, [&] {
      return std::string("sampling option ") + name + " is out of range: expected " + allowed + ", found " +
             std::to_string(value);
    });
  };
  range(o.temperature >= 0 && std::isfinite(o.temperature), "temperature", o.temperature, "0 or more");
  range(o.top_k >= 0, "top-k", static_cast<double>(o.top_k), "0 (all) or more");
  range(o.top_p > 0 && o.top_p <= 1, "top-p", o.top_p, "a value in (0, 1]");
  range(o.min_p >= 0 && o.min_p <= 1, "min-p", o.min_p, "a value in [0, 1]");
  range(o.repetition_penalty > 0 && std::isfinite(o.repetition_penalty), "repetition-penalty", o.repetition_penalty,
        "a positive value");
}

void check_logits(std::span<const float> logits, size_t position) {
  constexpr float most = std::numeric_limits<float>::max();
  const auto impossible = [](float l) { return !(l <= most); };  // NaN or infinite; -inf excludes a token
  unsigned bad = 0, finite = 0;                                  // flags, which the compiler finds in vectors
  for (const float l : logits) {
    bad |= static_cast<unsigned>(impossible(l));
    finite |= static_cast<unsigned>(l >= -most);
  }
  check(!bad, ErrorKind::numerical, [&] {
    const auto first = std::ranges::find_if(logits, impossible);
    const auto count = std::ranges::count_if(logits, [](float l) { return !std::isfinite(l); });
    return "no token can be drawn for position " + std::to_string(position) + ": the logit of token id " +
           std::to_string(first - logits.begin()) + " is " + (std::isnan(*first) ? "NaN" : "infinite") + ", " +
           std::to_string(count) + " of " + std::to_string(logits.size()) +
           " are not finite; compute in a wider type (f32, f64), or use an earlier checkpoint";
  });
  check(finite, ErrorKind::numerical, [&] {
    return "no token can be drawn for position " + std::to_string(position) + ": all " + std::to_string(logits.size()) +
           " logits are -inf; compute in a wider type (f32, f64), or use an earlier checkpoint";
  });
}

int64_t sample_token(std::vector<float> logits, std::span<const int32_t> seen, const SamplingOptions& o) {
  check(!logits.empty(), "sample_token", [] { return std::string("needs at least one logit"); });
  if (o.vocabulary > 0 && o.vocabulary < std::ssize(logits)) logits.resize(static_cast<size_t>(o.vocabulary));
  check_logits(logits, seen.size());
  if (o.repetition_penalty != 1) {
    constexpr double most = std::numeric_limits<float>::max();
    std::vector<char> penalised(logits.size(), 0);
    for (int32_t t : seen) {
      if (t < 0 || static_cast<size_t>(t) >= logits.size() || penalised[static_cast<size_t>(t)]) continue;
      float& l = logits[static_cast<size_t>(t)];
      const double changed = l > 0 ? l / o.repetition_penalty : l * o.repetition_penalty;
      if (std::isfinite(l)) l = static_cast<float>(std::clamp(changed, -most, most));
      penalised[static_cast<size_t>(t)] = 1;
    }
  }
  if (o.temperature == 0) return first_of_the_largest(logits);

  Ranking ranking(logits);
  const size_t V = logits.size();
  const size_t candidates = o.top_k > 0 ? std::min(V, static_cast<size_t>(o.top_k)) : V;
  const double top = logits[static_cast<size_t>(ranking[0])];
  const auto likelihood = [&](int64_t id) { return std::exp((logits[static_cast<size_t>(id)] - top) / o.temperature); };
  double total = 0;  // of the candidates
  for (size_t i = 0; i < candidates; ++i) total += likelihood(candidates < V ? ranking[i] : static_cast<int64_t>(i));

  size_t keep = candidates;
  double mass = total;
  if (o.top_p < 1 || o.min_p > 0) {
    const double enough = o.top_p < 1 ? o.top_p * total : INFINITY;
    for (keep = 0, mass = 0; keep < candidates && mass < enough; ++keep) {
      const double next = likelihood(ranking[keep]);
      if (keep > 0 && next < o.min_p) break;  // the most likely one has 1
      mass += next;
    }
  }
  double u = unit(random_bits(seen.size(), child({o.seed, 0}, "sample"))) * mass;
  for (size_t i = 0; i < keep; ++i) {
    u -= likelihood(ranking[i]);
    if (u < 0) return ranking[i];
  }
  return ranking[keep - 1];
}

}  // namespace braid::models
