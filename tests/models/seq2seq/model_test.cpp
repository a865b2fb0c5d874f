// The encoder-decoder: the whole model against loops over heads, queries and keys, its derivative, what follows from
// the formula, decoding with and without caches.
#include "braid/models/seq2seq/model.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <map>
#include <set>

#include "braid/autograd/autograd.h"
#include "braid/models/registry.h"
#include "braid/models/seq2seq/greedy.h"
#include "tests/models/support.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;
using models::Batch, models::Seq2Seq, models::Seq2SeqConfig;

namespace {

constexpr RandomKey kKey{5, 0};
using Row = std::vector<double>;
using Rows = std::vector<Row>;  // of positions

Seq2SeqConfig small(bool compose = true) {
  Seq2SeqConfig c;
  c.hidden_size = 8;
  c.encoder_layers = 1;
  c.decoder_layers = 2;
  c.num_attention_heads = 2;
  c.intermediate_size = 6;
  c.vocab_size = 9;
  c.max_source_length = 5;
  c.max_target_length = 4;
  c.use_dcmha = compose;
  return c;
}

// With every parameter random, so that no term vanishes.
Seq2Seq make(const Seq2SeqConfig& config, double deviation = 0.4, RandomKey key = kKey) {
  Seq2Seq model(config, key);
  model.to(DType::f64);
  for (const nn::NamedTensor& p : nn::parameters(model))
    p.value.detach().copy_(randn(p.value.shape(), child(key, p.name.c_str()), DType::f64) * deviation);
  return model;
}

Tensor ids(const Shape& shape, int64_t symbols, int64_t salt) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < numel(shape); ++i) values.push_back((i * i * 5 + i * 3 + salt) % symbols);
  return from_vector(values, shape);
}

Batch batch(const Seq2SeqConfig& c, int64_t B = 2) {
  Tensor targets = ids({B, 4}, c.vocab_size, 4).clone();
  targets.sliced(0, 0, 1).sliced(1, 3, 4).fill(-1);
  return {
      {"source_ids", ids({B, 5}, c.vocab_size, 1)}, {"input_ids", ids({B, 4}, c.vocab_size, 2)}, {"targets", targets}};
}

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

  // Of the rows [begin, end) of a weight (out, in), or of all.
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
  // Of branch `c` of the C branches of a module of Compose, at one position.
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
        if (!c_.use_dcmha) return;
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

Tensor logits(const Seq2Seq& model, const Batch& b) {
  return model.logits(model.decode(b.at("input_ids"), model.encode(b.at("source_ids"))));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(seq2seq_model)

BOOST_AUTO_TEST_CASE(it_is_its_formula) {
  for (const bool compose : {false, true}) {
    const Seq2Seq model = make(small(compose));
    const Batch b = batch(model.config());
    NoGrad off;
    const Tensor got = logits(model, b);  // (2, 4, 9)
    for (int64_t i = 0; i < 2; ++i) {
      const auto row = [&](const char* name) { return b.at(name).sliced(0, i, i + 1).to_vector<int64_t>(); };
      Row expected;
      for (const Row& r : Loops(model).logits(row("source_ids"), row("input_ids")))
        expected.insert(expected.end(), r.begin(), r.end());
      BOOST_TEST(is_close(got.sliced(0, i, i + 1).to_vector<double>(), expected, 1e-12));
    }
  }
}

BOOST_AUTO_TEST_CASE(the_derivative_of_a_whole_model) {
  Seq2SeqConfig c = small();
  c.decoder_layers = 1;
  Seq2Seq model = make(c);
  const Batch b = batch(c);
  std::vector<Tensor> inputs;
  for (const nn::NamedTensor& p : nn::parameters(model)) inputs.push_back(p.value.detach().clone());
  const GradcheckResult result = gradcheck(
      [&](const std::vector<Tensor>& in) {
        size_t next = 0;
        nn::replace_parameters(model, [&](const std::string&, const Tensor&) { return in[next++]; });
        return model.loss_sum(b);
      },
      inputs);
  BOOST_TEST(result.error < 1e-7, result.where);
}

BOOST_AUTO_TEST_CASE(without_dynamic_weights_it_is_the_plain_model) {
  const Seq2Seq plain = make(small(false)), zero = make(small());
  for (const nn::NamedTensor& p : nn::parameters(zero)) {
    const bool weight_of_compose = p.name.find(".dyn_") != std::string::npos && !p.name.ends_with("dw1");
    if (weight_of_compose) p.value.detach().fill(0);
  }
  Seq2SeqConfig identity = small();
  identity.compose_init = "identity";
  Seq2Seq start(identity, kKey), without(small(false), kKey);
  start.to(DType::f64), without.to(DType::f64);
  NoGrad off;
  const Batch b = batch(small());
  BOOST_TEST(is_close(logits(zero, b), logits(plain, b), 0));
  BOOST_TEST(is_close(logits(start, b), logits(without, b), 0));
  BOOST_TEST(!is_close(logits(make(small()), b), logits(plain, b), 1e-3));
}

BOOST_AUTO_TEST_CASE(the_loss_counts_targets_and_sums_over_samples) {
  const Seq2Seq model = make(small());
  NoGrad off;
  const Batch b = batch(small());
  BOOST_TEST(model.count_targets(b) == 7);
  double sum = 0;
  for (int64_t i = 0; i < 2; ++i) sum += model.loss_sum(b.slice(i, i + 1)).item();
  BOOST_TEST(std::fabs(model.loss_sum(b).item() - sum) < 1e-12 * sum);
  const double expected = braid::sum(cross_entropy_per_token(logits(model, b), b.at("targets"))).item();
  BOOST_TEST(std::fabs(sum - expected) < 1e-12 * sum);
}

BOOST_AUTO_TEST_CASE(decoding_with_a_cache_is_decoding_without) {
  // Symbols 0 fill, 1 begin, 2 end: the greedy symbols of a random model, step by step from the whole prefix.
  Seq2SeqConfig c = small();
  c.max_target_length = 7;
  // Seeds whose models do not answer every source alike; with the second one some rows end early.
  for (const auto& [compose, seed] : {std::pair{false, 1}, {true, 1}, {true, 5}}) {
    c.use_dcmha = compose;
    const Seq2Seq model = make(c, 0.8, {static_cast<uint64_t>(seed), 0});
    const Tensor source = ids({6, 5}, c.vocab_size, 3).to(DType::i32);
    NoGrad off;
    const auto found = models::decode_greedily(model, source, 7);
    const Seq2Seq::Encoded encoded = model.encode(source);
    models::KvCache cache = model.make_cache(7);
    std::vector<std::vector<int32_t>> prefix(6, {models::kPairBegin}), expected(6);
    std::vector<bool> ended(6);
    for (int64_t t = 1; t <= 7; ++t) {
      std::vector<int32_t> all, last;
      for (const auto& row : prefix) all.insert(all.end(), row.begin(), row.end()), last.push_back(row.back());
      const Tensor whole = model.decode(from_vector(all, {6, t}), encoded).sliced(1, t - 1, t);
      BOOST_TEST(is_close(model.decode(from_vector(last, {6, 1}), encoded, &cache), whole, 1e-12));
      const std::vector<int64_t> next = argmax(model.logits(whole)).to_vector<int64_t>();
      for (size_t b = 0; b < 6; ++b) {
        prefix[b].push_back(static_cast<int32_t>(next[b]));
        ended[b] = ended[b] || next[b] == models::kPairEnd;
        if (!ended[b]) expected[b].push_back(static_cast<int32_t>(next[b]));
      }
    }
    BOOST_TEST((found == expected));
    BOOST_TEST(std::set(found.begin(), found.end()).size() > 1);
    if (seed == 5) BOOST_TEST(std::ranges::any_of(found, [](const auto& row) { return row.size() < 7; }));
  }
}

BOOST_AUTO_TEST_CASE(batches_are_checked) {
  const Seq2SeqConfig c = small();
  const Seq2Seq model = make(c);
  const Batch b = batch(c);
  model.check_batch(b);
  const auto rejects = [&](const char* name, const Tensor& value, const char* words) {
    Batch bad = b;
    std::vector<nn::NamedTensor> tensors;
    for (nn::NamedTensor t : b.tensors()) {
      if (t.name == name) t.value = value;
      tensors.push_back(t);
    }
    bad = {tensors[0], tensors[1], tensors[2]};
    BOOST_TEST(throws_with([&] { model.check_batch(bad); }, words));
  };
  rejects("source_ids", zeros({2, 6}, DType::i64), "source_ids must be (B, at most 5)");
  rejects("input_ids", zeros({3, 4}, DType::i64), "input_ids must be (B, at most 4)");
  rejects("targets", zeros({2, 3}, DType::i64), "do not match input_ids");
  rejects("source_ids", full({2, 5}, 9, DType::i64), "source symbol");
  rejects("targets", full({2, 4}, 9, DType::i64), "target");
}

BOOST_AUTO_TEST_CASE(presets_and_settings) {
  for (const char* preset : {"seq2seq-tiny", "dc-seq2seq-tiny", "seq2seq-small", "dc-seq2seq-small"}) {
    const auto spec = models::configure_model(preset, {});
    BOOST_TEST(
        (models::differing_settings(*spec, *models::read_model_spec(spec->config_json(), "config.json")).empty()));
    const int64_t parameters = spec->size().parameters;
    const auto wider = spec->with(spec->matching_settings(parameters + 10'000));
    BOOST_TEST(std::fabs(static_cast<double>(wider->size().parameters - parameters - 10'000)) < 1000);
    BOOST_TEST(spec->training_memory({.batch = 4}).activations > 0);
  }
  const auto rejects = [](const models::SettingTexts& settings, const char* words) {
    BOOST_TEST(throws_with([&] { models::configure_model("seq2seq-tiny", settings); }, words));
  };
  rejects({{"num_attention_heads", "5"}}, "bad num_attention_heads: expected a divisor of hidden_size = 64");
  rejects({{"encoder_layer", "2"}}, "did you mean 'encoder_layers'?");
  rejects({{"decoder_layers", "0"}}, "decoder_layers");
  rejects({{"compose", "queries"}}, "compose");
  const std::string text = models::configure_model("seq2seq-tiny", {})->config_json();
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    return changed;
  };
  const auto rejects_file = [](const std::string& file, const char* words) {
    BOOST_TEST(throws_with([&] { models::read_model_spec(file, "config.json"); }, words));
  };
  rejects_file(with("\"hidden_size\": 64", "\"hidden_size\": 63"), "bad model in config.json");
  rejects_file(with("\"decoder_layers\"", "\"decoder_layer\""), "unknown key 'decoder_layer' in config.json");
  rejects_file(with("\"rank\"", "\"ranks\""), "unknown key 'profile.ranks' in config.json");
  const auto key_wise = models::configure_model("seq2seq-tiny", {{"compose", "key-wise"}});
  for (const nn::NamedTensor& p : key_wise->parameters()) BOOST_TEST(p.name.find("dyn_query") == std::string::npos);
}

// FLOPs counted by hand for one block each.
BOOST_AUTO_TEST_CASE(flops) {
  Seq2SeqConfig c = small(false);
  c.decoder_layers = 1;
  const double S = 5, T = 4, D = 8, F = 6, N = 2, R = 2, K = 8, V = 9;
  const double plain = S * (8 * D * D + 4 * D * F) + S * S * 4 * D     // encoder
                       + T * (12 * D * D + 4 * D * F) + S * 4 * D * D  // decoder
                       + T * T * 4 * D + T * S * 4 * D + 2 * T * D * V;
  const auto count = [](const Seq2SeqConfig& config) { return Seq2Seq(config, kKey).spec()->forward_flops(0); };
  BOOST_TEST(count(c) == plain);
  c.use_dcmha = true;
  const double branch = 2 * D * K + 2 * K * 2 * R * N + 2 * D * N;  // of a position
  const double pair = 4 * (4 * R * N + 2 * N) + 2 * 2 * N * N;
  BOOST_TEST(count(c) == plain + branch * (4 * S + 4 * T + 2 * T + 2 * S) + pair * (S * S + T * T + T * S));
}

BOOST_AUTO_TEST_SUITE_END()
