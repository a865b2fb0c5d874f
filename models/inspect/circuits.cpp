#include "braid/models/inspect/circuits.h"

#include <cmath>

#include "braid/models/inspect/parameter_named.h"
#include "braid/models/inspect/spectrum.h"

namespace braid::models {

namespace {

// Row r of w (d, D).
std::span<const double> row_of(const HeadWeights& head, const std::vector<double>& w, int64_t r) {
  return std::span(w).subspan(static_cast<size_t>(r * head.width), static_cast<size_t>(head.width));
}

// A B^T for a, b (d, D) -> (d, d)
std::vector<double> by_rows(const HeadWeights& head, const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> result;
  for (int64_t i = 0; i < head.dim; ++i)
    for (int64_t j = 0; j < head.dim; ++j) result.push_back(dot(row_of(head, a, i), row_of(head, b, j)));
  return result;
}

// M^T G M for m, g (d, d)
std::vector<double> between(const std::vector<double>& m, const std::vector<double>& g, int64_t d) {
  const auto times_m = [&](const std::vector<double>& x) {  // X^T M
    std::vector<double> result(m.size());
    for (int64_t k = 0; k < d; ++k)
      for (int64_t i = 0; i < d; ++i)
        for (int64_t j = 0; j < d; ++j)
          result[static_cast<size_t>(i * d + j)] +=
              x[static_cast<size_t>(k * d + i)] * m[static_cast<size_t>(k * d + j)];
    return result;
  };
  return times_m(times_m(g));  // G is symmetric: (G M)^T M
}

// |A^T B| of A A^T and B B^T.
double product_norm(const std::vector<double>& aa, const std::vector<double>& bb) {
  return std::sqrt(std::max(0.0, dot(aa, bb)));
}

}  // namespace

std::vector<HeadWeights> head_weights(const LanguageModel& model, int64_t layer) {
  const Tensor qkv = parameter_named(model, layer_name(layer, "attention.wqkv.weight")),
               out = parameter_named(model, layer_name(layer, "attention.wo.weight")),
               norm = parameter_named(model, layer_name(layer, "attention_norm.weight"));
  const auto has = [&](const char* name) { return bool(parameter_named(model, layer_name(layer, name))); };
  const bool projected_again =  // variants that change the rows of wqkv by weights of their own
      has("attention.iha.q") || has("attention.knocking.q") || has("attention.value-residual.own");
  if (!qkv || !out || !norm || has("attention_post_norm.weight") || projected_again) return {};
  const int64_t D = qkv.dim(1), kv = kv_heads_of(model), d = head_dim_of(model);
  const int64_t N = qkv.dim(0) / d - 2 * kv, written = out.dim(1) / d;  // diff-v2 makes one head of two
  const std::vector<double> w = qkv.to_vector<double>(), o = out.to_vector<double>();
  std::vector<double> g = norm.to_vector<double>();
  if (setting_text(model, "norm_offset") == "true")
    for (double& gain : g) gain += 1;
  const double scale = score_options_of(model).scale;
  std::vector<HeadWeights> heads;
  for (int64_t n = 0; n < N; ++n) {
    HeadWeights head{D, d, {}, {}, {}, {}};
    const int64_t shared = n / (N / kv), to = n / (N / written);  // the key/value head, and that of the output
    const auto rows = [&](int64_t first, double factor) {
      std::vector<double> result;
      for (int64_t r = first; r < first + d; ++r)
        for (int64_t c = 0; c < D; ++c)
          result.push_back(w[static_cast<size_t>(r * D + c)] * g[static_cast<size_t>(c)] * factor);
      return result;
    };
    head.q = rows(n * d, scale > 0 ? scale : 1 / std::sqrt(static_cast<double>(d)));
    head.k = rows((N + shared) * d, 1);
    head.v = rows((N + kv + shared) * d, 1);
    for (int64_t r = to * d; r < (to + 1) * d; ++r)
      for (int64_t c = 0; c < D; ++c) head.o_t.push_back(o[static_cast<size_t>(c * written * d + r)]);
    heads.push_back(std::move(head));
  }
  return heads;
}

std::vector<double> qk_singular_values(const HeadWeights& head) {
  return product_singular_values(head.q, head.k, head.width);
}
std::vector<double> ov_singular_values(const HeadWeights& head) {
  return product_singular_values(head.o_t, head.v, head.width);
}

double qk_value(const HeadWeights& head, std::span<const double> x, std::span<const double> y) {
  double sum = 0;
  for (int64_t r = 0; r < head.dim; ++r) sum += dot(row_of(head, head.q, r), x) * dot(row_of(head, head.k, r), y);
  return sum;
}
double ov_value(const HeadWeights& head, std::span<const double> x, std::span<const double> y) {
  double sum = 0;
  for (int64_t r = 0; r < head.dim; ++r) sum += dot(row_of(head, head.o_t, r), y) * dot(row_of(head, head.v, r), x);
  return sum;
}

CompositionScores composition_scores(const HeadWeights& earlier, const HeadWeights& later) {
  const auto square = [&](const std::vector<double>& w) { return by_rows(later, w, w); };
  const std::vector<double> q = square(later.q), k = square(later.k), v = square(later.v), o = square(later.o_t),
                            read = square(earlier.v);
  const double ov = product_norm(square(earlier.o_t), read), qk = product_norm(q, k), later_ov = product_norm(o, v);
  // W_QK^T W_OV = k^T (q o) v and so on, with the product in brackets of d x d: |k^T M v|, |M^T k| by M^T k k^T M.
  const auto through = [&](const std::vector<double>& reads, const std::vector<double>& rest) {
    return product_norm(between(by_rows(later, reads, earlier.o_t), rest, later.dim), read);
  };
  const auto share = [](double x, double norm) { return norm > 0 ? x / norm : 0; };
  return {share(through(later.q, k), qk * ov), share(through(later.k, q), qk * ov),
          share(through(later.v, o), later_ov * ov)};
}

}  // namespace braid::models
