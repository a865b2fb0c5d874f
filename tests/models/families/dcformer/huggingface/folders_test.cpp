// Folders of LLaMA, Mistral, Qwen, OLMo2, Gemma and GPT-NeoX in and out: every rejection, byte-equal round trips,
// types, shards, forms of old and foreign programs, and Compose in them.
#include <boost/test/unit_test.hpp>

#include "braid/models/cost/size.h"
#include "braid/models/folders/folder.h"
#include "braid/models/registry.h"
#include "braid/nn/module.h"
#include "tests/models/families/dcformer/huggingface/support.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(huggingface_folders)

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

std::string error_of(const fs::path& folder) {
  try {
    models::load_model(folder);
  } catch (const Error& error) {
    return error.kind() == ErrorKind::input ? error.what() : std::string("another kind: ") + error.what();
  }
  return "";
}

void rejects(const FolderData& data, const std::vector<std::string>& words) {
  const TempFolder scratch;
  data.write(scratch.path / "in");
  const std::string error = error_of(scratch.path / "in");
  for (const std::string& word : words)
    BOOST_TEST(error.find(word) != std::string::npos, "'" << word << "' is not in '" << error << "'");
  BOOST_TEST(error.find('\n') == std::string::npos);
}

models::LoadedModel written(const FolderData& data, const fs::path& folder,
                            const models::LoadOptions& options = {.dtype = DType::f64}) {
  data.write(folder);
  return models::load_model(folder, options);
}

std::string bytes(const fs::path& file) { return io::read_text_file(file.string(), 1 << 24); }

}  // namespace

BOOST_AUTO_TEST_CASE(every_rejection) {
  const std::string file = kHuggingFace + "rejected.json";
  int cases = 0;
  for (const json& item : json::parse(io::read_text_file(file, 1 << 20))) {
    BOOST_TEST_CONTEXT(item["name"]) {
      FolderData data = huggingface_folder(item["base"]);
      set_keys(data, item.value("set", json::object()));
      remove_keys(data, item.value("remove", std::vector<std::string>()));
      for (const std::string& name : item.value("drop_tensors", std::vector<std::string>())) data.tensors.erase(name);
      const json added = item.value("add_tensors", json::object());
      for (const auto& [name, shape] : added.items()) {
        const auto dims = shape.get<std::vector<int64_t>>();
        data.tensors[name] = full(dims.size() == 1 ? Shape{dims[0]} : Shape{dims.at(0), dims.at(1)}, 0.25);
      }
      rejects(data, item["expect"].get<std::vector<std::string>>());
      ++cases;
    }
  }
  BOOST_TEST(cases == 22);
}

BOOST_AUTO_TEST_CASE(more_rejections) {
  const auto with = [](const char* base, const json& keys) {
    FolderData data = huggingface_folder(base);
    set_keys(data, keys);
    return data;
  };
  rejects(with("llama_mha_old", {{"sliding_window", 16}}), {"sliding_window"});
  rejects(with("llama_mha_old", {{"layer_types", {"full_attention", "sliding_attention"}}}), {"sliding_attention"});
  rejects(with("llama_mha_old", {{"rope_scaling", {{"type", "linear"}, {"factor", 2}, {"mscale", 2}}}}), {"mscale"});
  rejects(with("llama_mha_old", {{"rope_scaling", 2}}), {"rope_scaling", "an object"});
  rejects(with("llama_mha_old", {{"rope_scaling", {{"type", "linear"}, {"rope_type", "llama3"}, {"factor", 2}}}}),
          {"rope_type", "contradict"});
  rejects(with("llama_rope_llama3", {{"rope_scaling", {{"type", "linear"}, {"factor", 2}}}}),
          {"rope_parameters and rope_scaling"});
  rejects(with("llama_rope_llama3", {{"rope_parameters", {{"rope_type", "llama3"}, {"factor", 4}}}}),
          {"low_freq_factor"});
  rejects(with("llama_mha_old", {{"is_encoder_decoder", true}}), {"is_encoder_decoder"});
  rejects(with("llama_mha_old", {{"is_causal", false}}), {"is_causal", "only decoders"});
  rejects(with("llama_mha_old", {{"hidden_size", "24"}}), {"hidden_size"});
  rejects(with("llama_mha_old", {{"vocab_size", 1e300}}), {"vocab_size"});
  rejects(with("llama_mha_old", {{"profile", {{"rnak", 2}}}}), {"profile.rnak", "did you mean"});
  rejects(with("gptneox_parallel", {{"n_kv_head", 1}}), {"n_kv_head"});
  for (const char* type : {"qwen2_moe", "qwen3_moe", "gemma", "gemma3", "olmo", "olmo3", "phi3"})
    rejects(with("llama_mha_old", {{"model_type", type}}), {type});

  // The base model alone, and a folder of changes to a model.
  FolderData bare = huggingface_folder("llama_mha_old"), tied = huggingface_folder("llama_gqa_tied");
  for (FolderData* data : {&bare, &tied}) {
    std::map<std::string, Tensor> tensors;
    for (const auto& [name, x] : data->tensors)
      if (name.starts_with("model.")) tensors[name.substr(6)] = x;
    data->tensors = tensors;
  }
  rejects(bare, {"LlamaModel", "lm_head.weight is missing"});
  const TempFolder scratch;
  const models::LoadedModel loaded = written(tied, scratch.path / "tied");
  BOOST_REQUIRE(loaded.notes.size() == 1u);
  BOOST_TEST(loaded.notes[0].find("LlamaModel") != std::string::npos);
  models::save_as_loaded(*loaded.model, loaded.format, scratch.path / "again");
  BOOST_TEST((bytes(scratch.path / "tied/model.safetensors") == bytes(scratch.path / "again/model.safetensors")));
  fs::create_directories(scratch.path / "lora");
  io::write_file(scratch / "lora/adapter_config.json", "{}");
  BOOST_TEST(error_of(scratch.path / "lora").find("adapter_config.json") != std::string::npos);
  // Only a pickle: the command that converts it.
  fs::create_directories(scratch.path / "pickle");
  io::write_file(scratch / "pickle/config.json", bare.config);
  io::write_file(scratch / "pickle/pytorch_model.bin", "x");
  BOOST_TEST(error_of(scratch.path / "pickle").find("python3 -c \"import glob, torch") != std::string::npos);
}

// Folders that transformers wrote come out as they were, to the byte, when nothing is changed; old tables are left out.
BOOST_AUTO_TEST_CASE(round_trips_are_equal_to_the_byte) {
  for (const char* name : {"llama_mha_old", "llama_gqa_tied", "llama_bias_headdim", "llama_bf16", "llama_sharded",
                           "gptneox_parallel", "gptneox_sequential", "mistral_window", "qwen2_window", "qwen3_tied",
                           "olmo2_gqa", "gemma2_softcaps", "gemma3_windows"}) {
    BOOST_TEST_CONTEXT(name) {
      const TempFolder scratch;
      const models::LoadedModel loaded = models::load_model(kHuggingFace + name);
      BOOST_TEST(loaded.notes.empty());
      models::save_as_loaded(*loaded.model, loaded.format, scratch.path / "out");
      int files = 0;
      for (const auto& entry : fs::directory_iterator(kHuggingFace + name)) {
        const std::string file = entry.path().filename().string();
        if (file == "golden.safetensors") continue;
        ++files;
        BOOST_TEST((bytes(entry.path()) == bytes(scratch.path / "out" / file)), file);
      }
      BOOST_TEST(files >= 3);
    }
  }
  const TempFolder scratch;
  const models::LoadedModel loaded = models::load_model(kHuggingFace + "gptneox_pythia_old");
  models::save_as_loaded(*loaded.model, loaded.format, scratch.path / "out");
  const FolderData now = read_folder(scratch.path / "out");
  const io::TensorFiles then(kHuggingFace + "gptneox_pythia_old");
  size_t kept = 0;
  for (const io::TensorInfo& info : then.tensors()) {
    if (!now.tensors.contains(info.name)) continue;
    ++kept;
    BOOST_TEST(test::same_bytes(then.load(info.name), now.tensors.at(info.name)), info.name);
  }
  BOOST_TEST(kept == now.tensors.size());
  BOOST_TEST(kept == 28u);
}

BOOST_AUTO_TEST_CASE(other_types_and_files) {
  const TempFolder scratch;
  const models::LoadedModel loaded = models::load_model(kHuggingFace + "llama_gqa_tied");
  models::save_as_loaded(*loaded.model, loaded.format, scratch.path / "half", DType::bf16, 10000);
  const FolderData was = huggingface_folder("llama_gqa_tied"), half = read_folder(scratch.path / "half");
  for (const auto& [name, x] : was.tensors)
    BOOST_TEST(test::same_bytes(x.to(DType::bf16), half.tensors.at(name)), name);
  // The keys of transformers 4, which 5 reads too; nothing else has changed.
  const json config = json::parse(half.config), before = json::parse(was.config);
  BOOST_TEST(config["torch_dtype"] == "bfloat16");
  BOOST_TEST(config["rope_theta"] == 1e6);
  BOOST_TEST((!config.contains("dtype") && !config.contains("rope_parameters")));
  for (const auto& [key, value] : before.items())
    if (key != "dtype" && key != "rope_parameters") BOOST_TEST((config[key] == value), key);
  int shards = 0;
  for (const auto& entry : fs::directory_iterator(scratch.path / "half")) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("model-")) continue;
    ++shards;
    BOOST_TEST(entry.file_size() < 12000u);
  }
  BOOST_TEST(shards == 3);
  BOOST_TEST(fs::exists(scratch.path / "half/model-00001-of-00003.safetensors"));
  const models::LoadedModel again = models::load_model(scratch.path / "half");
  models::save_as_loaded(*again.model, again.format, scratch.path / "one", DType::bf16, 0);
  for (const auto& [name, x] : read_folder(scratch.path / "one").tensors)
    BOOST_TEST(test::same_bytes(x, half.tensors.at(name)), name);
  BOOST_TEST(fs::exists(scratch.path / "one/model.safetensors"));
}

BOOST_AUTO_TEST_CASE(both_generations_of_keys_say_the_same) {
  FolderData old = huggingface_folder("llama_mha_old"), now = huggingface_folder("llama_mha_old");
  remove_keys(now, {"rope_theta", "rope_scaling", "torch_dtype"});
  set_keys(now, {{"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 10000.0}}}, {"dtype", "float32"}});
  BOOST_TEST((models::read_config(old.config, "a") == models::read_config(now.config, "b")));
  set_keys(old, {{"rope_scaling", {{"type", "linear"}, {"factor", 2.5}}}});
  set_keys(now, {{"rope_parameters", {{"rope_type", "linear"}, {"rope_theta", 10000}, {"factor", 2.5}}}});
  BOOST_TEST((models::read_config(old.config, "a") == models::read_config(now.config, "b")));
  BOOST_TEST((models::read_config(old.config, "a").rope_scaling.factor == 2.5));

  FolderData neox = huggingface_folder("gptneox_pythia_old"), later = neox;
  remove_keys(later, {"rotary_pct", "rotary_emb_base"});
  set_keys(later,
           {{"rope_parameters", {{"rope_type", "default"}, {"partial_rotary_factor", 0.25}, {"rope_theta", 10000}}}});
  BOOST_TEST((models::read_config(neox.config, "a") == models::read_config(later.config, "b")));
  // Defaults of transformers for keys that are not there.
  const models::DcformerConfig llama = models::read_config(R"({"model_type": "llama"})", "c");
  BOOST_TEST(
      (llama.dim == 4096 && llama.intermediate_size == 11008 && llama.norm_eps == 1e-6 && llama.n_kv_head == 32));
  BOOST_TEST((!llama.attention_bias && !llama.tie_word_embeddings && llama.rotary_pct == 1 && !llama.use_dcmha));
  const models::DcformerConfig plain = models::read_config(R"({"model_type": "gpt_neox"})", "c");
  BOOST_TEST((plain.dim == 6144 && plain.n_head == 64 && plain.rotary_pct == 0.25 && plain.use_parallel_residual));
  BOOST_TEST((plain.attention_bias && plain.mlp_bias && plain.norm == models::NormKind::layer));
  const models::DcformerConfig mistral =
      models::read_config(R"({"model_type": "mistral", "sliding_window": null})", "c");
  BOOST_TEST((mistral.n_kv_head == 8 && mistral.intermediate_size == 14336 && mistral.block_size == 131072));
  BOOST_TEST((mistral.bos_token_id == 1 && mistral.eos_token_id == 2 && !mistral.attention_bias));
  const models::DcformerConfig qwen2 = models::read_config(R"({"model_type": "qwen2"})", "c");
  BOOST_TEST((qwen2.vocab_size == 151936 && qwen2.intermediate_size == 22016 && qwen2.block_size == 32768));
  BOOST_TEST((qwen2.n_kv_head == 32 && qwen2.head_dim == 128 && qwen2.qkv_bias && !qwen2.attention_bias));
  BOOST_TEST((!qwen2.use_qk_norm && qwen2.window_size == 0));
  const models::DcformerConfig qwen3 =
      models::read_config(R"({"model_type": "qwen3", "hidden_size": 2048, "rms_norm_eps": 1e-5})", "c");
  BOOST_TEST((qwen3.head_dim == 128 && qwen3.dim == 2048 && qwen3.use_qk_norm && !qwen3.qkv_bias));
  BOOST_TEST((qwen3.norm_eps == 1e-5 && qwen3.profile.qk_norm_eps == 1e-5));
}

BOOST_AUTO_TEST_CASE(written_configurations_read_back) {
  for (const char* preset :
       {"llama-tiny", "smollm2-135m", "llama-3.2-1b", "llama-3-8b", "gpt-neox-tiny", "gpt-neox-1.4b", "mistral-tiny",
        "mistral-7b", "qwen2-tiny", "qwen2.5-0.5b", "qwen3-tiny", "qwen3-0.6b", "olmo2-tiny", "olmo2-1b", "gemma2-tiny",
        "gemma2-2b", "gemma3-tiny", "gemma3-270m", "gemma3-1b"}) {
    for (const bool composed : {false, true}) {
      models::SettingTexts keys;
      if (composed) keys = {{"use_dcmha", "true"}, {"profile.key_side", "false"}, {"use_qk_norm", "true"}};
      BOOST_TEST_CONTEXT(preset << (composed ? " composed" : "")) {
        const auto spec = models::configure_model(preset, keys);
        const std::string text = spec->config_json();
        BOOST_TEST(models::differing_settings(*spec, *models::read_model_spec(text, "c")).empty(), text);
        BOOST_TEST((text.find("use_dcmha") != std::string::npos) == composed);
        BOOST_TEST((text.find("rope_parameters") == std::string::npos));
      }
    }
  }
  BOOST_TEST(models::model_size(*models::configure_model("llama-3-8b", {})).parameters == 8030261248);
  BOOST_TEST(models::model_size(*models::configure_model("llama-3.2-1b", {})).parameters == 1235814400);
  BOOST_TEST(models::model_size(*models::configure_model("smollm2-135m", {})).parameters == 134515008);
  BOOST_TEST(models::model_size(*models::configure_model("gpt-neox-6.9b", {})).parameters == 6857302016);
  BOOST_TEST(models::model_size(*models::configure_model("mistral-7b", {})).parameters == 7241732096);
  BOOST_TEST(models::model_size(*models::configure_model("qwen2.5-0.5b", {})).parameters == 494032768);
  BOOST_TEST(models::model_size(*models::configure_model("qwen3-0.6b", {})).parameters == 596049920);
  BOOST_TEST(models::model_size(*models::configure_model("olmo2-1b", {})).parameters == 1484916736);
  BOOST_TEST(models::model_size(*models::configure_model("gemma2-2b", {})).parameters == 2614341888);
  BOOST_TEST(models::model_size(*models::configure_model("gemma3-270m", {})).parameters == 268098176);
  BOOST_TEST(models::model_size(*models::configure_model("gemma3-1b", {})).parameters == 999885952);
}

// A model that its folder could not hold is not made: its run would end at the first checkpoint, or at a resume.
BOOST_AUTO_TEST_CASE(settings_without_a_place_in_the_folder_are_rejected) {
  using Row = std::array<const char*, 4>;
  for (const Row& r :
       {Row{"llama-tiny", "norm_place", "both", "pre"}, Row{"gpt-neox-tiny", "norm_place", "post", "pre"},
        Row{"olmo2-tiny", "norm_place", "both", "post"}, Row{"gemma3-tiny", "residual", "mudd", "plain"},
        Row{"llama-tiny", "residual", "mhc", "plain"}, Row{"qwen3-tiny", "residual", "attnres", "plain"},
        Row{"llama-tiny", "rotary_pct", "0.5", "1"}, Row{"qwen2-tiny", "torch_dtype", "float16", "null"}})
    BRAID_CHECK_FAILS(models::configure_model(r[0], {{r[1], r[2]}}), ErrorKind::setting,
                      str("bad ", r[1], ": expected ", r[3], " in a model of type "));
  for (const Row& r : {Row{"olmo2-tiny", "norm_place", "pre"}, Row{"gemma2-tiny", "norm_place", "post"},
                       Row{"gpt-neox-tiny", "rotary_pct", "0.5"}}) {
    const auto spec = models::configure_model(r[0], {{r[1], r[2]}});
    BOOST_TEST(models::differing_settings(*spec, *models::read_model_spec(spec->config_json(), "c")).empty(), r[0]);
    std::set<std::string> names;
    for (const nn::NamedTensor& p : nn::parameters(*spec->make_shape_only()))
      for (const auto& t : spec->folder().stored(p.name, p.value.shape()).tensors)
        BOOST_TEST(names.insert(t.name).second, t.name);
  }
}

// Compose in a loaded model: its keys and tensors are kept beside those of transformers, and the model is the same
// again. With the start that changes nothing, so are the logits of the plain folder.
BOOST_AUTO_TEST_CASE(compose_is_kept_in_folders) {
  for (const char* name : {"llama_gqa_tied", "gptneox_parallel", "mistral_window", "qwen2_window", "qwen3_tied",
                           "olmo2_gqa", "gemma2_softcaps", "gemma3_windows"}) {
    BOOST_TEST_CONTEXT(name) {
      const TempFolder scratch;
      const auto spec = models::load_model(kHuggingFace + name, {.dtype = DType::f64}).model->spec();
      const auto model = spec->with({{"use_dcmha", "true"}, {"compose_init", "published"}})->make({.seed = 3});
      fs::create_directories(scratch.path / "one");
      models::save_model(*model, nullptr, scratch.path / "one");
      const FolderData data = read_folder(scratch.path / "one");
      BOOST_TEST(json::parse(data.config)["use_dcmha"] == true);
      int composed = 0;
      for (const auto& [tensor, x] : data.tensors)
        composed += tensor.find("attn.dyn_w_proj.") != std::string::npos ||
                    tensor.find("attention.dyn_w_proj.") != std::string::npos;
      BOOST_TEST(composed == 3 * json::parse(data.config)["num_hidden_layers"].get<int>());
      const models::LoadedModel loaded = models::load_model(scratch.path / "one");
      BOOST_TEST(is_close(logits_of(*loaded.model), logits_of(*model), 0));
      models::save_as_loaded(*loaded.model, loaded.format, scratch.path / "two");
      BOOST_TEST((bytes(scratch.path / "one/model.safetensors") == bytes(scratch.path / "two/model.safetensors")));
    }
  }
}

// Which layers are local: read, written, read again, and what the folders cannot say.
BOOST_AUTO_TEST_CASE(windows_of_layers) {
  using Windows = std::vector<int64_t>;
  const std::string window = "sliding_attention", full = "full_attention";
  struct Case {
    const char* type;
    json keys;
    Windows windows;
  };
  const std::vector<Case> cases = {
      {"mistral", {}, {4096, 4096, 4096}},
      {"mistral", {{"sliding_window", 5}}, {5, 5, 5}},
      {"mistral", {{"sliding_window", nullptr}, {"layer_types", {full, full, full}}}, {0, 0, 0}},
      {"qwen2", {{"sliding_window", 5}, {"max_window_layers", 0}}, {0, 0, 0}},
      {"qwen2", {{"use_sliding_window", true}}, {0, 0, 0}},
      {"qwen2", {{"use_sliding_window", true}, {"max_window_layers", 2}}, {0, 0, 4096}},
      {"qwen2", {{"use_sliding_window", true}, {"sliding_window", nullptr}, {"max_window_layers", 0}}, {0, 0, 0}},
      {"qwen3", {{"use_sliding_window", true}, {"sliding_window", 5}, {"max_window_layers", 0}}, {5, 5, 5}},
      {"qwen3",
       {{"use_sliding_window", true}, {"sliding_window", 5}, {"layer_types", {window, full, window}}},
       {5, 0, 5}},
      {"gemma2", {}, {4096, 0, 4096}},
      {"gemma2", {{"sliding_window", 5}, {"layer_types", {full, full, window}}}, {0, 0, 5}},
      {"gemma3_text", {{"sliding_window", 5}}, {5, 5, 5}},
      {"gemma3_text", {{"sliding_window", 5}, {"sliding_window_pattern", 3}}, {5, 5, 0}},
      {"gemma3_text", {{"layer_types", {full, full, full}}}, {0, 0, 0}}};
  for (const auto& [type, keys, windows] : cases) {
    json object = {{"model_type", type}, {"num_hidden_layers", 3}};
    if (!keys.is_null()) object.update(keys);
    BOOST_TEST_CONTEXT(object.dump()) {
      const models::DcformerConfig c = models::read_config(object.dump(), "c");
      BOOST_TEST(c.layer_windows == windows, boost::test_tools::per_element());
      const std::string text = models::write_config(c);
      BOOST_TEST(text.find("profile.layer_windows") == std::string::npos);
      BOOST_TEST((models::read_config(text, "c") == c), text);
      // Rewriting changes them in the same file.
      if (type == std::string("mistral")) continue;
      const models::DcformerConfig other = models::configure(c, {{"profile.layer_windows", "9,null,null"}});
      BOOST_TEST((models::read_config(models::rewrite_config(object.dump(), "c", other), "c") == other));
    }
  }

  const auto fails = [](const char* type, json keys, const std::string& words) {
    keys["model_type"] = type, keys["num_hidden_layers"] = 2;
    BRAID_CHECK_FAILS(models::read_config(keys.dump(), "c"), ErrorKind::input, words);
  };
  fails("mistral", {{"use_sliding_window", false}}, "use_sliding_window");
  fails("mistral", {{"layer_types", {full, full}}}, "bad value for layer_types");
  fails("mistral", {{"sliding_window", 0}}, "sliding_window");
  fails("qwen2", {{"use_sliding_window", 1}}, "use_sliding_window");
  fails("qwen2", {{"layer_types", {full, window}}}, "without a sliding_window in use");
  fails("qwen2", {{"use_sliding_window", true}, {"layer_types", {window}}}, "num_hidden_layers = 2");
  fails("qwen3", {{"layer_types", {full, "chunked_attention"}}}, "chunked_attention");
  fails("qwen3", {{"use_sliding_window", true}, {"max_window_layers", -1}}, "max_window_layers");
  fails("gemma2", {{"sliding_window", nullptr}}, "without a sliding_window in use");
  fails("gemma3_text", {{"sliding_window_pattern", 0}}, "sliding_window_pattern");
  fails("olmo2", {{"sliding_window", 8}}, "sliding_window");
  const auto cannot_be = [](const char* preset, const models::SettingTexts& keys, const std::string& words) {
    BRAID_CHECK_FAILS(models::configure_model(preset, keys), ErrorKind::setting, words);
  };
  cannot_be("mistral-tiny", {{"window_type", "LG"}}, "the same in all layers of a model of type mistral");
  cannot_be("qwen3-tiny", {{"profile.layer_windows", "8,null,9,null"}}, "one size in all local layers");
  cannot_be("qwen3-tiny", {{"norm_eps", "1e-5"}}, "bad profile.qk_norm_eps: expected norm_eps = 1e-05");
  const auto mixed = models::configure_model("qwen3-tiny", {{"window_size", "8"}, {"window_type", "LGLL"}});
  BOOST_TEST(models::differing_settings(*mixed, *models::read_model_spec(mixed->config_json(), "c")).empty());
}

BOOST_AUTO_TEST_CASE(forms_of_other_programs) {
  const TempFolder scratch;
  const Tensor logits = logits_of(*models::load_model(kHuggingFace + "llama_gqa_tied", {.dtype = DType::f64}).model);
  // The tied head stored all the same, tables of old versions, a list of ends, code and unknown keys.
  FolderData data = huggingface_folder("llama_gqa_tied");
  data.tensors["lm_head.weight"] = data.tensors.at("model.embed_tokens.weight").clone();
  data.tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = zeros({3});
  set_keys(data, {{"eos_token_id", {2, 3}},
                  {"auto_map", {{"AutoModelForCausalLM", "code.Model"}}},
                  {"attention_dropout", 0.1},
                  {"unsloth_version", "1"}});
  const models::LoadedModel loaded = written(data, scratch.path / "in");
  BOOST_TEST(is_close(logits_of(*loaded.model), logits, 0));
  BOOST_TEST(loaded.notes.size() == 3u);
  for (const std::string word : {"auto_map", "drops no probabilities of attention", "unsloth_version"})
    BOOST_TEST(std::ranges::any_of(loaded.notes, [&](const std::string& n) { return n.find(word) != n.npos; }), word);
  models::save_as_loaded(*loaded.model, loaded.format, scratch.path / "out", DType::f64);
  const json saved = json::parse(read_folder(scratch.path / "out").config);
  BOOST_TEST((saved["eos_token_id"] == json({2, 3}) && saved["unsloth_version"] == "1"));
  BOOST_TEST(read_folder(scratch.path / "out").tensors.size() == data.tensors.size() - 2);
  BOOST_TEST(is_close(logits_of(*models::load_model(scratch.path / "out").model), logits, 0));

  FolderData mistral = huggingface_folder("llama_gqa_tied");
  set_keys(mistral,
           {{"model_type", "mistral"}, {"sliding_window", nullptr}, {"architectures", {"MistralForCausalLM"}}});
  remove_keys(mistral, {"attention_bias", "mlp_bias"});
  const models::LoadedModel same = written(mistral, scratch.path / "mistral");
  BOOST_TEST(is_close(logits_of(*same.model), logits, 0));
  BOOST_TEST(same.model->spec()->model_type() == "mistral");
  BOOST_TEST(same.notes.empty());
}

BOOST_AUTO_TEST_SUITE_END()
