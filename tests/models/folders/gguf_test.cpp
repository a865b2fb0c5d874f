// Models as GGUF files and back.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <fstream>
#include <iterator>

#include "braid/autograd/int8.h"
#include "braid/models/folders/gguf/architecture.h"
#include "braid/models/folders/gguf/gguf_folder.h"
#include "braid/models/inference/generate.h"
#include "braid/models/registry.h"
#include "tests/models/folders/support.h"
#include "tests/support/random.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;
namespace fs = std::filesystem;

BOOST_AUTO_TEST_SUITE(gguf_folders)

namespace {

const fs::path kFolders = fs::path(source_dir()) / "tests/golden/hf";

std::unique_ptr<models::Model> made(const std::string& preset, const models::SettingTexts& settings) {
  return models::configure_model(preset, settings)->make({1, 0});
}

// The model in `path` again, through a file of this type.
models::LoadedModel through_file(const models::Model& model, const std::string& type, const fs::path& path,
                                 const models::LoadOptions& options = {}) {
  models::save_gguf(model, nullptr, type, path);
  return models::load_model(path, options);
}

}  // namespace

// Settings, names and the order of rows: the same bits as from the folder.
BOOST_AUTO_TEST_CASE(published_folders_survive_a_file) {
  const TempFolder scratch;
  for (const char* name : {"llama_gqa_tied", "llama_bias_headdim", "llama_rope_llama3", "llama_rope_linear_old",
                           "llama_mha_old", "llama_bf16", "qwen3_tied", "olmo2_gqa"}) {
    BOOST_TEST_CONTEXT(name) {
      const models::LoadedModel folder = models::load_model(kFolders / name, {.dtype = DType::f32});
      const models::LoadedModel file = through_file(*folder.model, "f32", scratch.path / "model.gguf");
      BOOST_TEST(same_bytes(logits_of(*file.model), logits_of(*folder.model)));
      const models::ModelFolder seen = models::inspect_model(scratch.path / "model.gguf");
      BOOST_TEST(seen.format->describe().find("in the file F32") != std::string::npos);
      BOOST_TEST(seen.format->tensors.size() == folder.format.tensors.size());
    }
  }
}

// A folder's tensors under the names, in the order and with the values that files have by README.md.
std::vector<io::GgufSource> as_published(const fs::path& folder, bool gemma) {
  const std::map<std::string, std::string> names = {{"embed_tokens", "token_embd"},
                                                    {"norm", "output_norm"},
                                                    {"input_layernorm", "attn_norm"},
                                                    {"self_attn.q_proj", "attn_q"},
                                                    {"self_attn.k_proj", "attn_k"},
                                                    {"self_attn.v_proj", "attn_v"},
                                                    {"self_attn.o_proj", "attn_output"},
                                                    {"self_attn.q_norm", "attn_q_norm"},
                                                    {"self_attn.k_norm", "attn_k_norm"},
                                                    {"post_attention_layernorm", "post_attention_norm"},
                                                    {"mlp.gate_proj", "ffn_gate"},
                                                    {"mlp.up_proj", "ffn_up"},
                                                    {"mlp.down_proj", "ffn_down"},
                                                    {"post_feedforward_layernorm", "post_ffw_norm"},
                                                    {"pre_feedforward_layernorm", "ffn_norm"}};
  std::vector<io::GgufSource> sources;
  for (const auto& [name, tensor] : read_folder(folder).tensors) {
    std::string module = name.substr(0, name.size() - 7), prefix;
    if (module == "lm_head") {
      sources.push_back({"output.weight", "F32", tensor.shape(), [x = tensor] { return x; }});
      continue;
    }
    module = module.substr(6);
    if (module.starts_with("layers.")) {
      const size_t dot = module.find('.', 7);
      prefix = "blk." + module.substr(7, dot - 6);
      module = module.substr(dot + 1);
    }
    sources.push_back({prefix + names.at(module) + ".weight", "F32", tensor.shape(), [=, x = tensor] {
                         std::vector<float> values = x.to_vector<float>();
                         if (gemma && x.rank() == 1)
                           for (float& value : values) value += 1;
                         return from_vector(values, x.shape());
                       }});
  }
  return sources;
}

// Norms in other places and with an offset, windows, bounded scores: the bits of the folder.
BOOST_AUTO_TEST_CASE(published_files_of_gemma_and_olmo2_are_read) {
  struct Case {
    const char *folder, *architecture;
    int64_t layers, kv_heads;
    std::vector<std::pair<std::string, io::GgufValue>> metadata;  // beside the sizes, which the folders share
    models::SettingTexts settings;                                // of the folder, for what no file says
  };
  const std::vector<int64_t> local = {1, 0, 1};
  const std::vector<Case> cases = {
      {"olmo2_gqa", "olmo2", 2, 2, {{"rope.freq_base", 500000.0}}, {}},
      {"gemma2_softcaps",
       "gemma2",
       2,
       2,
       {{"attention.sliding_window", int64_t{6}}, {"attn_logit_softcapping", 2.0}, {"final_logit_softcapping", 4.0}},
       {{"score_dim", "8"}}},
      {"gemma3_windows",
       "gemma3",
       3,
       1,
       {{"attention.sliding_window", int64_t{6}},
        {"attention.sliding_window_pattern", int64_t{2}},
        {"rope.freq_base", 1e6},
        {"rope.scaling.type", std::string("linear")},
        {"rope.scaling.factor", 8.0}},
       {{"score_dim", "8"}}},
      {"gemma3_windows",
       "gemma3",
       3,
       1,
       {{"attention.sliding_window", int64_t{6}},
        {"attention.sliding_window_pattern", local},
        {"rope.freq_base", 1e6},
        {"rope.scaling.type", std::string("linear")},
        {"rope.scaling.factor", 8.0}},
       {{"score_dim", "8"}}},
  };
  for (const Case& c : cases) {
    BOOST_TEST_CONTEXT(c.folder) {
      const TempFolder scratch;
      const std::string a = c.architecture;
      std::vector<std::pair<std::string, io::GgufValue>> metadata = {{"general.architecture", a},
                                                                     {a + ".context_length", int64_t{48}},
                                                                     {a + ".embedding_length", int64_t{24}},
                                                                     {a + ".block_count", c.layers},
                                                                     {a + ".feed_forward_length", int64_t{28}},
                                                                     {a + ".attention.head_count", int64_t{4}},
                                                                     {a + ".attention.head_count_kv", c.kv_heads},
                                                                     {a + ".attention.layer_norm_rms_epsilon", 1e-3}};
      if (a != "olmo2") metadata.emplace_back(a + ".attention.key_length", int64_t{8});
      for (const auto& [key, value] : c.metadata) metadata.emplace_back(a + "." + key, value);
      const fs::path path = scratch.path / "model.gguf";
      const auto write = [&] {
        io::write_gguf(path.string(), metadata, as_published(kFolders / c.folder, a != "olmo2"));
      };
      write();
      const models::LoadedModel folder =
          models::load_model(kFolders / c.folder, {.dtype = DType::f32, .settings = c.settings});
      const models::LoadedModel file = models::load_model(path);
      BOOST_TEST(same_bytes(logits_of(*file.model), logits_of(*folder.model)));
      models::save_as_loaded(*file.model, file.format, scratch.path / "again");
      BOOST_TEST(same_bytes(logits_of(*models::load_model(scratch.path / "again").model), logits_of(*folder.model)));
      if (a == "olmo2") continue;
      const std::string pattern = a + ".attention.sliding_window_pattern";
      std::erase_if(metadata, [&](const auto& pair) { return pair.first == pattern; });
      metadata.emplace_back(pattern, std::vector<int64_t>{1});
      write();
      BRAID_CHECK_FAILS(models::load_model(path), ErrorKind::input, "a flag for each of");
    }
  }
}

// Written and read again, with norms that are not 1.
BOOST_AUTO_TEST_CASE(gemma_and_olmo2_survive_a_file) {
  const TempFolder scratch;
  for (const char* preset : {"olmo2-tiny", "gemma2-tiny", "gemma3-tiny"}) {
    BOOST_TEST_CONTEXT(preset) {
      const auto model = made(preset, {});
      uint64_t stream = 1;
      nn::replace_parameters(*model, [&](const std::string&, const Tensor& p) {
        return nn::parameter(p.rank() == 1 ? normal_tensor(p.shape(), 0.5, {2, ++stream}).to(DType::f32) : p.detach());
      });
      const auto file = through_file(*model, "f32", scratch.path / "model.gguf");
      BOOST_TEST(same_bytes(logits_of(*file.model), logits_of(*model)));
    }
  }
}

BOOST_AUTO_TEST_CASE(sixteen_bits_are_those_of_a_folder_in_16_bits) {
  const TempFolder scratch;
  for (const char* preset : {"llama-tiny", "qwen2-tiny", "qwen3-tiny"}) {
    for (const DType type : {DType::f16, DType::bf16}) {
      const auto model = made(preset, {{"n_layer", "2"}});
      nn::replace_parameters(*model, [&](const std::string&, const Tensor& p) {
        return nn::parameter(p.rank() == 2 ? p.detach().to(type).to(DType::f32) : p.detach());
      });
      const auto file = through_file(*model, str(type), scratch.path / "model.gguf");
      BOOST_TEST(same_bytes(logits_of(*file.model), logits_of(*model)));
    }
  }
}

// Beside weights of 4 bits activations have 8, which change less than a quarter of what the weights' rounding does.
constexpr double kEightBits = 0.02;

// Linear layers have the values and scales of the file, whose rows of queries and keys are in another order.
BOOST_AUTO_TEST_CASE(quantised_weights_stay_as_they_are) {
  const TempFolder scratch;
  for (const char* preset : {"llama-tiny", "qwen2-tiny", "qwen3-tiny"}) {
    for (const int bits : {8, 4}) {
      BOOST_TEST_CONTEXT(preset << ", " << bits << " bits") {
        const auto model = made(preset, {{"n_layer", "2"}, {"tie_word_embeddings", "false"}});
        const std::string type = bits == 8 ? "q8_0" : "q4_0";
        const fs::path path = scratch.path / "model.gguf";
        const auto plain = through_file(*model, type, path);
        const auto kept = models::load_model(path, {.keep_quantized = true});
        std::map<std::string, Tensor> found, given;
        for (const nn::NamedTensor& p : nn::parameters(*kept.model)) found[p.name] = p.value;
        for (const nn::NamedTensor& p : nn::parameters(*model)) given[p.name] = p.value.detach();
        int linear = 0;
        for (const auto& [name, value] : given) {
          if (value.rank() != 2) continue;
          const GroupWeight expected = quantize_groups(value, bits);
          if (name == "tok_embeddings.weight") {
            BOOST_TEST(same_bytes(found.at(name), dequantize_groups(expected, value.dim(1))));
            continue;
          }
          const GroupPanels panels = in_panels(expected);
          BOOST_TEST(same_bytes(found.at(name), panels.values), name);
          const std::string scale = name.substr(0, name.size() - 6) + "scale";
          BOOST_TEST(same_bytes(found.at(scale), panels.scale), scale);
          ++linear;
        }
        BOOST_TEST(linear == 2 * 5 + 1);
        BOOST_TEST(is_close(logits_of(*kept.model), logits_of(*plain.model), bits == 8 ? 1e-3 : kEightBits));
        if (bits == 4) BOOST_TEST(!is_close(logits_of(*plain.model), logits_of(*model), 4 * kEightBits));
        const models::LoadedModel same = models::load_model(path, {.weight_bits = bits});
        BOOST_TEST(same_bytes(logits_of(*kept.model), logits_of(*same.model)));
        const auto greedy = [](const models::LoadedModel& m) {
          const auto& language = dynamic_cast<const models::LanguageModel&>(*m.model);
          return models::generate(language, std::vector<int32_t>{3, 1, 4}, 12, {.temperature = 0}).tokens;
        };
        if (bits == 8) BOOST_TEST(greedy(kept) == greedy(plain), boost::test_tools::per_element());
      }
    }
  }
}

// The table in f32 where tokens are looked up, as it is where it makes the logits.
BOOST_AUTO_TEST_CASE(a_tied_table_stays_quantised_in_the_output_projection) {
  const TempFolder scratch;
  const auto model = made("llama-tiny", {{"n_layer", "1"}, {"tie_word_embeddings", "true"}});
  const auto plain = through_file(*model, "q4_0", scratch.path / "model.gguf");
  const auto kept = models::load_model(scratch.path / "model.gguf", {.keep_quantized = true});
  Tensor output;
  for (const nn::NamedTensor& p : nn::parameters(*kept.model))
    if (p.name == "output.weight") output = p.value;
  BOOST_REQUIRE(bool(output));
  BOOST_TEST((output.dtype() == DType::u8));
  BOOST_TEST(is_close(logits_of(*kept.model), logits_of(*plain.model), kEightBits));
  BOOST_TEST(!is_close(logits_of(*plain.model), logits_of(*model), 4 * kEightBits));
}

BOOST_AUTO_TEST_CASE(a_file_becomes_a_folder) {
  const TempFolder scratch;
  const models::LoadedModel folder = models::load_model(kFolders / "llama_bf16", {.dtype = DType::f32});
  const models::LoadedModel file = through_file(*folder.model, "bf16", scratch.path / "model.gguf");
  models::save_as_loaded(*file.model, file.format, scratch.path / "again");
  const models::LoadedModel again = models::load_model(scratch.path / "again");
  BOOST_TEST(same_bytes(logits_of(*again.model), logits_of(*folder.model)));
}

BOOST_AUTO_TEST_CASE(models_without_a_name_are_refused) {
  const TempFolder scratch;
  const auto refused = [&](const std::string& preset, const models::SettingTexts& settings, const std::string& text,
                           const std::string& type = "f32") {
    const auto model = made(preset, settings);
    BRAID_CHECK_FAILS(models::save_gguf(*model, nullptr, type, scratch.path / "m.gguf"), ErrorKind::setting, text);
    BOOST_TEST(!fs::exists(scratch.path / "m.gguf"));
  };
  refused("dcformer-tiny", {}, "cannot hold a model of type dcformer");
  refused("gpt-neox-tiny", {}, "cannot hold a model of type gpt_neox");
  refused("gemma2-tiny", {{"score_dim", "64"}}, "cannot say query_pre_attn_scalar");
  refused("gemma3-tiny", {{"window_type", "LG"}}, "cannot say layer_types");
  refused("gemma3-tiny", {{"rope_local_base", "500"}}, "cannot say rope_local_base_freq");
  refused("llama-tiny", {{"use_dcmha", "true"}}, "cannot say use_dcmha");
  refused("mistral-tiny", {}, "cannot say sliding_window");
  refused("qwen2-tiny", {{"window_type", "LG"}, {"window_size", "8"}}, "cannot say");
  refused("llama-tiny", {{"dim", "48"}, {"n_head", "3"}, {"n_kv_head", "3"}, {"head_dim", "16"}},
          "expected rows of a multiple of 32", "q4_0");
}

namespace {
// The file again with this metadata and without one of its tensors.
void write_with(const io::GgufFile& file, const io::GgufMetadata& metadata, const fs::path& path,
                const std::string& without = "") {
  std::vector<io::GgufSource> tensors;
  for (const io::GgufTensor& t : file.tensors())
    if (t.name != without) tensors.push_back({t.name, t.type->name, t.shape, [&] { return file.load(t); }});
  io::write_gguf(path.string(), {metadata.begin(), metadata.end()}, tensors);
}
}  // namespace

BOOST_AUTO_TEST_CASE(a_factor_without_a_type_is_linear_and_unknown_keys_are_noted) {
  const TempFolder scratch;
  const fs::path path = scratch.path / "m.gguf", other = scratch.path / "other.gguf";
  models::save_gguf(*made("llama-tiny", {{"n_layer", "1"}}), nullptr, "f32", path);
  const io::GgufFile file(path.string());
  const auto with = [&](const io::GgufMetadata& more) {
    io::GgufMetadata all = file.metadata();
    all.insert(more.begin(), more.end());
    write_with(file, all, other);
    return models::load_model(other);
  };
  const std::string factor = "llama.rope.scaling.factor", type = "llama.rope.scaling.type";
  const Tensor plain = logits_of(*with({}).model), linear = logits_of(*with({{factor, 4.0}}).model);
  BOOST_TEST(!same_bytes(linear, plain));
  BOOST_TEST(same_bytes(linear, logits_of(*with({{factor, 4.0}, {type, std::string("linear")}}).model)));
  for (const io::GgufMetadata& none :
       {io::GgufMetadata{{factor, 1.0}}, io::GgufMetadata{{factor, 0.0}},
        io::GgufMetadata{{type, std::string("linear")}}, io::GgufMetadata{{factor, 1.0}, {type, std::string("linear")}},
        io::GgufMetadata{{factor, 0.0}, {type, std::string("linear")}},
        io::GgufMetadata{{factor, 4.0}, {type, std::string("none")}}})
    BOOST_TEST(same_bytes(plain, logits_of(*with(none).model)));
  BOOST_TEST(with({{"llama.attention.causal", true}, {"llama.expert_count", int64_t{0}}}).notes.empty());
  const auto notes = with({{"llama.unheard", int64_t{1}}, {"llama.of", 2.0}, {"general.name", std::string("x")}}).notes;
  BOOST_REQUIRE(notes.size() == 1u);
  BOOST_TEST(notes[0] == "keys of " + other.string() + " without effect here: llama.of, llama.unheard");
  BOOST_TEST((models::inspect_model(other).notes == notes));
}

// The message names the types that are read.
BOOST_AUTO_TEST_CASE(tensors_of_other_types_are_refused) {
  const TempFolder scratch;
  const fs::path path = scratch.path / "m.gguf";
  models::save_gguf(*made("llama-tiny", {{"n_layer", "1"}}), nullptr, "f32", path);
  std::ifstream in(path, std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(in), {});
  // F32 becomes I32, of as many bytes: behind the name, the rank and the only size.
  bytes.at(bytes.find("output_norm.weight") + 18 + 4 + 8) = 26;
  std::ofstream(path, std::ios::binary) << bytes;
  BRAID_CHECK_FAILS(models::load_model(path), ErrorKind::input, "cannot load the tensor output_norm.weight",
                    "F32, F16, ", "Q4_0", "found I32");
}

BOOST_AUTO_TEST_CASE(files_of_other_models_are_refused) {
  const TempFolder scratch;
  const fs::path path = scratch.path / "m.gguf";
  const auto model = made("llama-tiny", {{"n_layer", "1"}});
  models::save_gguf(*model, nullptr, "f32", path);
  const io::GgufFile file(path.string());
  const auto changed = [&](const std::string& key, std::optional<io::GgufValue> value, const std::string& text,
                           const std::string& without = "") {
    io::GgufMetadata all = file.metadata();
    if (value)
      all[key] = *value;
    else
      all.erase(key);
    const fs::path bad = scratch.path / "bad.gguf";
    write_with(file, all, bad, without);
    BRAID_CHECK_FAILS(models::load_model(bad), ErrorKind::input, text);
  };
  changed("general.architecture", std::string("mamba"),
          "expected llama, qwen2, qwen3, olmo2, gemma2 or gemma3, found mamba");
  changed("general.architecture", std::nullopt, "general.architecture");
  changed("llama.block_count", std::nullopt, "llama.block_count");
  changed("llama.block_count", std::string("four"), "expected an integer, found a string");
  changed("llama.block_count", int64_t{2}, "model.layers.1");
  changed("llama.attention.head_count", int64_t{0}, "sizes of at least 1");
  changed("llama.attention.head_count_kv", int64_t{3}, "bad.gguf");
  changed("llama.rope.dimension_count", int64_t{16}, "Braid rotates complete heads");
  changed("llama.expert_count", int64_t{8}, "expected 0, or no such key, found 8");
  changed("llama.logit_scale", 0.5, "expected 1, or no such key, found 0.5");
  changed("llama.attention.sliding_window", int64_t{16}, "Braid reads windows of Gemma alone");
  changed("llama.attention.causal", io::GgufValue(false), "expected true, or no such key, found false");
  changed("split.count", int64_t{2}, "join the files");
  changed("llama.rope.scaling.type", std::string("yarn"), "none or linear");
  for (const double factor : {-4.0, std::nan(""), HUGE_VAL})
    changed("llama.rope.scaling.factor", factor, "llama.rope.scaling.factor");
  changed("x", int64_t{1}, "model.layers.0.mlp.up_proj.weight is missing", "blk.0.ffn_up.weight");
  changed("tokenizer.ggml.model", std::string("t5"), "gpt2 (byte-level BPE) or llama (SentencePiece BPE)");
  changed("tokenizer.ggml.model", std::string("gpt2"), "as many kinds and scores");
}

BOOST_AUTO_TEST_SUITE_END()
