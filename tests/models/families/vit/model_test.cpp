// ViT and DC-ViT: against loops over every head, query and key, the derivative of a whole model, what follows from the
// formula, presets, and the random omissions of training.
#include "braid/models/families/vit/model.h"
#include "braid/models/cost/size.h"
#include "braid/models/cost/trace.h"
#include "braid/models/families/vit/family.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "braid/autograd.h"
#include "braid/models/registry.h"
#include "tests/models/families/vit/support.h"
#include "tests/models/randomise.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(vit_model)

using models::Batch, models::Vit, models::VitConfig;

namespace {

Tensor value(const Vit& model, const std::string& name) {
  for (const nn::NamedTensor& p : nn::parameters(model))
    if (p.name == name) return p.value.detach();
  BOOST_FAIL("no parameter " + name);
  return {};
}

// The batch with one more tensor.
Batch with(const Batch& batch, const std::string& name, const Tensor& value) {
  return {{"pixel_values", batch.at("pixel_values")}, {"labels", batch.at("labels").clone()}, {name, value}};
}

// DCMHA of one sample by its formula, element by element, without a mask. x (T, D), row-major.
std::vector<double> dcmha_by_loops(const Vit& model, const std::string& layer, const std::vector<double>& x,
                                   int64_t T) {
  const VitConfig& c = model.config();
  const int64_t D = c.hidden_size, N = c.num_attention_heads, d = D / N, R = c.rank, C = 4, K = 2 * R * N;
  const std::string a = layer + ".attention.";
  const auto get = [&](const std::string& name) { return value(model, a + name).to_vector<double>(); };
  const auto W = get("wqkv.weight"), bias = get("wqkv.bias"), Wo = get("wo.weight"), bo = get("wo.bias");
  const auto dw1 = get("dyn_w_proj.dw1"), qkw = get("dyn_w_proj.qkw"), dd = get("dyn_w_proj.dd");
  const std::vector<double> base[2] = {get("dyn_w_proj.pre_proj.w"), get("dyn_w_proj.post_proj.w")};
  const auto u = [](int64_t i) { return static_cast<size_t>(i); };

  std::vector<double> qkv(u(T * 3 * D));  // (T, 3, N, d)
  for (int64_t t = 0; t < T; ++t)
    for (int64_t o = 0; o < 3 * D; ++o) {
      double sum = bias[u(o)];
      for (int64_t i = 0; i < D; ++i) sum += W[u(o * D + i)] * x[u(t * D + i)];
      qkv[u(t * 3 * D + o)] = sum;
    }
  // Factors of branch c (pre query, pre key, post query, post key) of token t.
  std::vector<double> down(u(T * C * R * N)), up(down.size()), gate(u(T * C * N));
  const auto at = [&](int64_t t, int64_t c4, int64_t r, int64_t m) { return u(((t * C + c4) * R + r) * N + m); };
  for (int64_t t = 0; t < T; ++t)
    for (int64_t k4 = 0; k4 < C; ++k4) {
      std::vector<double> hidden(u(K));
      for (int64_t k = 0; k < K; ++k) {
        double sum = 0;
        for (int64_t i = 0; i < D; ++i) sum += x[u(t * D + i)] * dw1[u((i * C + k4) * K + k)];
        hidden[u(k)] = 0.5 * sum * (1 + std::tanh(std::sqrt(2 / M_PI) * (sum + 0.044715 * sum * sum * sum)));
      }
      for (int64_t r = 0; r < 2 * R; ++r)
        for (int64_t m = 0; m < N; ++m) {
          double sum = 0;
          for (int64_t k = 0; k < K; ++k) sum += hidden[u(k)] * qkw[u(((k4 * K + k) * 2 * R + r) * N + m)];
          (r < R ? down[at(t, k4, r, m)] : up[at(t, k4, r - R, m)]) = sum;
        }
      for (int64_t r = 0; r < R; ++r) {
        double squares = 0;
        for (int64_t m = 0; m < N; ++m) squares += down[at(t, k4, r, m)] * down[at(t, k4, r, m)];
        for (int64_t m = 0; m < N; ++m) down[at(t, k4, r, m)] /= std::sqrt(squares / static_cast<double>(N) + 1e-6);
      }
      for (int64_t m = 0; m < N; ++m) {
        double sum = 0;
        for (int64_t i = 0; i < D; ++i) sum += x[u(t * D + i)] * dd[u(i * C * N + k4 * N + m)];
        gate[u((t * C + k4) * N + m)] = std::tanh(sum);
      }
    }
  const auto compose = [&](const std::vector<double>& A, int64_t stage, int64_t i, int64_t j) {  // A (N)
    std::vector<double> O(A);
    for (int64_t n = 0; n < N; ++n) {
      for (int64_t m = 0; m < N; ++m) O[u(n)] += A[u(m)] * base[stage][u(m * N + n)];
      for (const auto& [t, k4] : {std::pair{i, 2 * stage}, {j, 2 * stage + 1}}) {
        for (int64_t r = 0; r < R; ++r) {
          double read = 0;
          for (int64_t m = 0; m < N; ++m) read += A[u(m)] * down[at(t, k4, r, m)];
          O[u(n)] += read * up[at(t, k4, r, n)];
        }
        O[u(n)] += A[u(n)] * gate[u((t * C + k4) * N + n)];
      }
    }
    return O;
  };
  std::vector<double> y(u(T * D), 0.0);
  for (int64_t i = 0; i < T; ++i) {
    std::vector<std::vector<double>> scores, probabilities;  // of each key
    for (int64_t j = 0; j < T; ++j) {
      std::vector<double> A;
      for (int64_t n = 0; n < N; ++n) {
        double sum = 0;
        for (int64_t e = 0; e < d; ++e) sum += qkv[u(i * 3 * D + n * d + e)] * qkv[u(j * 3 * D + D + n * d + e)];
        A.push_back(sum / std::sqrt(static_cast<double>(d)));
      }
      scores.push_back(compose(A, 0, i, j));
    }
    probabilities = scores;
    for (int64_t n = 0; n < N; ++n) {
      double total = 0;
      for (auto& of_key : scores) total += std::exp(of_key[u(n)]);
      for (size_t j = 0; j < scores.size(); ++j) probabilities[j][u(n)] = std::exp(scores[j][u(n)]) / total;
    }
    for (int64_t j = 0; j < T; ++j) {
      const std::vector<double> P = compose(probabilities[u(j)], 1, i, j);
      for (int64_t n = 0; n < N; ++n)
        for (int64_t e = 0; e < d; ++e) y[u(i * D + n * d + e)] += P[u(n)] * qkv[u(j * 3 * D + 2 * D + n * d + e)];
    }
  }
  std::vector<double> out(u(T * D));
  for (int64_t t = 0; t < T; ++t)
    for (int64_t o = 0; o < D; ++o) {
      double sum = bo[u(o)];
      for (int64_t i = 0; i < D; ++i) sum += Wo[u(o * D + i)] * y[u(t * D + i)];
      out[u(t * D + o)] = sum;
    }
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(dc_vit_is_its_formula) {
  const VitConfig c = small_vit();
  const Vit model = random_vit(c);
  NoGrad off;
  std::map<std::string, Tensor> seen;
  const nn::ActivationObserver observer{[&](const std::string& name, const Tensor& x) { seen[name] = x; }};
  model.logits(vit_batch(c, 2).at("pixel_values"), &observer);
  for (const char* layer : {"0", "1"}) {
    const std::string prefix = std::string("layers.") + layer;
    const Tensor x =
        layer_norm(seen.at(std::string("hidden.") + layer), value(model, prefix + ".attention_norm.weight"),
                   value(model, prefix + ".attention_norm.bias"), c.layer_norm_eps);
    const Tensor got = seen.at(prefix + ".attn_out");  // (2, T, D)
    for (int64_t b = 0; b < 2; ++b)
      BOOST_TEST(is_close(got.sliced(0, b, b + 1).to_vector<double>(),
                          dcmha_by_loops(model, prefix, x.sliced(0, b, b + 1).to_vector<double>(), c.tokens()), 1e-12));
  }
}

BOOST_AUTO_TEST_CASE(the_derivative_of_a_whole_model) {
  for (const bool class_token : {false, true}) {
    VitConfig c = small_vit();
    c.num_hidden_layers = 1;
    c.image_size = {4};
    c.rep_size = class_token;
    c.qkv_bias = !class_token;
    if (class_token) c.pool_type = "tok", c.posemb = "learn";
    const GradcheckResult result = gradcheck_vit(c);
    BOOST_TEST(result.error < 1e-7, result.where);
  }
}

// With the terms of Compose zero, or at the identity start, DC-ViT is ViT, to the bit.
BOOST_AUTO_TEST_CASE(without_dynamic_weights_it_is_vit) {
  const Batch images = vit_batch(small_vit(), 3);
  const Vit plain = random_vit(small_vit(false));
  const Vit zero = random_vit(small_vit());
  for (const nn::NamedTensor& p : nn::parameters(zero)) {
    if (p.name.ends_with("dyn_w_proj.qkw") || p.name.ends_with("dyn_w_proj.dd") || p.name.ends_with("_proj.w"))
      p.value.detach().fill(0);
  }
  VitConfig identity = small_vit();
  identity.compose_init = "identity";
  Vit start(identity, kVitKey), without(small_vit(false), kVitKey);
  start.to(DType::f64), without.to(DType::f64);
  for (Vit* model : {&start, &without}) value(*model, "classifier.weight").copy_(randn({3, 8}, {3, 3}, DType::f64));
  NoGrad off;
  const Tensor pixels = images.at("pixel_values");
  BOOST_TEST(is_close(zero.logits(pixels), plain.logits(pixels), 0));
  BOOST_TEST(is_close(start.logits(pixels), without.logits(pixels), 0));
  BOOST_TEST(!is_close(random_vit(small_vit()).logits(pixels), plain.logits(pixels), 1e-3));
}

BOOST_AUTO_TEST_CASE(recomputed_blocks_give_the_same_gradients) {
  VitConfig c = small_vit();
  c.drop_path_rate = c.hidden_dropout_prob = c.compose_dropout = 0.3;
  const Batch images = with(vit_batch(c, 3), models::kSampleKeys, from_vector(std::vector<int64_t>{4, 5, 6}, {3}));
  const auto gradients = [&](bool recompute) {
    Vit model = random_vit(c);
    model.set_recompute(recompute);
    backward(model.loss_sum(images));
    std::vector<std::vector<double>> all;
    for (const nn::NamedTensor& p : nn::parameters(model)) all.push_back(grad(p.value).to_vector<double>());
    return all;
  };
  BOOST_TEST((gradients(false) == gradients(true)));
}

// Samples do not know of each other, and only their keys decide what is left out.
BOOST_AUTO_TEST_CASE(the_loss_of_a_batch_is_the_sum_of_its_samples) {
  VitConfig c = small_vit();
  c.drop_path_rate = c.hidden_dropout_prob = c.compose_dropout = 0.3;
  const Vit model = random_vit(c);
  NoGrad off;
  const Batch plain = vit_batch(c, 4);
  const Batch all = with(plain, models::kSampleKeys, from_vector(std::vector<int64_t>{40, 50, 60, 70}, {4}));
  double sum = 0;
  for (int64_t b = 0; b < 4; ++b) sum += model.loss_sum(all.slice(b, b + 1)).item();
  const double loss = model.loss_sum(all).item();
  BOOST_TEST(std::fabs(loss - sum) < 1e-12 * std::fabs(loss));
  BOOST_TEST(std::fabs(loss - model.loss_sum(plain).item()) > 1e-3);  // without keys nothing is left out
  BOOST_TEST(std::fabs(model.loss_sum(plain).item() - sum) > 1e-3);
  for (double VitConfig::*rate :
       {&VitConfig::drop_path_rate, &VitConfig::hidden_dropout_prob, &VitConfig::compose_dropout}) {
    VitConfig one = small_vit();
    one.*rate = 0.5;
    BOOST_TEST(std::fabs(random_vit(one).loss_sum(all).item() - random_vit(one).loss_sum(plain).item()) > 1e-4);
  }
}

BOOST_AUTO_TEST_CASE(weights_stand_for_the_label_in_the_loss) {
  const VitConfig c = small_vit();
  const Vit model = random_vit(c);
  NoGrad off;
  const Batch plain = vit_batch(c, 3);  // labels 0, 1, 2
  BOOST_TEST(is_close(model.loss_sum(with(plain, "label_weights", eye(3))), model.loss_sum(plain), 1e-6));
  const Tensor logits = model.logits(plain.at("pixel_values"));
  const double smooth = model.loss_sum(with(plain, "label_weights", full({3, 3}, 1.0 / 3))).item();
  BOOST_TEST(std::fabs(smooth + sum(log_softmax(logits)).item() / 3) < 1e-6);
  Batch uncounted = with(plain, "label_weights", eye(3));
  uncounted.at("labels").copy_(from_vector(std::vector<int64_t>{0, -1, -1}, {3}));
  BOOST_TEST(model.count_targets(uncounted) == 1);
  BOOST_TEST(std::fabs(model.loss_sum(uncounted).item() + log_softmax(logits).to_vector<double>()[0]) < 1e-6);
}

BOOST_AUTO_TEST_CASE(batches_are_checked) {
  const VitConfig c = small_vit();
  const Vit model = random_vit(c);
  const Batch fine = vit_batch(c, 2);
  model.check_batch(fine);
  const auto rejects = [&](const Batch& b, const char* words) {
    BOOST_TEST(throws_with([&] { model.check_batch(b); }, words));
  };
  rejects({{"pixel_values", zeros({2, 2, 4, 4})}, {"labels", fine.at("labels")}},
          "pixel_values must be floats (B, 2, 4, 6)");
  rejects({{"pixel_values", fine.at("pixel_values")}, {"labels", full({2}, 3, DType::i64)}}, "label");
  rejects({{"pixel_values", fine.at("pixel_values")}, {"labels", zeros({3}, DType::i64)}}, "labels must be (2)");
  rejects(with(fine, "label_weights", zeros({2, 2})), "label_weights must be (2, 3)");
  rejects(with(fine, models::kSampleKeys, zeros({2})), "sample_keys must be i64 (2)");
}

BOOST_AUTO_TEST_CASE(presets_have_the_published_sizes) {
  const auto size = [](const char* preset, const models::SettingTexts& settings = {}) {
    return models::model_size(*models::configure_model(preset, settings)).parameters;
  };
  // S/16 of big_vision with 1000 classes: 12 blocks, patches, pre_logits, norm, head.
  const auto expected = [](int64_t D, int64_t F, int64_t L, int64_t K) {
    return L * (4 * D * D + 4 * D + 2 * D * F + F + D + 4 * D) + 769 * D + D * D + D + 2 * D + K * (D + 1);
  };
  BOOST_TEST(size("vit-s16") == expected(384, 1536, 12, 1000));
  BOOST_TEST(size("vit-m16") == expected(512, 2048, 12, 1000));
  BOOST_TEST(size("vit-b16") == expected(768, 3072, 12, 1000));
  const int64_t D = 384, N = 6, C = 4, R = 2, K = 4 * N;
  BOOST_TEST(size("dc-vit-s16") - size("vit-s16") == 12 * (D * C * K + C * K * 2 * R * N + D * C * N + 2 * N * N));
  for (const char* preset : {"vit-28", "vit-32", "dc-vit-28", "dc-vit-32"}) {
    const auto spec = models::configure_model(preset, {});
    BOOST_TEST(models::forward_flops(*spec, 1).total() > 0);
    const int64_t parameters = models::model_size(*spec).parameters;
    BOOST_TEST(parameters > 500'000);
    const auto wider = spec->with(models::matching_settings(*spec, parameters + 100'000));
    BOOST_TEST(std::fabs(static_cast<double>(models::model_size(*wider).parameters - parameters - 100'000)) < 1000);
    BOOST_TEST(
        (models::differing_settings(*spec, *models::read_model_spec(spec->config_json(), "config.json")).empty()));
  }
  BOOST_TEST(throws_with([] { models::configure_model("vit-28", {{"image_size", "30"}}); }, "bad patch_size"));
  BOOST_TEST(throws_with(
      [] {
        models::configure_model("vit-28", {{"hiden_size", "30"}});
      },
      "did you mean 'hidden_size'?"));
}

// FLOPs counted by hand for one block of the small model.
BOOST_AUTO_TEST_CASE(flops) {
  VitConfig c = small_vit(false);
  c.num_hidden_layers = 1;
  const double T = 6, D = 8, F = 6, N = 2, R = 2, K = 8;
  const double plain = 2 * T * 8 * D + T * (2 * 4 * D * D + 2 * 2 * D * F) + 2 * 2 * T * T * D + 2 * D * 3;
  BOOST_TEST(models::forward_flops(models::VitSpec(c), 1).total() == plain);
  c.use_dcmha = true;
  const double weights = 4 * (2 * D * K + 2 * K * 2 * R * N + 2 * D * N);
  const double pairs = 4 * (2 * 2 * R * N + 2 * N) + 2 * 2 * N * N;
  BOOST_TEST(models::forward_flops(models::VitSpec(c), 1).total() == plain + T * weights + T * T * pairs);
}

BOOST_AUTO_TEST_SUITE_END()
