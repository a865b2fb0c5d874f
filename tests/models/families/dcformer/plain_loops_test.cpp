// The model against its second implementation, the plain loops of tests/golden/dcformer.cpp, and these against the
// golden numbers: loss, every gradient, and the weights after three steps of AdamW.
#include <boost/test/unit_test.hpp>
#include <map>

#include "braid/autograd.h"
#include "braid/models/families/dcformer/config.h"
#include "braid/nn/optim/rules/adamw.h"
#include "tests/models/support.h"
#include "tests/support/compare.h"
#include "tests/support/golden.h"
#include "tests/support/sanitizer.h"
#define GOLDEN_DCFORMER_WITHOUT_MAIN
#include "tests/golden/dcformer.cpp"  // NOLINT(bugprone-suspicious-include): a program of one file

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(plain_loops)

namespace {

using Keys = std::vector<std::pair<std::string, std::string>>;

plain::Settings settings_of(const models::DcformerConfig& c) {
  plain::Settings s;
  s.V = static_cast<int>(c.vocab_size);
  s.D = static_cast<int>(c.dim);
  s.N = static_cast<int>(c.n_head);
  s.d = static_cast<int>(c.head_dim);
  s.F = static_cast<int>(c.intermediate_size);
  s.R = static_cast<int>(c.profile.rank);
  for (int64_t l = 0; l < c.n_layer; ++l) s.windows.push_back(static_cast<int>(c.keys_of_layer(l, false)));
  s.qk_norm = c.use_qk_norm;
  const std::array<std::string, 4> branches = {"pre_q", "pre_k", "post_q", "post_k"};
  for (size_t b = 0; b < 4; ++b) s.branches[b] = c.use_dcmha && std::ranges::count(c.profile.branches, branches[b]) > 0;
  s.matrices = {c.profile.static_proj && c.profile.pre_compose, c.profile.static_proj && c.profile.post_compose};
  s.norm_eps = c.norm_eps;
  s.qk_norm_eps = c.profile.qk_norm_eps;
  s.down_eps = c.profile.dw_norm_eps;
  s.rope_base = c.rope_base;
  return s;
}

std::vector<int> integers(const Tensor& x) {
  std::vector<int> all;
  for (int64_t i : x.to_vector<int64_t>()) all.push_back(static_cast<int>(i));
  return all;
}

plain::Batch batch_of(const Tensor& ids, const Tensor& targets) {
  return {static_cast<int>(ids.dim(0)), static_cast<int>(ids.dim(1)), integers(ids), integers(targets)};
}

// By name; it has the parameters of the other model and no more.
std::map<std::string, plain::Parameter*> parameters_of(plain::Model& model, const nn::Module& other) {
  std::map<std::string, plain::Parameter*> all;
  for (plain::Parameter* p : model.parameters()) all[p->name] = p;
  BOOST_REQUIRE(all.size() == nn::parameters(other).size());
  for (const nn::NamedTensor& p : nn::parameters(other)) {
    BOOST_REQUIRE_MESSAGE(all.count(p.name), p.name);
    BOOST_REQUIRE(all[p.name]->size() == p.value.numel());
  }
  return all;
}

// Every term of the model matters: no norm is 1, and Compose adds as much as there was.
void draw(plain::Model& model) {
  std::mt19937_64 bits(7);
  for (plain::Parameter* p : model.parameters()) {
    const double scale = std::sqrt(3.0 / (p->input_first ? p->rows : p->last));
    for (double& x : p->value) {
      const double u = std::ldexp(static_cast<double>(bits()), -63) - 1;
      x = p->columns() == 1 ? 1 + u / 2 : scale * u;
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_golden_numbers) {
  const std::string folder = kGolden + "model_dcformer_train";
  const io::SafetensorsFile want(folder + "/golden.safetensors");
  const models::LoadedModel loaded = models::load_model(folder, {.dtype = DType::f64});
  plain::Model loops(settings_of(dcformer(loaded).config()));
  const auto parameters = parameters_of(loops, *loaded.model);
  for (const nn::NamedTensor& p : nn::parameters(*loaded.model))
    parameters.at(p.name)->value = p.value.to_vector<double>();
  const double loss = plain::loss_and_gradients(loops, batch_of(want.load("input_ids"), want.load("targets")));
  BOOST_TEST(is_close({loss}, want.load("loss").to_vector<double>(), 1e-13));
  for (const auto& [name, p] : parameters) {
    BOOST_TEST_CONTEXT(name) {
      BOOST_TEST(is_close(p->derivative, want.load("grad." + name).to_vector<double>(), 1e-12));
    }
  }
}

BOOST_AUTO_TEST_CASE(the_model_computes_and_learns_the_same) {
  const std::vector<Keys> cases = {
      {},  // DCFormer++
      {{"compose", "full"}},
      {{"compose", "full"}, {"use_qk_norm", "false"}, {"profile.window_keys", "W+1"}, {"window_type", "LGLL"}},
      {{"compose", "talking-heads"}},
      {{"compose", "query-wise"}},
      {{"compose", "key-wise"}, {"profile.static_proj", "true"}},
      {{"compose", "pre-only"}},
      {{"compose", "post-only"}},
      {{"compose", "gates-only"}},
      {{"compose", "rank-1"}},
      {{"compose", "local-only"}},
      {{"compose", "none"}},
  };
  for (const Keys& keys : cases) {
    Keys all = {{"vocab_size", "29"},        {"dim", "24"},    {"n_head", "4"},      {"head_dim", "6"},
                {"intermediate_size", "20"}, {"n_layer", "3"}, {"window_size", "5"}, {"block_size", "32"}};
    std::string name;
    for (const auto& [key, value] : keys) name += key + "=" + value + " ";
    all.insert(all.end(), keys.begin(), keys.end());
    BOOST_TEST_CONTEXT(name) {
      models::Dcformer model(models::configure("dcformer-tiny", all), {1, 0});
      model.to(DType::f64);
      plain::Model loops(settings_of(model.config()));
      draw(loops);
      const auto parameters = parameters_of(loops, model);
      for (const nn::NamedTensor& p : nn::parameters(model))
        p.value.detach().copy_(from_vector(parameters.at(p.name)->value, p.value.shape()));
      nn::require_grad(model);
      nn::AdamW adamw(nn::parameters(model), {.lr = 0.01});
      plain::AdamW plain_adamw;
      for (int64_t step = 1; step <= 3; ++step) {
        // AdamW enlarges the differences of small gradients. At the -O1 of the sanitizers sums have another
        // order: 1.6e-12 was measured.
        const double tolerance = step > 1 ? 1e-10 : kAddressSanitizer || kThreadSanitizer ? 4e-12 : 1e-12;
        std::vector<int64_t> ids, targets;
        for (int64_t i = 0; i < 2 * 13; ++i) {
          ids.push_back((i * i + 3 * i + step) % 29);
          targets.push_back(i % 7 == 2 ? -1 : (i * 5 + step) % 29);
        }
        const Tensor x = from_vector(ids, {2, 13}), y = from_vector(targets, {2, 13});
        const Tensor loss =
            scale(model.loss_sum(x, y), 1.0 / static_cast<double>(26 - std::ranges::count(targets, -1)));
        adamw.zero_grad();
        backward(loss);
        const double plain_loss = plain::loss_and_gradients(loops, batch_of(x, y));
        BOOST_TEST(is_close(loss.to_vector<double>(), {plain_loss}, tolerance));
        for (const nn::NamedTensor& p : nn::parameters(model)) {
          BOOST_TEST_CONTEXT("step " << step << ", gradient of " << p.name) {
            BOOST_TEST(is_close(grad(p.value).to_vector<double>(), parameters.at(p.name)->derivative, tolerance));
          }
        }
        adamw.step();
        plain_adamw.update(loops, 0.01);
        for (const nn::NamedTensor& p : nn::parameters(model)) {
          BOOST_TEST_CONTEXT("step " << step << ", " << p.name) {
            BOOST_TEST(is_close(p.value.to_vector<double>(), parameters.at(p.name)->value, tolerance));
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
