#include "braid/models/folders/pretrained.h"

#include <boost/test/unit_test.hpp>

#include "braid/autograd.h"
#include "braid/models/inference/generate.h"
#include "braid/models/training/trainer.h"
#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/memory.h"
#include "braid/tensor/parallel.h"
#include "tests/models/folders/support.h"
#include "tests/support/places.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(folder)

namespace fs = std::filesystem;

namespace {
void put(const fs::path& file, const std::string& text) { io::write_file(file.string(), text); }
}  // namespace

BOOST_AUTO_TEST_CASE(pickles_are_rejected_with_the_way_out) {
  for (const char* name : {"pytorch_model.bin", "weights.pt", "weights.pth", "last.ckpt"}) {
    TempFolder scratch;
    FolderData data = golden_folder("model_transformer");
    put(scratch.path / "config.json", data.config);
    put(scratch.path / name, "\x80\x02}q");
    BRAID_CHECK_FAILS(models::load_model(scratch.path), ErrorKind::input, name, "PyTorch pickle", "can run code",
                      "torch.load", "weights_only=True", "save_file");
    BRAID_CHECK_FAILS(models::inspect_model(scratch.path), ErrorKind::input, name, "PyTorch pickle");
    BRAID_CHECK_FAILS(models::load_model(scratch.path / name), ErrorKind::input, name, "PyTorch pickle");
    fs::remove(scratch.path / "config.json");
    BRAID_CHECK_FAILS(models::find_model(scratch.path), ErrorKind::input, name, "PyTorch pickle");
  }
  // Beside safetensors they do not matter.
  TempFolder scratch;
  golden_folder("model_transformer").write(scratch.path);
  put(scratch.path / "pytorch_model.bin", "x");
  BOOST_TEST(models::load_model(scratch.path).format.tensors.size() > 10u);
}

// The stated error of 8-bit weights in models as narrow as these: 4 % of the largest logit; of 4 bits 16 times as much.
BOOST_AUTO_TEST_CASE(linear_layers_take_weights_of_8_and_4_bits) {
  for (const int bits : {8, 4})
    for (const char* name : {"model_dcformer_lg", "model_dcpythia", "model_transformer"}) {
      BOOST_TEST_CONTEXT(name << ", " << bits << " bits") {
        const fs::path folder = fs::path(source_dir() + "/tests/golden") / name;
        const models::LoadedModel exact = models::load_model(folder, {.dtype = DType::f32}),
                                  loaded = models::load_model(folder, {.weight_bits = bits});
        const models::Dcformer& model = dcformer(loaded);
        BOOST_TEST(is_close(logits_of(model), logits_of(*exact.model), bits == 8 ? 0.04 : 0.64));
        BOOST_TEST(nn::quantized_bits(model) == bits);
        BOOST_TEST(same_bytes(logits_of(*models::load_model(folder, {.weight_bits = bits}).model), logits_of(model)));
        BOOST_TEST((model.dtype() == DType::f32));
        NoGrad off;
        const Tensor ids = from_vector(std::vector<int64_t>{3, 1, 4, 1, 5, 9}, {1, 6});
        BOOST_TEST(std::fabs(model.loss_sum(ids, ids).item() / dcformer(exact).loss_sum(ids, ids).item() - 1) <
                   (bits == 8 ? 0.02 : 0.2));
        const std::vector<int32_t> prompt = {3, 1, 4};
        const auto greedy = [&] { return models::generate(model, prompt, 8, {.temperature = 0}).tokens; };
        const int before = threads();
        set_threads(1);
        const auto one = greedy();
        set_threads(3);
        BOOST_TEST(greedy() == one, boost::test_tools::per_element());
        set_threads(before);
        TempFolder scratch;
        BRAID_CHECK_FAILS(models::save_model(model, nullptr, scratch.path), ErrorKind::setting, "quantised weights",
                          "saved");
        BRAID_CHECK_FAILS(models::save_as_loaded(model, loaded.format, scratch.path / "new"), ErrorKind::setting,
                          "quantised weights");
        BRAID_CHECK_FAILS(models::Trainer(dcformer(loaded), {}, 1.0), ErrorKind::setting, "cannot be trained");
      }
    }
}

// An output projection that is the embedding table becomes a quantised copy; the table stays.
BOOST_AUTO_TEST_CASE(a_tied_output_projection_takes_quantised_weights) {
  for (const int bits : {8, 4}) {
    const auto config = models::configure(
        "transformer-tiny", {{"dim", "32"}, {"n_layer", "1"}, {"vocab_size", "40"}, {"tie_word_embeddings", "true"}});
    models::Dcformer model(config, {1, 0});
    const Tensor exact = logits_of(model);
    model.quantize_weights(bits);
    BOOST_TEST(is_close(logits_of(model), exact, bits == 8 ? 0.04 : 0.64));
    double bytes = 0;
    for (const nn::NamedTensor& p : nn::parameters(model))
      bytes += static_cast<double>(p.value.numel() * size_of(p.value.dtype()));
    for (const models::InfoSection& section : model.spec()->info({.seq_len = 8}))
      for (const models::InfoRow& row : section.rows)
        if (row.key == str("weights_int", bits)) BOOST_TEST(row.value == bytes);
  }
}

// Weights become 8-bit ones as they are read: at no time is there more than the table in f32, the 8-bit weights and
// what one tensor needs.
BOOST_AUTO_TEST_CASE(no_complete_model_is_held_beside_weights_of_8_bits) {
  models::Dcformer model(models::configure("dcformer-tiny", {{"dim", "128"}, {"n_layer", "8"}, {"vocab_size", "40"}}),
                         {1, 0});
  TempFolder scratch;
  models::save_model(model, nullptr, scratch.path);
  const auto peak = [&](const models::LoadOptions& options) {
    reset_peak_memory(kCpu);
    const int64_t before = memory_by_use(kCpu).peak();
    models::load_model(scratch.path, options);
    return memory_by_use(kCpu).peak() - before;
  };
  const double full = peak({}), half = peak({.dtype = DType::bf16}), eight = peak({.weight_bits = 8}),
               four = peak({.weight_bits = 4});
  BOOST_TEST(four < eight);
  BOOST_TEST(eight < half);
  BOOST_TEST(half < full);
}

// A folder of 16 bits: quantised from these, it is the model quantised from f32.
BOOST_AUTO_TEST_CASE(weights_of_16_bits_are_quantised_as_stored) {
  for (DType type : {DType::bf16, DType::f16}) {
    TempFolder scratch;
    FolderData data = golden_folder("model_dcformer_lg");
    data.to(type);
    data.write(scratch.path / "half");
    data.to(DType::f32);
    data.write(scratch.path / "full");
    BOOST_TEST(same_bytes(logits_of(*models::load_model(scratch.path / "half", {.weight_bits = 8}).model),
                          logits_of(*models::load_model(scratch.path / "full", {.weight_bits = 8}).model)));
  }
}

BOOST_AUTO_TEST_CASE(folders_without_a_model_are_rejected) {
  TempFolder scratch;
  BRAID_CHECK_FAILS(models::load_model(scratch.path), ErrorKind::input, "no model in " + scratch.path.string(),
                    "config.json");
  put(scratch.path / "config.json", golden_folder("model_transformer").config);
  BRAID_CHECK_FAILS(models::load_model(scratch.path), ErrorKind::input, "there are no weights in",
                    "model.safetensors.index.json");
  BOOST_TEST(!models::inspect_model(scratch.path).format.has_value());
}

BOOST_AUTO_TEST_CASE(configuration_and_weights_must_agree) {
  const FolderData good = golden_folder("model_dcformer_lg");
  const auto rejected = [&](const std::string& text, const std::string& other,
                            std::initializer_list<std::string> parts) {
    TempFolder scratch;
    FolderData data = good;
    data.replace(text, other);
    data.write(scratch.path);
    BOOST_CHECK_EXCEPTION(models::load_model(scratch.path), Error,
                          [&](const Error& e) { return says(e, ErrorKind::input, parts); });
    BOOST_CHECK_EXCEPTION(models::inspect_model(scratch.path), Error,
                          [&](const Error& e) { return says(e, ErrorKind::input, parts); });
  };
  rejected("\"n_layer\"", "\"n_layers\"", {"missing key", "'n_layer'"});
  rejected("{", "{ \"use_sw\": true,", {"unknown key 'use_sw'"});
  rejected("{", "{ \"torch_dtype\": \"float8\",", {"torch_dtype", "one of float64, float32, float16, bfloat16"});
  rejected("\"use_qk_norm\": true", "\"use_qk_norm\": false", {"q_norm.scale", "is not a parameter of this model"});
  rejected("\"rank\": 2", "\"rank\": 3", {"dyn_w_proj.dw1 has shape", "expected"});
  rejected("\"n_head\": 4", "\"n_head\": 14",
           {"layers.0.attention.wqkv.weight has shape (96, 32), expected (336, 32)"});
  rejected("\"head_dim\": 8", "\"head_dim\": 7", {"rotary_pct", "an even number"});
  // A layer more than there are weights for.
  const models::DcformerConfig config = models::read_config(good.config, "c");
  TempFolder scratch;
  good.write(scratch.path);
  BRAID_CHECK_FAILS(models::load_model(scratch.path, {.settings = {{"n_layer", std::to_string(config.n_layer + 1)}}}),
                    ErrorKind::input, "layers." + std::to_string(config.n_layer) + ".attention.wqkv.weight is missing",
                    "ffn_norm.weight is missing");
}

BOOST_AUTO_TEST_CASE(shards_must_agree_with_their_index) {
  TempFolder scratch;
  const FolderData data = golden_folder("model_dcformer_lg");
  data.write(scratch.path, 3);
  BOOST_TEST(models::load_model(scratch.path).format.sharded);
  fs::remove(scratch.path / "part-1.safetensors");
  BRAID_CHECK_FAILS(models::load_model(scratch.path), ErrorKind::input, "part-1.safetensors");
}

BOOST_AUTO_TEST_CASE(other_files_go_along_and_a_model_is_never_overwritten) {
  TempFolder scratch;
  const fs::path in = scratch.path / "in", out = scratch.path / "out";
  golden_folder("model_transformer").write(in);
  put(in / "tokenizer.json", "{\"model\": {\"type\": \"Unknown\"}}");
  put(in / "modeling_dcformer.py", "pass\n");
  put(in / "chat_template.jinja", "{{ messages }}");
  put(in / "pytorch_model.bin", "x");
  models::LoadedModel loaded = models::load_model(in, {.tokenizer = false});
  models::save_as_loaded(*loaded.model, loaded.format, out);
  BOOST_TEST(io::read_text_file((out / "tokenizer.json").string(), 1 << 20) == "{\"model\": {\"type\": \"Unknown\"}}");
  BOOST_TEST(fs::exists(out / "modeling_dcformer.py"));
  BOOST_TEST(fs::exists(out / "chat_template.jinja"));
  BOOST_TEST(!fs::exists(out / "pytorch_model.bin"));
  BOOST_TEST(!models::save_as_loaded(*loaded.model, loaded.format, out));  // the same: nothing to write
  BRAID_CHECK_FAILS(models::save_as_loaded(*loaded.model, loaded.format, out, DType::f64), ErrorKind::output,
                    "already holds model.safetensors, which would be replaced");
  fs::remove(out / "config.json");  // weights of somebody
  BRAID_CHECK_FAILS(models::save_as_loaded(*loaded.model, loaded.format, out), ErrorKind::output,
                    "already holds a model");
  BOOST_CHECK_THROW(models::load_model(in), Error);  // the tokenizer is none that Braid has
}

BOOST_AUTO_TEST_CASE(no_model_is_written_beside_lora_or_another_model) {
  TempFolder scratch;
  const fs::path in = scratch.path / "in", lora = scratch.path / "lora", draft = scratch.path / "draft",
                 other = scratch.path / "other";
  for (const fs::path& folder : {lora, draft, other}) fs::create_directories(folder);
  golden_folder("model_transformer").write(in);
  const models::LoadedModel loaded = models::load_model(in);
  put(lora / "adapter_config.json", "{}");
  BRAID_CHECK_FAILS(models::save_as_loaded(*loaded.model, loaded.format, lora), ErrorKind::output,
                    "already holds LoRA");
  BRAID_CHECK_FAILS(models::save_model(*loaded.model, nullptr, lora), ErrorKind::output, "already holds LoRA");
  BOOST_TEST(std::distance(fs::directory_iterator(lora), {}) == 1);
  models::save_model(*loaded.model, nullptr, draft);
  models::check_replaces_no_model(scratch.path / "new", draft);
  models::check_replaces_no_model(draft, draft);
  const auto taken = [&] {
    BRAID_CHECK_FAILS(models::check_replaces_no_model(other, draft), ErrorKind::output, "already holds a model");
  };
  put(other / "config.json", "{}");
  taken();
  fs::remove(other / "config.json");
  fs::copy_file(draft / "config.json", other / "config.json");
  models::check_replaces_no_model(other, draft);
  put(other / "model.safetensors.index.json", "{}");  // of the same model, in shards
  taken();
  fs::remove(other / "config.json");
  taken();
}

BOOST_AUTO_TEST_CASE(another_type_and_other_settings_are_written) {
  TempFolder scratch;
  const fs::path in = scratch.path / "in";
  FolderData data = golden_folder("model_dcformer_lg");
  data.replace("{", "{\n \"torch_dtype\": \"float32\",");
  data.write(in);
  models::LoadedModel loaded = models::load_model(in, {.settings = {{"profile.name", "J"}, {"rope_base", "500"}}});
  models::save_as_loaded(*loaded.model, loaded.format, scratch.path / "out", DType::f16);
  const FolderData saved = read_folder(scratch.path / "out");
  for (const auto& [name, x] : data.tensors) BOOST_TEST(same_bytes(saved.tensors.at(name), x.to(DType::f16)), name);
  models::DcformerConfig want = dcformer(loaded).config();
  want.torch_dtype = "float16";
  BOOST_TEST((models::read_config(saved.config, "c") == want));
  BOOST_TEST(saved.config.find("\"mgate_dim\"") == std::string::npos);  // what was not said is not said now
}

BOOST_AUTO_TEST_SUITE_END()
