#include "braid/models/folders/lora.h"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "braid/models/folders/adapter.h"
#include "braid/models/training/checkpoint/checkpoint_writer.h"
#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/io/json.h"
#include "braid/tensor/io/reader.h"
#include "tests/models/support.h"
#include "tests/support/compare.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(lora)

namespace {

const models::LoraOptions options{.rank = 3, .alpha = 8, .targets = {"*.wqkv", "*.w2"}};

double loss(const models::Model& model) {
  NoGrad off;
  return model.loss_sum(small_batch(5)).item();
}

std::vector<nn::ParameterGroup> only_lora() {
  return {nn::parse_group("* frozen"), nn::parse_group("*.lora_?.weight trained")};
}

struct Training {
  models::Dcformer model;
  models::Trainer trainer;
  explicit Training(DType dtype = DType::f32, std::optional<DType> compute = {},
                    const std::string& preset = "dcformer-tiny")
      : model(small_config(preset), {1, 0}),
        trainer(prepare(model, dtype), {.groups = only_lora()}, 1.0, {}, compute) {}
  static models::Model& prepare(models::Dcformer& model, DType dtype) {
    model.to(dtype);
    models::add_lora(model, options, {7, 0});
    return model;
  }
  std::vector<double> everything() const {
    std::vector<double> all;
    const models::LocalState state = trainer.local_state();
    for (const auto* list : {&state.weights, &state.adapter, &state.optimizer})
      for (const models::LocalTensor& t : *list)
        for (double v : t.values.to_vector<double>()) all.push_back(v);
    return all;
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(the_first_step_is_that_of_the_model_without_it) {
  for (const DType dtype : {DType::f64, DType::f32}) {
    models::Dcformer plain(small_config(), {1, 0}), with(small_config(), {1, 0});
    plain.to(dtype), with.to(dtype);
    models::add_lora(with, options, {7, 0});
    BOOST_TEST(loss(with) == loss(plain));
    const auto found = models::lora_of(with);
    BOOST_REQUIRE(found.has_value());
    BOOST_TEST(found->rank == 3);
    BOOST_TEST(found->alpha == 8);
    BOOST_TEST(found->targets == std::vector<std::string>({"layers.0.attention.wqkv", "layers.0.feed_forward.w2",
                                                           "layers.1.attention.wqkv", "layers.1.feed_forward.w2"}));
    BOOST_TEST(nn::count(with) - nn::count(plain) == 2 * 3 * (32 + 96 + 64 + 32));
    BOOST_TEST(!models::lora_of(plain).has_value());
  }
}

BOOST_AUTO_TEST_CASE(tied_embeddings_have_no_layer_for_a_pair) {
  models::DcformerConfig config = small_config("llama-tiny");
  config.tie_word_embeddings = true;
  models::Dcformer model(config, {1, 0}), other(config, {1, 0});
  models::add_lora(model, {.rank = 2, .targets = {"*"}}, {7, 0});
  BOOST_TEST(models::lora_of(model)->targets.size() == 2u * 5);
  TempFolder folder;
  models::save_adapter(model, folder.path);
  models::load_adapter(other, folder.path);
  BOOST_TEST(loss(other) == loss(model));
}

BOOST_AUTO_TEST_CASE(training_changes_the_pairs_alone_and_merging_changes_no_result) {
  for (const std::optional<DType> compute : {std::optional<DType>(), std::optional(DType::bf16)}) {
    Training t(compute ? DType::f32 : DType::f64, compute);
    models::Dcformer plain(small_config(), {1, 0});
    plain.to(t.model.dtype() == DType::bf16 ? DType::f32 : t.model.dtype());
    const double before = loss(t.model);
    for (int64_t i = 0; i < 20; ++i) t.trainer.step({small_batch(5)}, 1e-2);
    std::map<std::string, Tensor> first;
    for (const nn::NamedTensor& p : nn::parameters(plain)) first[p.name] = p.value;
    for (const nn::NamedTensor& p : t.trainer.parameters()) {
      if (!models::is_lora(p.name)) BOOST_TEST(is_close(p.value, first.at(p.name), 0), p.name);
    }
    BOOST_TEST(loss(t.model) < before - 1);
    if (compute) continue;
    const double apart = loss(t.model);
    models::merge_lora(t.model);
    BOOST_TEST(is_close({loss(t.model)}, {apart}, 1e-12));
    BOOST_TEST(nn::count(t.model) == nn::count(plain));
  }
}

void check_checkpoint(const std::string& preset) {
  TempFolder run;
  models::text::ByteTokenizer tokenizer;
  Training whole(DType::f64, {}, preset), before(DType::f64, {}, preset), after(DType::f64, {}, preset);
  for (int64_t i = 0; i < 4; ++i) whole.trainer.step({small_batch(i)}, 1e-2);
  for (int64_t i = 0; i < 2; ++i) before.trainer.step({small_batch(i)}, 1e-2);
  models::CheckpointWriter(run.path, 2).save(before.trainer, &tokenizer, {2, 0, 0, 1, 16, "data"}, "");
  const std::filesystem::path folder = run.path / models::step_name(2);
  BOOST_REQUIRE(!models::find_damage(folder));
  models::load_checkpoint(folder, after.trainer);
  for (int64_t i = 2; i < 4; ++i) after.trainer.step({small_batch(i)}, 1e-2);
  BOOST_TEST((after.everything() == whole.everything()));

  const double expected = loss(before.model);
  models::LoadedModel apart = models::load_model(folder, {.merge_adapter = false});
  BOOST_TEST(loss(*apart.model) == expected);
  BOOST_TEST(models::lora_of(*apart.model)->rank == 3);
  models::LoadedModel merged = models::load_model(folder);
  BOOST_TEST(is_close({loss(*merged.model)}, {expected}, 1e-12));
  BOOST_REQUIRE(merged.notes.size() == 1u);
  BOOST_TEST(merged.notes[0].find("merged LoRA of rank 3 into 4 weights") == 0u);
  BOOST_TEST(nn::count(*merged.model) == nn::count(models::Dcformer(small_config(preset), {1, 0})));

  const std::filesystem::path out = run.path / "merged";
  models::save_as_loaded(*merged.model, merged.format, out);
  BOOST_TEST(!models::has_adapter(out));
  BOOST_TEST(loss(*models::load_model(out).model) == loss(*merged.model));

  const std::filesystem::path alone = run.path / "alone";  // the same adapter without the model
  std::filesystem::create_directories(alone);
  models::save_adapter(*apart.model, alone);
  for (const char* file : {models::kAdapterFile, models::kAdapterConfig})
    BOOST_TEST((io::read_text_file((alone / file).string(), 1 << 24) ==
                io::read_text_file((folder / file).string(), 1 << 24)));
}
BOOST_AUTO_TEST_CASE(a_checkpoint_is_the_model_with_its_adapter_beside_it) {
  for (const char* preset : {"dcformer-tiny", "llama-tiny", "gpt-neox-tiny"}) BOOST_TEST_CONTEXT(preset) {
      check_checkpoint(preset);
    }
}

BOOST_AUTO_TEST_CASE(the_adapter_has_the_form_of_peft) {
  TempFolder folder;
  Training t;
  models::save_adapter(t.model, folder.path);
  const nlohmann::json config = io::read_json_file(folder / models::kAdapterConfig);
  BOOST_TEST(config["peft_type"] == "LORA");
  BOOST_TEST(config["r"] == 3);
  BOOST_TEST(config["lora_alpha"] == 8);
  BOOST_TEST(config["target_modules"][0] == "layers.0.attention.wqkv");
  const io::TensorFiles files(folder / models::kAdapterFile);
  BOOST_TEST(files.tensors().size() == 8u);
  BOOST_TEST((files.find("base_model.model.layers.1.feed_forward.w2.lora_A.weight")->shape == Shape{3, 64}));
  BOOST_TEST((files.find("base_model.model.layers.1.feed_forward.w2.lora_B.weight")->shape == Shape{32, 3}));
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_named) {
  models::Dcformer model(small_config(), {1, 0});
  BRAID_CHECK_FAILS(models::add_lora(model, {.rank = 2, .targets = {"*.q_proj"}}, {}), ErrorKind::setting,
                    "lora.targets: no linear layer that can have LoRA is called '*.q_proj'", "layers.*.attention.wqkv",
                    "in files w1, w2, w3, wk, wo, wq, wqkv, wv");
  BRAID_CHECK_FAILS(models::add_lora(model, {.rank = 2, .targets = {"output"}}, {}), ErrorKind::setting,
                    "is called 'output'", "the output projection has none");
  TempFolder folder;
  Training t;
  const auto save = [&](const std::function<void(nlohmann::json&, std::vector<nn::NamedTensor>&)>& change) {
    models::save_adapter(t.model, folder.path);
    nlohmann::json config = io::read_json_file(folder / models::kAdapterConfig);
    std::vector<nn::NamedTensor> tensors;
    const io::TensorFiles files(folder / models::kAdapterFile);
    for (const io::TensorInfo& info : files.tensors()) tensors.push_back({info.name, files.load(info.name)});
    change(config, tensors);
    io::write_file(folder / models::kAdapterConfig, config.dump());
    io::save_safetensors(folder / models::kAdapterFile, tensors);
  };
  const auto fails = [&](const std::string& words) {
    BRAID_CHECK_FAILS(models::load_adapter(model, folder.path), ErrorKind::input, words);
    BOOST_TEST(!models::lora_of(model).has_value());
  };
  save([](nlohmann::json& config, auto&) { config["peft_type"] = "IA3"; });
  fails("bad peft_type in");
  save([](nlohmann::json& config, auto&) { config["use_dora"] = true; });
  fails("bad use_dora in");
  save([](nlohmann::json& config, auto&) { config["r"] = 1e9; });
  fails("expected a rank from 1");
  save([](nlohmann::json& config, auto&) { config["r"] = 2; });
  fails("has shape (3, 32), expected (2, 32)");
  save([](auto&, std::vector<nn::NamedTensor>& tensors) { tensors.pop_back(); });
  fails("has only one of lora_A and lora_B");
  save([](auto&, std::vector<nn::NamedTensor>& tensors) { tensors[0].name = "base_model.model.head.lora_A.weight"; });
  fails("belongs to no linear layer of this model");
  save([](auto&, std::vector<nn::NamedTensor>& tensors) { tensors[0].value.fill(NAN); });
  fails("NaN");
}

BOOST_AUTO_TEST_SUITE_END()
