// LoRA under the names and in the files of the package PEFT, checked by sums over stored weights.
#include "braid/models/folders/adapter.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "braid/models/folders/init_from.h"
#include "braid/tensor/io/json.h"
#include "tests/models/folders/support.h"
#include "tests/support/random.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(adapter)

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

using Tensors = std::map<std::string, Tensor>;
const std::string kPrefix = "base_model.model.", kA = ".lora_A.weight", kB = ".lora_B.weight";

// A folder of the family, f64.
FolderData folder_of(const std::string& preset) {
  const TempFolder scratch;
  models::Dcformer model(small_config(preset), {1, 0});
  model.to(DType::f64);
  models::save_model(model, nullptr, scratch.path);
  return read_folder(scratch.path);
}

// W + factor B A of every pair, W by its name on disk.
FolderData merged(FolderData folder, const Tensors& pairs, double factor) {
  for (const auto& [name, a] : pairs) {
    if (!name.ends_with(kA)) continue;
    const std::string layer = name.substr(0, name.size() - kA.size());
    Tensor& weight = folder.tensors.at(layer.substr(kPrefix.size()) + ".weight");
    const std::vector<double> down = a.to_vector<double>(), up = pairs.at(layer + kB).to_vector<double>();
    std::vector<double> w = weight.to_vector<double>();
    const auto rank = static_cast<size_t>(a.dim(0)), in = static_cast<size_t>(a.dim(1));
    for (size_t o = 0; o < up.size() / rank; ++o)
      for (size_t i = 0; i < in; ++i)
        for (size_t r = 0; r < rank; ++r) w[o * in + i] += factor * up[o * rank + r] * down[r * in + i];
    weight = from_vector(w, weight.shape());
  }
  return folder;
}

Tensors pairs_in(const fs::path& folder) {
  Tensors pairs;
  const io::TensorFiles files((folder / models::kAdapterFile).string());
  for (const io::TensorInfo& info : files.tensors()) pairs[info.name] = files.load(info.name);
  return pairs;
}

const json kConfig = {{"peft_type", "LORA"}, {"r", 2}, {"lora_alpha", 5}, {"base_model_name_or_path", "../model"}};

void write_adapter(const fs::path& folder, const Tensors& pairs, json config = kConfig) {
  fs::create_directories(folder);
  std::vector<nn::NamedTensor> tensors;
  for (const auto& [name, x] : pairs) tensors.push_back({name, x});
  io::save_safetensors((folder / models::kAdapterFile).string(), tensors);
  io::write_file((folder / models::kAdapterConfig).string(), config.dump());
}

// Pairs of rank 2 for layers (out, in), each with values of its own.
Tensors random_pairs(const std::vector<std::pair<std::string, Shape>>& layers) {
  Tensors pairs;
  for (const auto& [layer, shape] : layers) {
    const std::string name = kPrefix + layer;
    pairs[name + kA] = normal_tensor({2, shape[1]}, 0.3, child({3, 1}, layer.c_str()));
    pairs[name + kB] = normal_tensor({shape[0], 2}, 0.3, child({3, 2}, layer.c_str()));
  }
  return pairs;
}
// Some of q, k, v, and all of them, of a LLaMA with two key/value heads of 8.
Tensors llama_pairs() {
  return random_pairs({{"model.layers.0.self_attn.q_proj", {32, 32}},
                       {"model.layers.0.self_attn.v_proj", {16, 32}},
                       {"model.layers.0.mlp.down_proj", {32, 64}},
                       {"model.layers.1.self_attn.q_proj", {32, 32}},
                       {"model.layers.1.self_attn.k_proj", {16, 32}},
                       {"model.layers.1.self_attn.v_proj", {16, 32}},
                       {"model.layers.1.self_attn.o_proj", {32, 32}}});
}

struct Case {
  std::string preset;
  size_t tensors;
  std::vector<std::pair<std::string, Shape>> some;
};
const std::vector<Case> kCases = {
    {"llama-tiny",
     2 * (6 + 2 + 2),
     {{"model.layers.0.self_attn.k_proj.lora_A.weight", {3, 32}},
      {"model.layers.0.self_attn.k_proj.lora_B.weight", {16, 3}},
      {"model.layers.1.mlp.gate_proj.lora_B.weight", {64, 3}}}},
    {"gpt-neox-tiny",
     2 * (2 + 2 + 2),
     {{"gpt_neox.layers.1.attention.query_key_value.lora_B.weight", {96, 3}},
      {"gpt_neox.layers.0.mlp.dense_h_to_4h.lora_A.weight", {3, 32}}}},
};

}  // namespace

BOOST_AUTO_TEST_CASE(pairs_are_written_for_the_layers_on_disk) {
  for (const Case& c : kCases) {
    BOOST_TEST_CONTEXT(c.preset) {
      const TempFolder scratch;
      const FolderData base = folder_of(c.preset);
      base.write(scratch.path / "model");
      const models::LoadedModel loaded = models::load_model(scratch.path / "model");
      models::add_lora(*loaded.model, {.rank = 3, .alpha = 7, .targets = {"*.wqkv", "*.wo", "*.w1"}}, {7, 0});
      for (nn::NamedTensor& p : nn::parameters(*loaded.model))
        if (p.name.ends_with(kB)) p.value.copy_(normal_tensor(p.value.shape(), 0.3, child({4, 4}, p.name.c_str())));
      const Tensor logits = logits_of(*loaded.model);
      const fs::path out = scratch.path / "lora";
      fs::create_directories(out);
      models::save_adapter(*loaded.model, out);

      const Tensors pairs = pairs_in(out);
      BOOST_TEST(pairs.size() == c.tensors);
      for (const auto& [name, shape] : c.some) BOOST_TEST((pairs.at(kPrefix + name).shape() == shape), name);
      std::vector<std::string> layers;
      for (const auto& [name, x] : pairs)
        if (name.ends_with(kA)) layers.push_back(name.substr(kPrefix.size(), name.size() - kPrefix.size() - kA.size()));
      auto targets =
          io::read_json_file((out / models::kAdapterConfig).string())["target_modules"].get<std::vector<std::string>>();
      std::ranges::sort(targets);
      BOOST_TEST(targets == layers, boost::test_tools::per_element());

      merged(base, pairs, 7.0 / 3).write(scratch.path / "sum");
      BOOST_TEST(is_close(logits_of(*models::load_model(scratch.path / "sum").model), logits, 1e-12));
      // Read again it is the same pair, not one of a larger rank.
      const models::LoadedModel apart =
          models::load_model(out, {.merge_adapter = false, .base = scratch.path / "model"});
      BOOST_TEST(models::lora_of(*apart.model)->rank == 3);
      BOOST_TEST(same_bytes(logits_of(*apart.model), logits));
      fs::create_directories(scratch.path / "again");
      models::save_adapter(*apart.model, scratch.path / "again");
      for (const char* file : {models::kAdapterFile, models::kAdapterConfig})
        BOOST_TEST((io::read_text_file((scratch.path / "again" / file).string(), 1 << 24) ==
                    io::read_text_file((out / file).string(), 1 << 24)));
    }
  }
}

BOOST_AUTO_TEST_CASE(pairs_of_parts_of_a_fused_layer_stay_apart) {
  const TempFolder scratch;
  const FolderData base = folder_of("llama-tiny");
  base.write(scratch.path / "model");
  const Tensors pairs = llama_pairs();
  for (const bool root : {false, true}) {
    json config = kConfig;
    config["use_rslora"] = root;
    merged(base, pairs, root ? 5 / std::sqrt(2.0) : 2.5).write(scratch.path / "sum");
    const Tensor expected = logits_of(*models::load_model(scratch.path / "sum").model);
    const fs::path out = scratch.path / "lora";
    write_adapter(out, pairs, config);
    const models::LoadedModel loaded = models::load_model(out);  // on ../model
    BOOST_TEST(is_close(logits_of(*loaded.model), expected, 1e-12));
    BOOST_REQUIRE(loaded.notes.size() == 1u);
    BOOST_TEST(loaded.notes[0].starts_with("merged LoRA of rank 2 into 7 weights of "), loaded.notes[0]);
    const auto spec = models::inspect_model(out).spec;
    BOOST_TEST(is_close(logits_of(*models::init_from(out, *spec, {1, 0}, DType::f64).model), expected, 1e-12));
    const fs::path sum = scratch.path / (root ? "merged-root" : "merged");
    models::save_as_loaded(*loaded.model, loaded.format, sum);
    BOOST_TEST(same_bytes(logits_of(*models::load_model(sum).model), logits_of(*loaded.model)));

    const models::LoadedModel apart = models::load_model(out, {.merge_adapter = false});
    BOOST_TEST(models::lora_of(*apart.model)->rank == 2);
    BOOST_TEST(models::lora_of(*apart.model)->targets.size() == 7u);
    BOOST_TEST(is_close(logits_of(*apart.model), expected, 1e-12));
    fs::create_directories(scratch.path / "again");
    models::save_adapter(*apart.model, scratch.path / "again");
    const models::LoadedModel again = models::load_model(scratch.path / "again", {.base = scratch.path / "model"});
    BOOST_TEST(same_bytes(logits_of(*again.model), logits_of(*loaded.model)));
    const Tensors written = pairs_in(scratch.path / "again");  // the tensors that were read, no others
    BOOST_TEST(written.size() == pairs.size());
    for (const auto& [name, x] : pairs) BOOST_TEST(is_close(written.at(name), x, 0), name);
  }
}

// The names of the files choose layers, and parts of wqkv; the adapter names exactly these.
BOOST_AUTO_TEST_CASE(targets_are_named_as_in_the_files) {
  struct Named {
    std::string preset;
    std::vector<std::string> targets, layers;  // layers: on disk, of layer 0
    int64_t parameters;                        // of rank 2, of both layers
  };
  for (const Named& c : std::vector<Named>{
           {"llama-tiny", {"q_proj", "v_proj"}, {"self_attn.q_proj", "self_attn.v_proj"}, 2 * 2 * (64 + 48)},
           {"llama-tiny", {"k_proj", "wo"}, {"self_attn.k_proj", "self_attn.o_proj"}, 2 * 2 * (48 + 64)},
           {"llama-tiny",
            {"o_proj", "gate_proj", "up_proj", "down_proj"},
            {"mlp.down_proj", "mlp.gate_proj", "mlp.up_proj", "self_attn.o_proj"},
            2 * 2 * (64 + 3 * 96)},
           {"llama-tiny", {"*.self_attn.q_*"}, {"self_attn.q_proj"}, 2 * 2 * 64},
           {"gpt-neox-tiny",
            {"query_key_value", "dense"},
            {"attention.dense", "attention.query_key_value"},
            2 * 2 * (64 + 128)},
           {"gpt-neox-tiny",
            {"dense_h_to_4h", "dense_4h_to_h"},
            {"mlp.dense_4h_to_h", "mlp.dense_h_to_4h"},
            2 * 2 * 2 * 96},
           {"dcformer-tiny", {"wv", "w1"}, {"attention.wv", "feed_forward.w1"}, 2 * 2 * (64 + 96)}}) {
    BOOST_TEST_CONTEXT(c.preset << " " << c.targets[0]) {
      const TempFolder scratch;
      FolderData base = folder_of(c.preset);
      base.write(scratch.path / "model");
      const models::LoadedModel loaded = models::load_model(scratch.path / "model");
      const Tensor plain = logits_of(*loaded.model);
      const int64_t before = nn::count(*loaded.model);
      models::add_lora(*loaded.model, {.rank = 2, .alpha = 5, .targets = c.targets}, {7, 0});
      BOOST_TEST(nn::count(*loaded.model) - before == c.parameters);
      BOOST_TEST(same_bytes(logits_of(*loaded.model), plain));
      for (nn::NamedTensor& p : nn::parameters(*loaded.model))
        if (p.name.ends_with(kB)) p.value.copy_(normal_tensor(p.value.shape(), 0.3, child({4, 4}, p.name.c_str())));
      const fs::path out = scratch.path / "lora";
      fs::create_directories(out);
      models::save_adapter(*loaded.model, out, "../model");
      const json config = io::read_json_file((out / models::kAdapterConfig).string());
      BOOST_TEST(config["base_model_name_or_path"] == "../model");
      const Tensors pairs = pairs_in(out);
      std::set<std::string> layers;
      for (const auto& [name, x] : pairs)
        if (const size_t at = name.find("layers.0."); at != std::string::npos && name.ends_with(kA))
          layers.insert(name.substr(at + 9, name.size() - at - 9 - kA.size()));
      BOOST_TEST(layers == std::set<std::string>(c.layers.begin(), c.layers.end()), boost::test_tools::per_element());
      BOOST_TEST(config["target_modules"].size() == 2 * c.layers.size());

      if (c.preset == "dcformer-tiny") base.separate();
      merged(base, pairs, 2.5).write(scratch.path / "sum");
      const Tensor expected = logits_of(*models::load_model(scratch.path / "sum").model);
      BOOST_TEST(!is_close(expected, plain, 1e-3));
      BOOST_TEST(is_close(logits_of(*loaded.model), expected, 1e-12));
      BOOST_TEST(is_close(logits_of(*models::load_model(out).model), expected, 1e-12));
    }
  }
}

// modules_to_save of PEFT: complete weights in the file.
BOOST_AUTO_TEST_CASE(complete_weights_replace_those_of_the_base) {
  const TempFolder scratch;
  FolderData base = folder_of("llama-tiny");
  base.write(scratch.path / "model");
  const fs::path out = scratch.path / "lora";
  Tensors tensors = llama_pairs();
  json config = kConfig;
  FolderData sum = merged(base, tensors, 2.5);
  for (const std::string name : {"lm_head", "model.embed_tokens", "model.layers.1.input_layernorm"}) {
    const Tensor value = normal_tensor(base.tensors.at(name + ".weight").shape(), 1, child({8, 0}, name.c_str()));
    tensors[kPrefix + name + ".weight"] = sum.tensors.at(name + ".weight") = value;
    config["modules_to_save"].push_back(name.substr(name.rfind('.') + 1));
  }
  write_adapter(out, tensors, config);
  sum.write(scratch.path / "sum");
  const models::LoadedModel loaded = models::load_model(out);
  BOOST_TEST(is_close(logits_of(*loaded.model), logits_of(*models::load_model(scratch.path / "sum").model), 1e-12));
  BOOST_TEST(loaded.replaced ==
                 std::vector<std::string>({"tok_embeddings.weight", "layers.1.attention_norm.weight", "output.weight"}),
             boost::test_tools::per_element());
  BOOST_TEST(loaded.notes.back().find("output.weight are those of ") != std::string::npos, loaded.notes.back());

  const auto rejects = [&](const std::function<void(Tensors&, json&)>& change, const std::string& words) {
    Tensors changed = tensors;
    json changed_config = config;
    change(changed, changed_config);
    write_adapter(out, changed, changed_config);
    BRAID_CHECK_FAILS(models::load_model(out), ErrorKind::input, words);
  };
  rejects([](Tensors& t, json&) { t.erase(kPrefix + "lm_head.weight"); },
          "no weight of lm_head, which modules_to_save names");
  rejects([](Tensors&, json& c) { c["modules_to_save"] = "score"; }, "no weight of score");
  rejects([](Tensors&, json& c) { c["modules_to_save"] = {1}; }, "bad modules_to_save in ");
  rejects(
      [](Tensors& t, json&) {
        t[kPrefix + "lm_head.weight"] = zeros({260, 32});
      },
      "has shape (260, 32), expected (258, 32)");
  rejects(
      [](Tensors& t, json&) {
        t[kPrefix + "model.layers.0.self_attn.k_proj.weight"] = zeros({32, 32});
      },
      "q_proj.weight is missing, beside which the model has one weight");
  rejects([](Tensors& t, json&) { t[kPrefix + "score.weight"] = zeros({2, 32}); }, "is none of its weights");
  base.replace("\"tie_word_embeddings\": false", "\"tie_word_embeddings\": true");
  base.tensors.erase("lm_head.weight");
  base.write(scratch.path / "model");
  rejects(
      [](Tensors& t, json& c) {
        t.erase(kPrefix + "lm_head.weight");
        c["modules_to_save"] = {"embed_tokens", "input_layernorm"};
      },
      "embed_tokens.weight is also the output projection of the model (tie_word_embeddings)");
}

BOOST_AUTO_TEST_CASE(the_base_is_named_or_given) {
  const TempFolder scratch;
  const fs::path model = scratch.path / "model", out = scratch.path / "lora";
  folder_of("llama-tiny").write(model);
  const auto fails = [&](ErrorKind kind, const fs::path& folder, const fs::path& base, const std::string& words) {
    BRAID_CHECK_FAILS(models::load_model(folder, {.base = base}), kind, words);
  };
  for (const json& name : {json(), json("meta/llama"), json(model.string()), json("../model")}) {
    json config = kConfig;
    config["base_model_name_or_path"] = name;
    write_adapter(out, llama_pairs(), config);
    BOOST_TEST(models::base_folder(out, model) == model);
    if (name.is_null()) fails(ErrorKind::input, out, {}, "LoRA for a model that is in another folder; name");
    if (name == "meta/llama")
      fails(ErrorKind::input, out, {},
            "; Braid downloads no models: hf download meta/llama --local-dir llama does, then name that folder");
    if (name == "../model" || name == model.string()) BOOST_TEST(fs::equivalent(models::base_folder(out), model));
  }
  fails(ErrorKind::setting, model, model, "has a model of its own");
  fails(ErrorKind::input, out, out, "has LoRA of its own");
  fails(ErrorKind::input, out, scratch.path, "no model in");
  fs::remove(out / models::kAdapterFile);
  io::write_file((out / "adapter_model.bin").string(), "x");
  fails(ErrorKind::input, out, {}, "'adapter_model.safetensors'");
}

BOOST_AUTO_TEST_CASE(what_is_not_implemented_is_named) {
  const TempFolder scratch;
  folder_of("llama-tiny").write(scratch.path / "model");
  const fs::path out = scratch.path / "lora";
  const Tensors pairs = llama_pairs();
  for (const auto& [key, value] : std::map<std::string, json>{{"use_dora", true},
                                                              {"fan_in_fan_out", true},
                                                              {"bias", "all"},
                                                              {"rank_pattern", {{"q_proj", 4}}},
                                                              {"alpha_pattern", {{"q_proj", 4}}},
                                                              {"layer_replication", {{0, 2}}},
                                                              {"trainable_token_indices", {1}},
                                                              {"lora_bias", true},
                                                              {"init_lora_weights", "pissa"},
                                                              {"use_rslora", "yes"},
                                                              {"lora_alpha", "16"},
                                                              {"r", 0},
                                                              {"peft_type", "LOHA"}}) {
    json config = kConfig;
    config[key] = value;
    write_adapter(out, pairs, config);
    BRAID_CHECK_FAILS(models::load_model(out), ErrorKind::input, "bad " + key + " in", value.dump());
  }
  json config = kConfig;  // what says nothing
  config.update({{"use_dora", false},
                 {"rank_pattern", json::object()},
                 {"modules_to_save", nullptr},
                 {"bias", "none"},
                 {"init_lora_weights", true},
                 {"lora_dropout", 0.1},
                 {"qalora_group_size", 16}});
  write_adapter(out, pairs, config);
  models::load_model(out);

  const auto rejects = [&](const std::function<void(Tensors&)>& change, const std::string& words) {
    Tensors changed = pairs;
    change(changed);
    write_adapter(out, changed);
    BRAID_CHECK_FAILS(models::load_model(out), ErrorKind::input, words);
  };
  const std::string q = kPrefix + "model.layers.0.self_attn.q_proj";
  rejects([&](Tensors& t) { t.erase(q + kB); }, "self_attn.q_proj has only one of lora_A and lora_B");
  rejects([&](Tensors& t) { t[q + kB] = zeros({2, 32}, DType::f64); }, "has shape (2, 32), expected (32, 2)");
  rejects([&](Tensors& t) { t[kPrefix + "lm_head" + kA] = zeros({2, 32}); }, "belongs to no linear layer");
  rejects([&](Tensors& t) { t[q + kA].fill(NAN); }, "NaN");
  rejects([&](Tensors& t) { t.clear(); }, "no pair of lora_A and lora_B");
}

BOOST_AUTO_TEST_SUITE_END()
