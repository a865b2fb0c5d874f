#include "braid/models/generation/generate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "braid/autograd/ops.h"

namespace braid::models {

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

int64_t sample_token(std::vector<float> logits, std::span<const int32_t> seen, const SamplingOptions& o) {
  check(!logits.empty(), "sample_token", [] { return std::string("needs at least one logit"); });
  if (o.repetition_penalty != 1) {
    std::vector<char> penalised(logits.size(), 0);
    for (int32_t t : seen) {
      if (t < 0 || static_cast<size_t>(t) >= logits.size() || penalised[static_cast<size_t>(t)]) continue;
      float& l = logits[static_cast<size_t>(t)];
      l = static_cast<float>(l > 0 ? l / o.repetition_penalty : l * o.repetition_penalty);
      penalised[static_cast<size_t>(t)] = 1;
    }
  }
  if (o.temperature == 0) return std::max_element(logits.begin(), logits.end()) - logits.begin();

  // Candidates from the most to the least likely; equal logits in order of their ids.
  std::vector<int64_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  if (o.top_k > 0 && o.top_k < static_cast<int64_t>(order.size())) order.resize(static_cast<size_t>(o.top_k));

  std::vector<double> probability;
  double top = logits[static_cast<size_t>(order[0])], total = 0;
  for (int64_t id : order) {
    probability.push_back(std::exp((logits[static_cast<size_t>(id)] - top) / o.temperature));
    total += probability.back();
  }
  size_t keep = probability.size();
  if (o.top_p < 1) {
    double mass = 0;
    for (keep = 0; keep < probability.size() && mass < o.top_p * total; ++keep) mass += probability[keep];
  }
  while (keep > 1 && probability[keep - 1] < o.min_p * probability[0]) --keep;

  double mass = std::accumulate(probability.begin(), probability.begin() + static_cast<std::ptrdiff_t>(keep), 0.0);
  double u = unit(random_bits(seen.size(), child({o.seed, 0}, "sample"))) * mass;
  for (size_t i = 0; i < keep; ++i) {
    u -= probability[i];
    if (u < 0) return order[i];
  }
  return order[keep - 1];
}

Generated generate(const LanguageModel& model, std::span<const int32_t> prompt, int64_t max_tokens,
                   const SamplingOptions& options, int64_t eos, const std::function<bool(int32_t)>& accept) {
  check_options(options);
  check(!prompt.empty(), ErrorKind::setting,
        [] { return std::string("the prompt is empty: at least one token is needed to start from"); });
  int64_t longest = model.max_sequence_length(), have = static_cast<int64_t>(prompt.size());
  check(have <= longest, ErrorKind::setting, [&] {
    return "the prompt has " + std::to_string(have) + " tokens, the model's longest sequence is " +
           std::to_string(longest);
  });
  NoGrad off;
  KvCache cache = model.make_cache(std::min(longest, have + max_tokens));
  std::vector<int32_t> seen(prompt.begin(), prompt.end());
  Generated out;
  Tensor ids = from_vector(seen, {1, have});
  while (static_cast<int64_t>(out.tokens.size()) < max_tokens) {
    Tensor h = model.hidden(ids.to(model.device()), &cache);
    Tensor last = model.logits(h.sliced(1, h.dim(1) - 1, h.dim(1)));  // (1, 1, V)
    auto token = static_cast<int32_t>(sample_token(last.to_vector<float>(), seen, options));
    if (token == eos) {
      out.reason = StopReason::end_of_text;
      return out;
    }
    out.tokens.push_back(token);
    seen.push_back(token);
    if (accept && !accept(token)) {
      out.reason = StopReason::caller;
      return out;
    }
    if (cache.position() >= longest) {
      out.reason = StopReason::context_full;
      return out;
    }
    ids = from_vector(std::vector<int32_t>{token}, {1, 1});
  }
  return out;
}

}  // namespace braid::models
