#include "braid/models/inspect/inspection.h"

#include <algorithm>
#include <numeric>

#include "braid/autograd/ops.h"
#include "braid/autograd/record.h"
#include "braid/models/inspect/layer_maps.h"
#include "braid/models/inspect/token_losses.h"

namespace braid::models {

namespace {

[[noreturn]] void bad(const std::string& field, const std::string& expected, const std::string& found) {
  fail(ErrorKind::input, "inspection: " + field + ": expected " + expected + ", found " + found);
}

void check_range(const char* field, int64_t value, int64_t from, int64_t to) {
  if (value < from || value > to) bad(field, str("a number from ", from, " to ", to), std::to_string(value));
}

void check_list(const char* field, const std::vector<int64_t>& list, int64_t count) {
  for (size_t i = 0; i < list.size(); ++i) {
    check_range(field, list[i], 0, count - 1);
    if (i > 0 && list[i] <= list[i - 1]) bad(field, "ascending numbers", str(list[i], " after more"));
  }
}

void check_factors(const nn::CompositionScale& s) {
  for (const nn::CompositionScale::Stage& stage : {s.pre, s.post}) {
    for (const double f : {stage.base, stage.query, stage.key, stage.query_gate, stage.key_gate})
      if (!(f >= 0 && f <= 1)) bad("scales", "factors from 0 to 1", std::to_string(f));
  }
}

// The fields that do not depend on the layer's heads.
void check_request(const LanguageModel& model, const InspectionRequest& r, const InspectionLimits& limits,
                   int64_t layers) {
  const int64_t T = std::ssize(r.tokens), longest = std::min(limits.tokens, model.max_sequence_length());
  if (T < 1 || T > longest) bad("tokens", str("1 to ", longest, " of them"), std::to_string(T));
  for (const int32_t id : r.tokens) check_range("tokens", id, 0, model.vocab_size() - 1);
  check_range("candidates", r.candidates, 0, limits.candidates);
  if (r.layer && layers == 0) bad("layer", "none, because the model has no attention", std::to_string(*r.layer));
  if (r.layer) check_range("layer", *r.layer, 0, layers - 1);
  if (r.pair && !r.layer) bad("pair", "a layer beside it", "none");
  check_list("queries", r.queries, T);
  if (r.pair) check_range("pair", r.pair->first, 0, T - 1), check_range("pair", r.pair->second, 0, T - 1);
  for (const InspectionRequest::Scale& s : r.scales) {
    if (s.layer) check_range("scales: layer", *s.layer, 0, layers - 1);
    check_factors(s.factors);
  }
}

// Hidden states of the tokens (1, T, D), with terms scaled where there are factors, and what the layer told.
Tensor pass(const LanguageModel& model, std::span<const int32_t> tokens,
            const std::vector<nn::CompositionScale>& factors, std::optional<int64_t> layer, bool maps,
            LayerTensors& observed) {
  const auto keep = [&](int64_t i, const LayerTensors& tensors) {
    if (i == layer) observed = tensors;
  };
  return capture(model, token_ids(model, tokens),
                 {.maps = [&](int64_t i) { return maps && i == layer; }, .scales = factors, .layer = keep})
      .out;
}

// map (1, N, T, T) -> (1, heads, queries, T)
Tensor selected(const Tensor& map, const std::vector<int64_t>& heads, const std::vector<int64_t>& queries) {
  const auto take = [](const Tensor& x, const std::vector<int64_t>& which) {
    return std::ssize(which) == x.dim(0) ? x : index_select(x, from_vector(which, {std::ssize(which)}));
  };
  const Tensor of_heads = take(squeeze(map, 0), heads);                            // (heads, T, T)
  return unsqueeze(transpose(take(transpose(of_heads, 0, 1), queries), 0, 1), 0);  // (1, heads, queries, T)
}

void add_pair(const LayerTensors& weights, const std::string& prefix, int64_t N, std::pair<int64_t, int64_t> pair,
              io::NamedTensors& out) {
  constexpr const char* names[] = {"base", "query", "key", "query_gate", "key_gate"};
  for (const std::string stage : {"pre", "post"}) {
    const auto add = [&](const std::string& part, const std::vector<double>& values) {
      out.emplace_back(prefix + "mix." + stage + "." + part, from_vector(values, {N, N}));
    };
    const MixingTerms terms(observed_mixing(weights, stage), N);
    std::vector<double> total(static_cast<size_t>(N * N));
    for (int64_t n = 0; n < N; ++n) total[static_cast<size_t>(n * N + n)] = 1;
    add("identity", total);
    for (const MixingTerm term : kMixingTerms) {
      const std::vector<double> w = terms.matrix(term, pair.first, pair.second);
      add(names[static_cast<size_t>(term)], w);
      for (size_t e = 0; e < w.size(); ++e) total[e] += w[e];
    }
    add("total", total);
  }
}

// The size of a result is known before the text is read: one token tells the number of heads.
void check_size(const LanguageModel& model, const InspectionRequest& r, const InspectionLimits& limits,
                Inspection& result) {
  LayerTensors one;
  pass(model, std::span(r.tokens).first(1), {}, r.layer, true, one);
  const int64_t N = one.at("attn_scores").dim(1), T = std::ssize(r.tokens);
  const auto all = [](int64_t count) {
    std::vector<int64_t> list(static_cast<size_t>(count));
    std::iota(list.begin(), list.end(), 0);
    return list;
  };
  result.heads = N;
  std::tie(result.groups, result.rank) = groups_and_rank(one);
  check_list("heads", r.heads, N);
  result.head_list = r.heads.empty() ? all(N) : r.heads;
  result.query_list = r.queries.empty() ? all(T) : r.queries;
  int64_t weights = 0;
  for (const auto& [name, x] : one)
    if (name.starts_with("dyn.")) weights += name.ends_with(".w") ? x.numel() : T * x.numel();
  const int64_t shown = std::ssize(result.head_list) * std::ssize(result.query_list) * T;
  const int64_t elements = (r.maps ? 4 * shown : 0) + (r.weights ? weights : 0) + (r.pair ? 14 * N * N : 0);
  if (r.maps && N * T * T > limits.elements)
    bad("maps", str("at most ", limits.elements, " scores of a layer; take a shorter text"),
        str(N, " heads of ", T, " x ", T));
  if (elements > limits.elements)
    bad("maps and weights",
        str("at most ", limits.elements, " elements; take fewer heads, fewer queries or a shorter text"),
        std::to_string(elements));
}

}  // namespace

Inspection inspect(const LanguageModel& model, const InspectionRequest& r, const InspectionLimits& limits) {
  const NoGrad off;
  Inspection result{.layers = std::ssize(model.make_cache(1).layers)};
  check_request(model, r, limits, result.layers);
  result.tokens = r.tokens;
  result.layer = r.layer;

  std::vector<nn::CompositionScale> factors(static_cast<size_t>(result.layers));
  for (const InspectionRequest::Scale& s : r.scales) {
    for (int64_t i = 0; i < result.layers; ++i)
      if (!s.layer || *s.layer == i) factors[static_cast<size_t>(i)] = s.factors;
  }
  result.scaled = std::ranges::any_of(factors, [](const auto& f) { return f != nn::CompositionScale(); });
  if (r.layer) check_size(model, r, limits, result);

  LayerTensors observed, none;
  const Tensor scaled = pass(model, r.tokens, factors, r.layer, r.maps, observed);
  const Tensor plain = result.scaled ? pass(model, r.tokens, {}, std::nullopt, false, none) : scaled;
  result.next = next_tokens(model, r.tokens, plain, scaled, r.candidates);
  if (!r.layer) return result;

  const std::string prefix = str("layers.", *r.layer, ".");
  for (const MapKind kind : kMapKinds)
    if (r.maps)
      result.tensors.emplace_back(prefix + name_of(kind), contiguous(selected(observed.at(name_of(kind)),
                                                                              result.head_list, result.query_list)));
  for (const auto& [name, value] : observed)
    if (r.weights && name.starts_with("dyn.")) result.tensors.emplace_back(prefix + name, value);
  if (r.pair) add_pair(observed, prefix, result.heads, *r.pair, result.tensors);
  return result;
}

}  // namespace braid::models
