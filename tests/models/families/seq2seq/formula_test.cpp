// The encoder-decoder against its formula: loops over heads, queries and keys.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <map>

#include "braid/autograd.h"
#include "tests/models/families/seq2seq/support.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(seq2seq_formula)

using models::Batch, models::Seq2Seq, models::Seq2SeqConfig;

namespace {

using Row = std::vector<double>;
using Rows = std::vector<Row>;  // of positions

// The model by its formula, one number after another, of one sample.
class Loops {
 public:
  explicit Loops(const Seq2Seq& model) : c_(model.config()) {
    for (const nn::NamedTensor& p : nn::parameters(model)) all_[p.name] = p.value.to_vector<double>();
  }

  Rows logits(const std::vector<int64_t>& source, const std::vector<int64_t>& input) const {
    Rows h = embed(source, "source_positions");
    for (int64_t i = 0; i < c_.encoder_layers; ++i) {
      const std::string layer = "encoder.layers." + std::to_string(i) + ".";
      const Rows n = norm(h, layer + "attention_norm");
      add_to(h, attention(layer + "attention.", n, n, false));
      add_to(h, mlp(layer + "feed_forward.", norm(h, layer + "ffn_norm")));
    }
    const Rows states = norm(h, "encoder.norm");
    Rows x = embed(input, "target_positions");
    for (int64_t i = 0; i < c_.decoder_layers; ++i) {
      const std::string layer = "decoder.layers." + std::to_string(i) + ".";
      const Rows n = norm(x, layer + "attention_norm");
      add_to(x, attention(layer + "attention.", n, n, true));
      add_to(x, attention(layer + "cross_attention.", norm(x, layer + "cross_norm"), states, false));
      add_to(x, mlp(layer + "feed_forward.", norm(x, layer + "ffn_norm")));
    }
    Rows out;
    for (const Row& row : norm(x, "decoder.norm")) out.push_back(product("output.weight", row));
    return out;
  }

 private:
  static size_t u(int64_t i) { return static_cast<size_t>(i); }
  static void add_to(Rows& x, const Rows& y) {
    for (size_t t = 0; t < x.size(); ++t)
      for (size_t i = 0; i < x[t].size(); ++i) x[t][i] += y[t][i];
  }

  Rows embed(const std::vector<int64_t>& ids, const std::string& positions) const {
    const Row &table = all_.at("embeddings.weight"), &place = all_.at(positions);
    Rows rows;
    for (size_t t = 0; t < ids.size(); ++t) {
      rows.emplace_back();
      for (int64_t i = 0; i < c_.hidden_size; ++i)
        rows.back().push_back(table[u(ids[t] * c_.hidden_size + i)] + place[t * u(c_.hidden_size) + u(i)]);
    }
    return rows;
  }

  Rows norm(const Rows& x, const std::string& name) const {
    const Row &weight = all_.at(name + ".weight"), &bias = all_.at(name + ".bias");
    Rows out = x;
    for (Row& row : out) {
      double mean = 0, variance = 0;
      for (const double v : row) mean += v / static_cast<double>(row.size());
      for (const double v : row) variance += (v - mean) * (v - mean) / static_cast<double>(row.size());
      for (size_t i = 0; i < row.size(); ++i)
        row[i] = (row[i] - mean) / std::sqrt(variance + c_.layer_norm_eps) * weight[i] + bias[i];
    }
    return out;
  }

  // The product with the rows [begin, end) of a weight (out, in), or with all.
  Row product(const std::string& name, const Row& x, int64_t begin = 0, int64_t end = -1) const {
    const Row& w = all_.at(name);
    if (end < 0) end = static_cast<int64_t>(w.size() / x.size());
    Row y;
    for (int64_t o = begin; o < end; ++o) {
      double sum = 0;
      for (size_t i = 0; i < x.size(); ++i) sum += w[u(o) * x.size() + i] * x[i];
      y.push_back(sum);
    }
    return y;
  }
  Row linear(const std::string& name, const Row& x, int64_t begin = 0, int64_t end = -1) const {
    Row y = product(name + ".weight", x, begin, end);
    for (size_t o = 0; o < y.size(); ++o) y[o] += all_.at(name + ".bias")[u(begin) + o];
    return y;
  }
  static double gelu(double v) { return 0.5 * v * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v))); }
  Rows mlp(const std::string& name, const Rows& x) const {
    Rows out;
    for (const Row& row : x) {
      Row hidden = linear(name + "w1", row);
      for (double& v : hidden) v = gelu(v);
      out.push_back(linear(name + "w2", hidden));
    }
    return out;
  }

  struct Factors {
    Rows down, up;  // (R, N)
    Row gate;       // (N)
  };
  // The factors of branch `c` of the C branches of a module of Compose, at one position.
  Factors factors(const std::string& module, const Row& x, int64_t c, int64_t C) const {
    const int64_t N = c_.num_attention_heads, R = c_.rank, K = 2 * R * N, D = c_.hidden_size;
    const Row &dw1 = all_.at(module + "dw1"), &qkw = all_.at(module + "qkw"), &dd = all_.at(module + "dd");
    Row hidden(u(K), 0.0);
    for (int64_t k = 0; k < K; ++k) {
      for (int64_t i = 0; i < D; ++i) hidden[u(k)] += x[u(i)] * dw1[u((i * C + c) * K + k)];
      hidden[u(k)] = gelu(hidden[u(k)]);
    }
    Factors f;
    for (int64_t r = 0; r < 2 * R; ++r) {
      Row w(u(N), 0.0);
      double squares = 0;
      for (int64_t m = 0; m < N; ++m) {
        for (int64_t k = 0; k < K; ++k) w[u(m)] += hidden[u(k)] * qkw[u(((c * K + k) * 2 * R + r) * N + m)];
        squares += w[u(m)] * w[u(m)] / static_cast<double>(N);
      }
      if (r < R)
        for (double& v : w) v /= std::sqrt(squares + 1e-6);
      (r < R ? f.down : f.up).push_back(w);
    }
    for (int64_t m = 0; m < N; ++m) {
      double sum = 0;
      for (int64_t i = 0; i < D; ++i) sum += x[u(i)] * dd[u((i * C + c) * N + m)];
      f.gate.push_back(std::tanh(sum));
    }
    return f;
  }

  // By hand: the encoder has one layer, the decoder two.
  bool composes(const std::string& attention) const {
    const bool second = attention.starts_with("decoder.layers.1.");
    if (c_.compose_layers == "even") return c_.use_dcmha && !second;
    if (c_.compose_layers == "last:1") return c_.use_dcmha && (second || attention.starts_with("encoder."));
    return c_.use_dcmha;
  }

  // Queries and query-wise weights from x, keys, values and key-wise weights from h: of self-attention the same.
  Rows attention(const std::string& name, const Rows& x, const Rows& h, bool causal) const {
    const int64_t N = c_.num_attention_heads, D = c_.hidden_size, d = D / N;
    const bool cross = all_.contains(name + "wq.weight");
    const std::string of_query = name + (cross ? "dyn_query." : "dyn_w_proj.");
    const std::string of_key = name + (cross ? "dyn_key." : "dyn_w_proj.");
    const int64_t C = cross ? 2 : 4;  // the branches of self-attention: pre_q, pre_k, post_q, post_k
    Rows out;
    for (size_t t = 0; t < x.size(); ++t) {
      const Row q = cross ? linear(name + "wq", x[t]) : linear(name + "wqkv", x[t], 0, D);
      const size_t keys = causal ? t + 1 : h.size();
      Rows scores, values;
      for (size_t s = 0; s < keys; ++s) {
        const Row k = cross ? linear(name + "wkv", h[s], 0, D) : linear(name + "wqkv", h[s], D, 2 * D);
        values.push_back(cross ? linear(name + "wkv", h[s], D, 2 * D) : linear(name + "wqkv", h[s], 2 * D, 3 * D));
        Row a(u(N), 0.0);
        for (int64_t i = 0; i < D; ++i) a[u(i / d)] += q[u(i)] * k[u(i)] / std::sqrt(static_cast<double>(d));
        scores.push_back(a);
      }
      const auto compose = [&](Rows& rows, int64_t stage) {
        if (!composes(name)) return;
        const Factors own = factors(of_query, x[t], cross ? stage : 2 * stage, C);
        const Row& base = all_.at(of_query + (stage == 0 ? "pre_proj.w" : "post_proj.w"));
        for (size_t s = 0; s < keys; ++s) {
          const Factors key = factors(of_key, h[s], cross ? stage : 2 * stage + 1, C);
          const Row a = rows[s];
          for (int64_t n = 0; n < N; ++n) {
            for (int64_t m = 0; m < N; ++m) rows[s][u(n)] += a[u(m)] * base[u(m * N + n)];
            for (const Factors* f : {&own, &key}) {
              for (int64_t r = 0; r < c_.rank; ++r)
                for (int64_t m = 0; m < N; ++m) rows[s][u(n)] += a[u(m)] * f->down[u(r)][u(m)] * f->up[u(r)][u(n)];
              rows[s][u(n)] += a[u(n)] * f->gate[u(n)];
            }
          }
        }
      };
      compose(scores, 0);
      for (int64_t n = 0; n < N; ++n) {
        double sum = 0;
        for (Row& row : scores) sum += row[u(n)] = std::exp(row[u(n)]);
        for (Row& row : scores) row[u(n)] /= sum;
      }
      compose(scores, 1);
      Row y(u(D), 0.0);
      for (size_t s = 0; s < keys; ++s)
        for (int64_t i = 0; i < D; ++i) y[u(i)] += scores[s][u(i / d)] * values[s][u(i)];
      out.push_back(linear(name + "wo", y));
    }
    return out;
  }

  Seq2SeqConfig c_;
  std::map<std::string, Row> all_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(it_is_its_formula) {
  for (const char* layers :
       {"none", "all", "even", "last:1"}) {  // of each stack: one of the encoder, two of the decoder
    Seq2SeqConfig config = small_seq2seq(std::string(layers) != "none");
    if (config.use_dcmha) config.compose_layers = layers;
    const Seq2Seq model = random_seq2seq(config);
    const Batch b = seq2seq_batch(model.config());
    NoGrad off;
    const Tensor got = logits_of(model, b);  // (2, 4, 9)
    for (int64_t i = 0; i < 2; ++i) {
      const auto row = [&](const char* name) { return b.at(name).sliced(0, i, i + 1).to_vector<int64_t>(); };
      Row expected;
      for (const Row& r : Loops(model).logits(row("source_ids"), row("input_ids")))
        expected.insert(expected.end(), r.begin(), r.end());
      BOOST_TEST(is_close(got.sliced(0, i, i + 1).to_vector<double>(), expected, 1e-12));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
