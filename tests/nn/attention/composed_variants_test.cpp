// Attention variants that read all heads: each one's formula in loops, in f64.
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "braid/autograd.h"
#include "tests/nn/attention/variants_support.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(composed_variants)

namespace {

using Vector = std::vector<double>;

Vector values(nn::Attention& attention, const std::string& name) {
  return parameter(attention, name).to_vector<double>();
}

// Projections of heads (B, T, N + 2 Nkv, d), as a function of their place.
auto projections(nn::Attention& attention, const Tensor& x) {
  const Tensor all = linear(x, parameter(attention, "wqkv.weight"));
  return [all = reshape(all, {x.dim(0), x.dim(1), all.dim(2) / d, d})](int64_t b, int64_t t, int64_t n) {
    Vector head;
    for (int64_t i = 0; i < d; ++i) head.push_back(at(all, b, t, n, i));
    return head;
  };
}

double dot(const Vector& x, const Vector& y) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

void add_scaled(Vector& y, double factor, const Vector& x) {
  for (size_t i = 0; i < y.size(); ++i) y[i] += factor * x[i];
}

}  // namespace

// In loops over queries and keys, with a window and shared key/value heads.
BOOST_AUTO_TEST_CASE(a_sink_takes_a_share_of_the_softmax) {
  for (const char* name : {"sink", "off-by-one"}) {
    const bool learned = name == std::string("sink");
    nn::AttentionOptions o = with({name});
    o.kv_heads = 2;
    o.window = 4;
    nn::Attention attention = make(o);
    if (learned) fill(attention, "sink.z", 3);
    const Tensor x = input(), got = heads_of(attention, x);
    const Tensor all = reshape(linear(x, parameter(attention, "wqkv.weight")), {B, T, N + 4, d});
    for (int64_t b = 0; b < B; ++b)
      for (int64_t t = 0; t < T; ++t)
        for (int64_t n = 0; n < N; ++n) {
          const int64_t key = N + n / 2, value = key + 2, first = std::max<int64_t>(0, t - 3);
          double total = std::exp(learned ? parameter(attention, "sink.z").data<double>()[n] : 0.0);
          std::vector<double> y(d);
          for (int64_t j = first; j <= t; ++j) {
            double score = 0;
            for (int64_t i = 0; i < d; ++i) score += at(all, b, t, n, i) * at(all, b, j, key, i);
            const double weight = std::exp(score / std::sqrt(static_cast<double>(d)));
            total += weight;
            for (int64_t i = 0; i < d; ++i) y[static_cast<size_t>(i)] += weight * at(all, b, j, value, i);
          }
          for (int64_t i = 0; i < d; ++i)
            BOOST_TEST(std::fabs(at(got, b, t, n, i) - y[static_cast<size_t>(i)] / total) < 1e-12);
        }
  }
}

BOOST_AUTO_TEST_CASE(maps_are_those_of_a_composed_variant) {
  std::map<std::string, Tensor> seen;
  const nn::ActivationObserver observer{[&](const std::string& name, const Tensor& x) { seen[name] = x; },
                                        [](const std::string&) { return true; }};
  make(with({"off-by-one"}))(input(), {.observer = &observer});
  for (const double sum_of_row : sum(seen.at("attn_probs"), {-1}).to_vector<double>()) BOOST_TEST(sum_of_row < 1);
  const Tensor s = exp(seen.at("attn_scores")), want = div(s, sum(s, {-1}, true) + 1.0);
  BOOST_TEST(is_close(seen.at("attn_probs"), want, 1e-12));
}

// In loops over pseudo queries and keys, in the order of the interleaved sequence.
BOOST_AUTO_TEST_CASE(interleaved_heads_attend_among_pseudo_tokens) {
  constexpr int64_t P = 2, Nkv = 2;
  for (const int64_t window : {0, 3}) {
    nn::AttentionOptions o = with({"iha"});
    o.kv_heads = Nkv;
    o.window = window;
    nn::Attention attention = make(o);
    for (const char* name : {"iha.q", "iha.k", "iha.v", "iha.collapse"}) fill(attention, name, 3);
    const Tensor x = input(), got = heads_of(attention, x);
    const auto head = projections(attention, x);
    const Vector sums_q = values(attention, "iha.q"), sums_k = values(attention, "iha.k"),
                 sums_v = values(attention, "iha.v"), collapse = values(attention, "iha.collapse");
    const auto pseudo = [&](const Vector& sums, int64_t heads, int64_t first, int64_t b, int64_t t, int64_t p,
                            int64_t n) {
      Vector sum(d);
      for (int64_t m = 0; m < heads; ++m)
        add_scaled(sum, sums[static_cast<size_t>((p * heads + n) * heads + m)], head(b, t, first + m));
      return sum;
    };
    for (int64_t b = 0; b < B; ++b)
      for (int64_t t = 0; t < T; ++t)
        for (int64_t n = 0; n < N; ++n) {
          Vector want(d);
          for (int64_t p = 0; p < P; ++p) {
            const Vector q = pseudo(sums_q, N, 0, b, t, p, n);
            const int64_t row = t * P + p, first = window == 0 ? 0 : std::max<int64_t>(0, row - window * P + P);
            double total = 0;
            Vector y(d);
            for (int64_t j = first; j <= row; ++j) {
              const Vector k = pseudo(sums_k, Nkv, N, b, j / P, j % P, n / (N / Nkv));
              const double weight = std::exp(dot(q, k) / std::sqrt(static_cast<double>(d)));
              total += weight;
              add_scaled(y, weight, pseudo(sums_v, Nkv, N + Nkv, b, j / P, j % P, n / (N / Nkv)));
            }
            add_scaled(want, collapse[static_cast<size_t>(p * N + n)] / total, y);
          }
          for (int64_t i = 0; i < d; ++i)
            BOOST_TEST(std::fabs(at(got, b, t, n, i) - want[static_cast<size_t>(i)]) < 1e-11);
        }
  }
}

// In loops over queries, keys and the offsets of both.
BOOST_AUTO_TEST_CASE(multi_token_attention_sums_neighbouring_scores) {
  constexpr int64_t Q = 6, K = 11, Nkv = 2;
  for (const int64_t window : {0, 3, 5, 7}) {
    nn::AttentionOptions o = with({"mta"});
    o.kv_heads = Nkv;
    o.window = window;
    nn::Attention attention = make(o);
    for (const char* name : {"mta.key_query", "mta.heads", "mta.norm", "mta.gate.weight", "mta.gate.bias"})
      fill(attention, name, 3);
    const Tensor x = input(), got = heads_of(attention, x);
    const auto head = projections(attention, x);
    const Vector kernel = values(attention, "mta.key_query"), mix = values(attention, "mta.heads"),
                 norm = values(attention, "mta.norm"), gate = values(attention, "mta.gate.weight");
    const double bias = values(attention, "mta.gate.bias")[0];
    for (int64_t b = 0; b < B; ++b)
      for (int64_t t = 0; t < T; ++t) {
        const int64_t first = window == 0 ? 0 : std::max<int64_t>(0, t - window + 1);
        std::vector<Vector> p;
        for (int64_t n = 0; n < N; ++n) {
          Vector of_head;
          double total = 0;
          for (int64_t j = first; j <= t; ++j) {
            double score = 0;
            for (int64_t i = 0; i < Q; ++i)
              for (int64_t l = 0; l < K; ++l) {
                const int64_t query = t - i, key = j + l - K / 2;
                if (query < first || key < first || key > query) continue;
                score += kernel[static_cast<size_t>((n * Q + i) * K + l)] *
                         dot(head(b, query, n), head(b, key, N + n / (N / Nkv))) / std::sqrt(static_cast<double>(d));
              }
            of_head.push_back(std::exp(score));
            total += of_head.back();
          }
          for (double& value : of_head) value /= total;
          p.push_back(of_head);
        }
        for (int64_t n = 0; n < N; ++n) {
          Vector y(d);
          for (int64_t j = first; j <= t; ++j)
            for (int64_t m = 0; m < 2; ++m)
              add_scaled(y,
                         mix[static_cast<size_t>(n * 2 + m)] *
                             p[static_cast<size_t>(n / 2 * 2 + m)][static_cast<size_t>(j - first)],
                         head(b, j, N + Nkv + n / (N / Nkv)));
          const double length = std::sqrt(dot(y, y) / static_cast<double>(d) + 1e-5);
          for (int64_t i = 0; i < d; ++i) y[static_cast<size_t>(i)] *= norm[static_cast<size_t>(i)] / length;
          const double factor = 1 / (1 + std::exp(-dot(y, gate) - bias));
          for (int64_t i = 0; i < d; ++i)
            BOOST_TEST(std::fabs(at(got, b, t, n, i) - factor * y[static_cast<size_t>(i)]) < 1e-11);
        }
      }
  }
}

// So many rows that attention takes them in several blocks: those of fewer rows end elsewhere.
BOOST_AUTO_TEST_CASE(blocks_of_rows_read_the_queries_before_them) {
  for (const int64_t window : {0, 40}) {
    nn::AttentionOptions o = with({"mta"});
    o.window = window;
    nn::Attention attention = make(o);
    fill(attention, "mta.key_query", 3);
    const Tensor x = randn({1, 700, D}, {11, 1}, DType::f64);
    BOOST_TEST(is_close(attention(x.sliced(1, 0, 520).clone()), attention(x).sliced(1, 0, 520).clone(), 1e-11));
  }
}

BOOST_AUTO_TEST_SUITE_END()
