// MUDDFormer and MUDDPythia: the model against its formulas in loops, from the tensors of a folder by their published
// names; what the folders are called, and what their configurations may say.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <map>

#include "braid/autograd.h"
#include "braid/models/families/dcformer/cost.h"
#include "braid/models/folders/pretrained.h"
#include "braid/tensor/io/safetensors.h"
#include "tests/models/folders/support.h"
#include "tests/models/made_models.h"
#include "tests/models/randomise.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;
namespace fs = std::filesystem;

BOOST_AUTO_TEST_SUITE(mudd)

namespace {

using Numbers = std::vector<double>;
using Rows = std::vector<Numbers>;  // of the positions of one sequence

models::DcformerConfig small(const std::string& family) {
  return models::configure(family + "-tiny", {{"dim", "32"},
                                              {"n_head", "4"},
                                              {"n_layer", "4"},
                                              {"intermediate_size", "200"},
                                              {"vocab_size", "40"},
                                              {"block_size", "64"}});
}

models::Dcformer model_of(const models::DcformerConfig& config) {
  models::Dcformer model(config, {1, 1});
  randomise(model, {5, 5}, 0.2);
  return model;
}

// Tensors of model.safetensors by name, and the configuration that says how they are used.
struct Reference {
  Reference(const fs::path& folder, const models::DcformerConfig& c) : config(c) {
    const io::SafetensorsFile file(folder / "model.safetensors");
    for (const auto& entry : file.tensors()) {
      const Tensor t = file.load(entry.name);
      shapes[entry.name] = t.shape();
      values[entry.name] = t.to(DType::f64).to_vector<double>();
    }
  }
  // x W^T + b for the rows of x
  Rows linear(const Rows& x, const std::string& name) const {
    const Numbers& w = values.at(name + ".weight");
    const size_t out = static_cast<size_t>(shapes.at(name + ".weight")[0]), in = w.size() / out;
    const auto bias = values.find(name + ".bias");
    Rows y(x.size(), bias == values.end() ? Numbers(out, 0) : bias->second);
    for (size_t p = 0; p < x.size(); ++p)
      for (size_t o = 0; o < out; ++o)
        for (size_t i = 0; i < in; ++i) y[p][o] += x[p][i] * w[o * in + i];
    return y;
  }
  // LayerNorm where there is a bias, else RMS norm; without weight with an empty name.
  Rows norm(Rows x, const std::string& name, double eps) const {
    const auto weight = values.find(name + ".weight"), bias = values.find(name + ".bias");
    for (Numbers& row : x) {
      const auto n = static_cast<double>(row.size());
      double mean = 0, squares = 0;
      for (const double e : row) mean += bias == values.end() ? 0 : e / n;
      for (double& e : row) e -= mean, squares += e * e / n;
      for (size_t i = 0; i < row.size(); ++i) {
        row[i] /= std::sqrt(squares + eps);
        if (weight != values.end()) row[i] *= weight->second[i];
        if (bias != values.end()) row[i] += bias->second[i];
      }
    }
    return x;
  }
  // The heads of q and k: norm, then a rotation of the first `rotary` numbers in halves.
  void turn(Rows& x, const std::string& name) const {
    const auto d = static_cast<size_t>(config.head_dim), half = static_cast<size_t>(config.rotary_dims() / 2);
    for (size_t p = 0; p < x.size(); ++p)
      for (size_t first = 0; first < x[p].size(); first += d) {
        const auto begin = x[p].begin() + static_cast<std::ptrdiff_t>(first);
        Numbers head = norm({Numbers(begin, begin + static_cast<std::ptrdiff_t>(d))}, name, config.norm_eps)[0];
        for (size_t i = 0; i < half; ++i) {
          const double angle = static_cast<double>(p) / std::pow(config.rope_base, static_cast<double>(i) / half),
                       a = head[i], b = head[half + i];
          head[i] = a * std::cos(angle) - b * std::sin(angle);
          head[half + i] = b * std::cos(angle) + a * std::sin(angle);
        }
        std::copy(head.begin(), head.end(), begin);
      }
  }
  Rows attention(const std::string& layer, const Rows& xq, const Rows& xk, const Rows& xv) const {
    Rows q = linear(xq, layer + "attention.wq"), k = linear(xk, layer + "attention.wk"),
         v = linear(xv, layer + "attention.wv");
    turn(q, layer + "attention.q_norm");
    turn(k, layer + "attention.k_norm");
    const auto d = static_cast<size_t>(config.head_dim), shared = static_cast<size_t>(config.n_head / config.n_kv_head);
    Rows y(q.size(), Numbers(q[0].size(), 0));
    for (size_t t = 0; t < q.size(); ++t)
      for (size_t h = 0; h * d < q[t].size(); ++h) {
        const size_t of_q = h * d, of_k = h / shared * d;
        Numbers p;
        double total = 0;
        for (size_t s = 0; s <= t; ++s) {
          double score = 0;
          for (size_t e = 0; e < d; ++e) score += q[t][of_q + e] * k[s][of_k + e] / std::sqrt(static_cast<double>(d));
          p.push_back(std::exp(score));
          total += p.back();
        }
        for (size_t s = 0; s <= t; ++s)
          for (size_t e = 0; e < d; ++e) y[t][of_q + e] += p[s] / total * v[s][of_k + e];
      }
    return linear(y, layer + "attention.wo");
  }
  Rows feed_forward(const std::string& layer, const Rows& x) const {
    Rows h = linear(x, layer + "feed_forward.w1");
    const bool gated = values.contains(layer + "feed_forward.w3.weight");
    const Rows factor = gated ? linear(x, layer + "feed_forward.w3") : Rows();
    for (size_t p = 0; p < h.size(); ++p)
      for (size_t i = 0; i < h[p].size(); ++i)
        h[p][i] = gated ? h[p][i] / (1 + std::exp(-h[p][i])) * factor[p][i] : gelu_of(h[p][i]);
    return linear(h, layer + "feed_forward.w2");
  }
  static double gelu_of(double z) { return z / 2 * (1 + std::erf(z / std::sqrt(2))); }
  static Rows plus(Rows a, const Rows& b) {
    for (size_t p = 0; p < a.size(); ++p)
      for (size_t i = 0; i < a[p].size(); ++i) a[p][i] += b[p][i];
    return a;
  }
  // Logits (T, V) of one sequence.
  Rows logits(const std::vector<int64_t>& ids) const {
    const auto D = static_cast<size_t>(config.dim);
    const Numbers& table = values.at("tok_embeddings.weight");
    Rows x;
    for (const int64_t id : ids) {
      const auto begin = table.begin() + id * config.dim;
      x.emplace_back(begin, begin + config.dim);
    }
    std::vector<Rows> outputs = {x}, streams = {x};
    for (int64_t i = 0; i < config.n_layer; ++i) {
      const std::string layer = str("layers.", i, ".");
      const auto normed = [&](size_t stream) {
        const std::string name = i == 0 ? "attention_norm" : str("attention_norms.", stream);
        return norm(streams[i == 0 ? 0 : stream], layer + name, config.norm_eps);
      };
      const Rows& r = streams.back();
      const Rows h = plus(r, attention(layer, normed(0), normed(1), normed(2)));
      const Rows in = norm(config.use_parallel_residual ? r : h, layer + "ffn_norm", config.norm_eps);
      outputs.push_back(plus(h, feed_forward(layer, in)));
      const std::string dense = str("dynamic_dense.", i);
      Rows hidden = linear(norm(outputs.back(), "", config.norm_eps), dense + ".w1");
      for (Numbers& row : hidden)
        for (double& z : row) z = gelu_of(z);
      const Rows weights = linear(hidden, dense + ".w2");
      const Numbers& bias = values.at(str("dense_bs.", i));
      const size_t J = outputs.size(), C = bias.size() / J;
      streams.assign(C, Rows(ids.size(), Numbers(D, 0)));
      for (size_t c = 0; c < C; ++c)
        for (size_t p = 0; p < ids.size(); ++p)
          for (size_t j = 0; j < J; ++j)
            for (size_t e = 0; e < D; ++e)
              streams[c][p][e] += (weights[p][c * J + j] + bias[c * J + j]) * outputs[j][p][e];
    }
    BOOST_TEST(streams.size() == 1U);
    return linear(norm(streams[0], "norm", config.norm_eps), "output");
  }

  models::DcformerConfig config;
  std::map<std::string, Numbers> values;
  std::map<std::string, Shape> shapes;
};

// A config.json with the keys of the published folders.
std::string published(const std::string& family, const std::string& more = "") {
  return "{\"model_type\": \"" + family +
         "\", \"block_size\": 64, \"dense\": true, \"dense_type\": \"qkvr\", \"dim\": 32, \"dynamic_dense\": true, "
         "\"expand_last\": true, \"head_dim\": 8, \"intermediate_size\": 200, \"is_training\": false, \"n_head\": 4, "
         "\"n_layer\": 4, \"n_local_heads\": 2, \"norm_eps\": 1e-06, \"rope_base\": 10000, \"sepln\": true, "
         "\"stack_hidden\": false, \"torch_dtype\": \"bfloat16\", \"use_layer_cache\": true, \"use_qk_norm\": true, " +
         more + "\"vocab_size\": 40}";
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_model_is_its_formulas) {
  for (const char* family : {"muddformer", "muddpythia"}) {
    const models::Dcformer model = model_of(small(family));
    const TempFolder scratch;
    models::save_model(model, nullptr, scratch.path);
    const Reference reference(scratch.path, model.config());
    const std::vector<int64_t> ids = {3, 14, 15, 9, 26, 5, 35, 8, 9, 7, 9};
    Numbers want;
    for (const Numbers& row : reference.logits(ids)) want.insert(want.end(), row.begin(), row.end());
    for (const auto& [dtype, tolerance] : {std::pair{DType::f64, 1e-10}, {DType::f32, 2e-5}}) {
      const models::LoadedModel loaded = models::load_model(scratch.path, {.dtype = dtype});
      const auto* dcformer = dynamic_cast<const models::Dcformer*>(loaded.model.get());
      BOOST_REQUIRE(dcformer != nullptr);
      const NoGrad off;
      const Tensor got = dcformer->logits(dcformer->hidden(from_vector(ids, {1, std::ssize(ids)})));
      BOOST_TEST(is_close(got.to_vector<double>(), want, tolerance), family);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_folder_has_the_published_names) {
  const models::Dcformer model = model_of(small("muddformer"));
  const TempFolder scratch;
  models::save_model(model, nullptr, scratch.path);
  const Reference folder(scratch.path, model.config());
  const int64_t widths[] = {128, 128, 256, 256};  // 200 (i / 3 + 1/2) / 128 = 0.8, 1.3, 1.8, 2.3
  for (int64_t i = 0; i < 4; ++i) {
    const std::string layer = str("layers.", i, ".");
    for (const char* name : {"attention.wq.weight", "attention.wk.weight", "attention.wv.weight", "attention.wo.weight",
                             "attention.q_norm.weight", "attention.k_norm.weight", "feed_forward.w1.weight",
                             "feed_forward.w2.weight", "feed_forward.w3.weight", "ffn_norm.weight"})
      BOOST_TEST(folder.values.contains(layer + name), layer << name);
    BOOST_TEST(folder.values.contains(layer + "attention_norm.weight") == (i == 0));
    BOOST_TEST(folder.values.contains(layer + "attention_norms.2.weight") == (i > 0));
    const int64_t C = i == 3 ? 1 : 4, J = i + 2, H = i == 3 ? 64 : 64 * (C * J / 64 + 1);  // 4 C J = 20 at the end
    BOOST_TEST((folder.shapes.at(str("dense_bs.", i)) == Shape{C, J}));
    BOOST_TEST((folder.shapes.at(str("dynamic_dense.", i, ".w1.weight")) == Shape{H, 32}));
    BOOST_TEST((folder.shapes.at(str("dynamic_dense.", i, ".w2.weight")) == Shape{C * J, H}));
    BOOST_TEST(folder.shapes.at(layer + "feed_forward.w1.weight")[0] == widths[i]);
  }
  BOOST_TEST(folder.values.size() == 4 * 10 + 1 + 3 * 3 + 4 * 3 + 3U);
}

BOOST_AUTO_TEST_CASE(a_published_configuration_has_the_values_of_its_code) {
  const models::DcformerConfig former = models::read_config(published("muddformer"), "config.json");
  BOOST_TEST(former.residual == "mudd");
  BOOST_TEST(former.expand_last);
  BOOST_TEST(!former.round64);  // absent: the default of the published class
  BOOST_TEST(former.n_kv_head == 2);
  BOOST_TEST(former.profile.qk_norm_eps == 1e-6);
  BOOST_TEST((former.profile.rope_table == models::RopeTable::bf16));
  BOOST_TEST(former.dynamic_mlp_dim);
  BOOST_TEST(!former.use_dcmha);
  BOOST_TEST((models::read_config(models::write_config(former), "config.json") == former));
  const models::DcformerConfig pythia =
      models::read_config(published("muddpythia", R"("rotary_pct": 0.25, "round64": true, )"), "config.json");
  BOOST_TEST((pythia.profile.rope_table == models::RopeTable::f16));
  BOOST_TEST(pythia.round64);
  BOOST_TEST(pythia.use_parallel_residual);
  BOOST_TEST((models::read_config(models::write_config(pythia), "config.json") == pythia));
  // Parts that the family has by default, switched off.
  for (const auto& [name, value] : {std::pair{"dynamic_mlp_dim", "false"}, {"residual", "plain"}}) {
    const models::DcformerConfig without = models::configure(former, {{name, value}});
    BOOST_TEST((models::read_config(models::write_config(without), "config.json") == without), name);
    const std::string changed = models::rewrite_config(published("muddformer"), "config.json", without);
    BOOST_TEST((models::read_config(changed, "config.json") == without), name);
  }

  const auto refused = [](const std::string& from, const std::string& to) {
    std::string text = published("muddformer");
    text.replace(text.find(from), from.size(), to);
    models::read_config(text, "config.json");
  };
  BOOST_TEST(throws_with([&] { refused(R"("dense_type": "qkvr")", R"("dense_type": "l")"); },
                         "bad value for dense_type in config.json: expected \"qkvr\", found \"l\""));
  BOOST_TEST(throws_with([&] { refused(R"("sepln": true)", R"("sepln": false)"); }, "bad value for sepln"));
  BOOST_TEST(throws_with([&] { refused(R"("n_local_heads": 2)", R"("n_local_heads": 3)"); }, "n_kv_head"));
  BOOST_TEST(throws_with([] { models::read_config(published("dcformer"), "config.json"); }, "unknown key 'dense'"));
}

BOOST_AUTO_TEST_CASE(what_cannot_be_is_one_sentence) {
  const auto bad = [](const Keys& keys, const std::string& message) {
    return throws_with([&] { models::configure("dcformer-tiny", keys); }, message);
  };
  BOOST_TEST(bad({{"residual", "dense"}},
                 "bad value for model key residual: expected one of plain, attnres, mhc, mudd, found 'dense'"));
  BOOST_TEST(bad({{"residual", "mhc"}, {"use_parallel_residual", "true"}},
                 "bad use_parallel_residual: expected false with residual=mhc, found true"));
  BOOST_TEST(bad({{"dynamic_mlp_dim", "true"}, {"n_layer", "1"}}, "expected false with one layer"));
  BOOST_TEST(bad({{"dynamic_mlp_dim", "true"}, {"intermediate_size", "100"}}, "expected more than 128"));
  BOOST_TEST(bad({{"dynamic_mlp_dim", "true"}, {"mgate", "true"}, {"mgate_dim", "4"}}, "expected false with mgate"));
}

// Beside DCMHA, as its authors use it: the weights of Compose are made from the input of the queries.
BOOST_AUTO_TEST_CASE(it_stands_beside_compose) {
  const models::DcformerConfig config = models::configure("dcformer-tiny", {{"residual", "mudd"}, {"n_layer", "2"}});
  const models::ParameterCounts c = models::count_parameters(config);
  BOOST_TEST(c.dynamic > 0);
  BOOST_TEST(c.depth == (256 * 8 + 8 * 8 + 8) + (256 * 3 + 3 * 3 + 3));
  BOOST_TEST(c.total == c.layers + c.depth + c.final_norm + c.embedding);
}

BOOST_AUTO_TEST_SUITE_END()
