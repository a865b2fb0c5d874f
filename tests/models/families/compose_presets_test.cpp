// The names of the setting compose, for a ViT and an encoder-decoder: the parameters that each leaves, their cost, and
// that the model computes the complete formula without the terms that are off.
#include "braid/models/families/compose_presets.h"
#include "braid/models/cost/size.h"
#include "braid/models/cost/trace.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <map>
#include <memory>
#include <set>

#include "braid/autograd.h"
#include "braid/models/families/composition_settings.h"
#include "braid/models/registry.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(compose_presets)

using models::Batch, models::Model, models::ModelSpec, models::SettingTexts;

namespace {

constexpr RandomKey kKey{5, 0};
constexpr int64_t D = 16, N = 4;  // width and heads of every model here

struct Row {
  const char* name;
  std::set<std::string> parameters;   // of a module with all branches
  std::vector<std::string> branches;  // its C axis
  int64_t rank = 2;
  int64_t matrices = 0;  // static ones
};

const std::set<std::string> kDynamic = {"dw1", "qkw", "dd"}, kAll = {"dw1", "qkw", "dd", "pre_proj.w", "post_proj.w"};
const std::vector<std::string> kFour = {"pre_q", "pre_k", "post_q", "post_k"};
const std::vector<Row> kRows = {
    {"local-only", {}, {}},  // names of families with windows and groups, which these have not
    {"lightweight", {}, {}},
    {"groups-2", {}, {}},
    {"groups-4", {}, {}},
    {"full", kAll, kFour, 2, 2},
    {"no-static", kDynamic, kFour},
    {"talking-heads", {"pre_proj.w", "post_proj.w"}, {}, 2, 2},
    {"query-wise", kDynamic, {"pre_q", "post_q"}},
    {"key-wise", kDynamic, {"pre_k", "post_k"}},
    {"pre-only", {"dw1", "qkw", "dd", "pre_proj.w"}, {"pre_q", "pre_k"}, 2, 1},
    {"post-only", {"dw1", "qkw", "dd", "post_proj.w"}, {"post_q", "post_k"}, 2, 1},
    {"gates-only", {"dd"}, kFour, 0},
    {"rank-1", kAll, kFour, 1, 2},
    {"rank-4", kAll, kFour, 4, 2},
};
bool exists(const Row& row) { return !row.parameters.empty(); }

// A family, small, with its modules of Compose: dyn_w_proj of self-attention has all branches and the static matrices,
// dyn_query and dyn_key of cross-attention share them.
struct Family {
  const char *plain, *composed;  // presets
  SettingTexts sizes;
  std::vector<std::string> modules;
  Batch batch;
  double positions_q, positions_k, pairs;  // of a sample, over all attentions

  std::unique_ptr<const ModelSpec> spec(const char* preset, SettingTexts more = {}) const {
    more.insert(more.end(), sizes.begin(), sizes.end());
    return models::configure_model(preset, more);
  }
};

Tensor ids(const Shape& shape, int64_t salt, int64_t symbols = 9) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < numel(shape); ++i) values.push_back((i * i * 5 + i * 3 + salt) % symbols);
  return from_vector(values, shape);
}

// 4 patches in 2 blocks; 5 and 4 symbols in a block of the encoder and one of the decoder.
std::vector<Family> families() {
  return {{"vit-28",
           "dc-vit-28",
           {{"hidden_size", "16"},
            {"num_hidden_layers", "2"},
            {"num_attention_heads", "4"},
            {"intermediate_size", "12"},
            {"image_size", "8"},
            {"num_labels", "3"}},
           {"layers.0.attention.dyn_w_proj", "layers.1.attention.dyn_w_proj"},
           {{"pixel_values", randn({3, 1, 8, 8}, {7, 9}, DType::f64)}, {"labels", ids({3}, 2, 3)}},
           2 * 4,
           2 * 4,
           2 * 16},
          {"seq2seq-tiny",
           "dc-seq2seq-tiny",
           {{"hidden_size", "16"},
            {"encoder_layers", "1"},
            {"decoder_layers", "1"},
            {"num_attention_heads", "4"},
            {"intermediate_size", "12"},
            {"vocab_size", "9"},
            {"max_source_length", "5"},
            {"max_target_length", "4"}},
           {"encoder.layers.0.attention.dyn_w_proj", "decoder.layers.0.attention.dyn_w_proj",
            "decoder.layers.0.cross_attention.dyn_query", "decoder.layers.0.cross_attention.dyn_key"},
           {{"source_ids", ids({3, 5}, 1)}, {"input_ids", ids({3, 4}, 2)}, {"targets", ids({3, 4}, 4)}},
           5 + 4 + 4,
           5 + 4 + 5,
           25 + 10 + 20}};  // the decoder is causal
}

// The C axis of a module in a model with these branches.
std::vector<std::string> branches_of(const std::string& module, const std::vector<std::string>& branches) {
  std::vector<std::string> own;
  for (const std::string& branch : branches)
    if (module.ends_with("dyn_w_proj") || (module.ends_with("dyn_query") == branch.ends_with("_q")))
      own.push_back(branch);
  return own;
}

std::map<std::string, Shape> expected_parameters(const Family& family, const Row& row) {
  std::map<std::string, Shape> expected;
  const int64_t R = row.rank, K = 2 * R * N;
  for (const std::string& module : family.modules) {
    const int64_t C = std::ssize(branches_of(module, row.branches));
    const std::map<std::string, Shape> shapes = {{"dw1", {D, 1, C, K}},
                                                 {"qkw", {1, C, K, 2 * R, N}},
                                                 {"dd", {D, 1, C * N}},
                                                 {"pre_proj.w", {1, N, N}},
                                                 {"post_proj.w", {1, N, N}}};
    for (const std::string& name : row.parameters) {
      const bool matrix = name.ends_with("_proj.w");
      if (matrix ? !module.ends_with("dyn_key") : C > 0) expected[module + "." + name] = shapes.at(name);
    }
  }
  return expected;
}

bool of_compose(const std::string& name) { return name.find(".dyn_") != std::string::npos; }

std::map<std::string, Tensor> by_name(const Model& model) {
  std::map<std::string, Tensor> parameters;
  for (const nn::NamedTensor& p : nn::parameters(model)) parameters[p.name] = p.value.detach();
  return parameters;
}

// In f64, with every parameter random, so that no term vanishes.
std::unique_ptr<Model> make(const ModelSpec& spec) {
  std::unique_ptr<Model> model = spec.make(kKey);
  model->to(DType::f64);
  for (const auto& [name, value] : by_name(*model))
    Tensor(value).copy_(randn(value.shape(), child(kKey, name.c_str()), DType::f64) * 0.4);
  return model;
}

// The complete model whose dynamic weights and static matrices are those of `some` where it has them, else zero. Rank 0
// has its counterpart in rank 1.
std::unique_ptr<Model> completed(const Family& family, const Row& row, const Model& some) {
  const auto spec = family.spec(
      family.plain, {{"compose", "full"}, {"profile.rank", std::to_string(std::max<int64_t>(1, row.rank))}});
  std::unique_ptr<Model> all = make(*spec);
  const std::map<std::string, Tensor> have = by_name(some);
  for (auto& [name, value] : by_name(*all)) {
    Tensor into = value;
    if (of_compose(name) && !name.ends_with("dw1")) into.fill(0);
    const auto own = have.find(name);
    if (own == have.end()) continue;
    if (!of_compose(name) || name.ends_with("_proj.w")) {
      into.copy_(own->second);
      continue;
    }
    // dw1 (D, 1, C, K), qkw (1, C, K, 2R, N), dd (D, 1, C N): branch by branch to its place on the complete axis.
    const std::string module = name.substr(0, name.rfind('.'));
    const std::vector<std::string> order = branches_of(module, kFour), mine = branches_of(module, row.branches);
    const int axis = name.ends_with(".qkw") ? 1 : 2;
    const int64_t size = name.ends_with(".dd") ? N : 1;
    for (int64_t i = 0; i < std::ssize(mine); ++i) {
      const int64_t at = std::ranges::find(order, mine[static_cast<size_t>(i)]) - order.begin();
      into.sliced(axis, at * size, (at + 1) * size).copy_(own->second.sliced(axis, i * size, (i + 1) * size));
    }
  }
  return all;
}

// Sample by sample.
std::vector<double> losses(const Model& model, const Batch& batch) {
  NoGrad off;
  std::vector<double> values;
  for (int64_t i = 0; i < batch.samples(); ++i) values.push_back(model.loss_sum(batch.slice(i, i + 1)).item());
  return values;
}

std::string compose_of(const ModelSpec& spec) {
  for (const models::ModelSetting& setting : spec.settings())
    if (setting.name == "compose") return setting.value;
  return "no setting compose";
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_table_has_every_name) {
  std::set<std::string> found, expected;
  for (const models::ComposePreset& preset : models::composition_presets()) found.insert(preset.name);
  for (const Row& row : kRows)
    if (exists(row)) expected.insert(row.name);
  BOOST_TEST(found == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_name_leaves_its_parameters_and_their_cost) {
  for (const Family& family : families()) {
    const auto plain = family.spec(family.plain);
    for (const Row& row : kRows) {
      BOOST_TEST_CONTEXT(family.plain << " " << row.name) {
        if (!exists(row)) {
          BOOST_TEST(throws_with([&] { family.spec(family.plain, {{"compose", row.name}}); }, "compose"));
          continue;
        }
        const auto spec = family.spec(family.plain, {{"compose", row.name}});
        BOOST_TEST(compose_of(*spec) == row.name);
        const std::map<std::string, Shape> expected = expected_parameters(family, row);
        std::map<std::string, Shape> found;
        int64_t elements = 0;
        for (const nn::NamedTensor& p : spec->parameters())
          if (of_compose(p.name)) found[p.name] = p.value.shape();
        BOOST_TEST((found == expected));
        for (const auto& [name, shape] : expected) {
          elements += numel(shape);
          BOOST_TEST(found.contains(name), name << " is missing");
        }
        for (const auto& [name, shape] : found) BOOST_TEST(expected.contains(name), name << " " << str(shape));
        BOOST_TEST(models::model_size(*spec).parameters == models::model_size(*plain).parameters + elements);

        // FLOPs of dw1, qkw and dd at a position and of the mixing of a pair.
        const auto count = [&](const char* side) {
          return static_cast<double>(
              std::ranges::count_if(row.branches, [&](const std::string& b) { return b.ends_with(side); }));
        };
        const double R = static_cast<double>(row.rank), K = 2 * R * N;
        const double generator = 2 * D * K + 2 * K * 2 * R * N + 2 * D * N;
        const double pair =
            (count("_q") + count("_k")) * (4 * R * N + 2 * N) + static_cast<double>(row.matrices) * 2 * N * N;
        const double more =
            generator * (family.positions_q * count("_q") + family.positions_k * count("_k")) + pair * family.pairs;
        BOOST_TEST(models::forward_flops(*spec, 1).total() == models::forward_flops(*plain, 1).total() + more);

        // A folder holds the switches, from which the name follows.
        const auto read = models::read_model_spec(spec->config_json(), "config.json");
        BOOST_TEST(compose_of(*read) == row.name);
        BOOST_TEST(models::differing_settings(*spec, *read).empty());
        BOOST_TEST(compose_of(*spec->with({{"compose", "none"}})) == "none");
        BOOST_TEST(compose_of(*spec->with({{"profile.rank", "3"}})) == "custom");
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_model_is_the_formula_without_the_rest) {
  for (const Family& family : families()) {
    const std::vector<double> plain = losses(*make(*family.spec(family.plain)), family.batch);
    for (const Row& row : kRows) {
      if (!exists(row)) continue;
      BOOST_TEST_CONTEXT(family.plain << " " << row.name) {
        const std::unique_ptr<Model> model = make(*family.spec(family.composed, {{"compose", row.name}}));
        const std::vector<double> found = losses(*model, family.batch);
        BOOST_TEST(is_close(found, losses(*completed(family, row, *model), family.batch), 1e-13));
        for (size_t i = 0; i < found.size(); ++i) BOOST_TEST(std::fabs(found[i] - plain[i]) > 1e-4 * plain[i]);
      }
    }
  }
}

// A run continues where only a setting without effect was changed.
BOOST_AUTO_TEST_CASE(models_differ_in_settings_that_one_of_them_uses) {
  for (const Family& family : families()) {
    const auto differences = [&](const char* preset, const SettingTexts& settings) {
      const auto spec = family.spec(preset);
      return models::differing_settings(*spec, *spec->with(settings));
    };
    BOOST_TEST(differences(family.plain, {{"profile.static_proj", "false"}, {"profile.rank", "3"}}).empty());
    const std::vector<std::string> expected = {"model.compose = full, found no-static",
                                               "model.profile.static_proj = true, found false"};
    BOOST_TEST(differences(family.composed, {{"profile.static_proj", "false"}}) == expected,
               boost::test_tools::per_element());
    BOOST_TEST(differences(family.plain, {{"use_dcmha", "true"}}).size() >= 2);
  }
}

// To the bit: the same parameters from the same key, the same cost, the same losses and gradients.
BOOST_AUTO_TEST_CASE(none_is_the_plain_model) {
  for (const Family& family : families()) {
    const auto plain = family.spec(family.plain);
    for (const char* preset : {family.plain, family.composed}) {
      BOOST_TEST_CONTEXT(preset) {
        const auto none = family.spec(preset, {{"compose", "none"}});
        BOOST_TEST(compose_of(*none) == "none");
        BOOST_TEST(compose_of(*plain) == "none");
        BOOST_TEST(models::differing_settings(*plain, *none).empty());
        BOOST_TEST(none->config_json() == plain->config_json());
        BOOST_TEST(models::forward_flops(*none, 1).total() == models::forward_flops(*plain, 1).total());
        const std::unique_ptr<Model> expected = plain->make(kKey), found = none->make(kKey);
        const std::vector<nn::NamedTensor> want = nn::parameters(*expected), have = nn::parameters(*found);
        BOOST_REQUIRE(have.size() == want.size());
        for (size_t i = 0; i < want.size(); ++i) {
          BOOST_TEST(have[i].name == want[i].name);
          BOOST_TEST(!of_compose(have[i].name), have[i].name);
          BOOST_TEST(is_close(have[i].value, want[i].value, 0), have[i].name);
        }
        const std::unique_ptr<Model> trained = make(*plain), other = make(*none);
        BOOST_TEST(losses(*other, family.batch) == losses(*trained, family.batch), boost::test_tools::per_element());
        for (const auto* model : {&trained, &other}) backward((*model)->loss_sum(family.batch));
        const std::vector<nn::NamedTensor> a = nn::parameters(*trained), b = nn::parameters(*other);
        for (size_t i = 0; i < a.size(); ++i) BOOST_TEST(is_close(grad(b[i].value), grad(a[i].value), 0), a[i].name);
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
