#include <boost/test/unit_test.hpp>

#include "braid/autograd.h"
#include "braid/models/families/dcformer/cost.h"
#include "braid/tensor/io/atomic_file.h"
#include "tests/models/folders/support.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(weights)

namespace fs = std::filesystem;

namespace {

const char* const kModels[] = {"model_dcformer_lg", "model_dcformer_train", "model_dcpythia", "model_transformer"};
const char* const kComposed[] = {"model_dcformer_lg", "model_dcformer_train", "model_dcpythia"};

// Loads what `data` describes, saves it, and requires the same tensors (without caches) and the same configuration.
void check_round_trip(const FolderData& data, int shards, std::optional<DType> dtype = {}) {
  TempFolder scratch;
  data.write(scratch.path / "in", shards);
  models::LoadedModel loaded = models::load_model(scratch.path / "in", {.dtype = dtype});
  BOOST_TEST(loaded.notes.empty());
  models::save_as_loaded(*loaded.model, loaded.format, scratch.path / "out");
  const FolderData back = read_folder(scratch.path / "out");
  BOOST_TEST(back.config == data.config);
  size_t expected = 0;
  for (const auto& [name, x] : data.tensors) {
    if (name.find("kv_cache") != std::string::npos) continue;
    ++expected;
    const auto found = back.tensors.find(name);
    BOOST_TEST_CONTEXT(name) {
      BOOST_REQUIRE((found != back.tensors.end()));
      BOOST_TEST(same_bytes(found->second, x));
    }
  }
  BOOST_TEST(back.tensors.size() == expected);
  const io::TensorFiles in(scratch / "in"), out(scratch / "out");
  BOOST_TEST(in.sharded() == out.sharded());
  for (const io::TensorInfo& info : out.tensors()) BOOST_TEST(out.file_of(info.name) == in.file_of(info.name));
  BOOST_TEST(out.metadata().at("format") == "pt");
}

void check_rejected(const FolderData& data, std::initializer_list<std::string> parts,
                    models::LoadOptions options = {}) {
  TempFolder scratch;
  data.write(scratch.path);
  BOOST_CHECK_EXCEPTION(models::load_model(scratch.path, options), Error,
                        [&](const Error& e) { return says(e, ErrorKind::input, parts); });
}

// Another value in every copy of the dynamic weights.
void train_copies(FolderData& data) {
  for (const char* copy : {"dyn_w_proj.dw_m", "dyn_w_proj.qkw_m"})
    data.each(copy, [](const std::string&, Tensor& x) { x = scale(x, 1.5); });
}
// The trained copies, moved to the place that inference reads.
FolderData healed(FolderData data) {
  for (const char* own : {"dyn_w_proj.dw1", "dyn_w_proj.dd", "dyn_w_proj.qkw"})
    data.each(own, [](const std::string&, Tensor& x) { x = scale(x, 1.5); });
  data.each("dw_m", [&](const std::string& prefix, Tensor&) { data.tensors.erase(prefix + "dw_m"); });
  data.each("qkw_m", [&](const std::string& prefix, Tensor&) { data.tensors.erase(prefix + "qkw_m"); });
  return data;
}
Tensor logits_of(const FolderData& data) {
  TempFolder scratch;
  data.write(scratch.path);
  return braid::test::logits_of(*models::load_model(scratch.path, {.dtype = DType::f64}).model);
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_list_of_parameters_is_the_model) {
  using Keys = std::vector<std::pair<std::string, std::string>>;
  const std::vector<std::pair<std::string, Keys>> variants = {
      {"dcformer-tiny", {}},
      {"transformer-tiny", {}},
      {"dcpythia-tiny", {}},
      {"pythia-tiny", {}},
      {"dcformer-tiny", {{"mgate", "true"}, {"mgate_dim", "6"}}},
      {"dcformer-tiny", {{"profile.num_groups", "2"}, {"profile.static_proj", "true"}, {"profile.rank", "3"}}},
      {"dcformer-tiny", {{"profile.branches", "pre_q,post_q"}, {"profile.key_side", "false"}, {"head_dim", "6"}}},
      {"dcpythia-tiny", {{"use_linear_bias", "false"}, {"use_qk_norm", "false"}}},
      {"dcformer-tiny", {{"n_kv_head", "2"}, {"tie_word_embeddings", "true"}, {"mlp_bias", "true"}}},
  };
  for (const auto& [preset, keys] : variants) {
    Keys small = {{"dim", "32"}, {"n_head", "4"}, {"n_layer", "2"}, {"intermediate_size", "36"}, {"vocab_size", "20"}};
    small.insert(small.end(), keys.begin(), keys.end());
    models::Dcformer model = models::Dcformer::uninitialised(models::configure(preset, small));
    const std::vector<nn::NamedTensor> listed = models::shape_only_parameters(model.config());
    const std::vector<nn::NamedTensor> built = nn::parameters(model);
    BOOST_REQUIRE(listed.size() == built.size());
    for (size_t i = 0; i < listed.size(); ++i) {
      BOOST_TEST(listed[i].name == built[i].name);
      BOOST_TEST((listed[i].value.shape() == built[i].value.shape()), listed[i].name);
      BOOST_TEST((listed[i].value.device() == kMeta), listed[i].name);
    }
  }
}

BOOST_AUTO_TEST_CASE(every_form_of_a_folder_comes_back_byte_for_byte) {
  for (const char* name : kModels) {
    for (DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
      for (int form : {0, 1, 2, 4, 8, 15}) {  // plain, each thing alone, all together
        if (dtype != DType::f16 && form != 0 && form != 15) continue;
        BOOST_TEST_CONTEXT(name << " " << str(dtype) << " form " << form) {
          FolderData data = golden_folder(name);
          data.to(dtype);
          if (form & 1) data.separate();
          if (form & 2) data.add_copies();
          if (form & 4) data.add_identities(dtype);
          if (form & 8) data.add_caches();
          check_round_trip(data, form & 1 ? 3 : 1);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(types_may_be_mixed) {
  for (const char* name : kComposed) {
    FolderData data = golden_folder(name);
    for (const char* own : {"dyn_w_proj.dw1", "dyn_w_proj.dd", "dyn_w_proj.qkw"})
      data.each(own, [](const std::string&, Tensor& x) { x = x.to(DType::f16); });
    data.add_copies();
    data.each("dyn_w_proj.dw_m", [](const std::string&, Tensor& x) { x = x.to(DType::f32); });
    data.add_identities(DType::f16);
    data.each("norm.weight", [](const std::string&, Tensor& x) { x = x.to(DType::bf16); });
    data.tensors["output.weight"] = data.tensors["output.weight"].to(DType::f64);
    check_round_trip(data, 1);  // f64, because one tensor needs it
    check_round_trip(data, 2, DType::f64);
  }
}

BOOST_AUTO_TEST_CASE(one_layer_may_be_fused_and_another_not) {
  FolderData data = golden_folder("model_dcpythia"), parts = data;
  parts.separate();
  for (const char* kind : {"weight", "bias"}) {
    data.tensors.erase(std::string("layers.1.attention.wqkv.") + kind);
    for (const char* part : {"wq.", "wk.", "wv."}) {
      const std::string name = std::string("layers.1.attention.") + part + kind;
      data.tensors[name] = parts.tensors.at(name);
    }
  }
  check_round_trip(data, 1);
}

BOOST_AUTO_TEST_CASE(the_form_does_not_change_the_model) {
  for (const char* name : kModels) {
    FolderData data = golden_folder(name);
    const Tensor want = logits_of(data);
    data.separate();
    data.add_copies();
    data.add_identities(DType::f16);
    data.add_caches();
    BOOST_TEST(is_close(logits_of(data), want, 0), name);
    FolderData only = data;  // dw1, dd and qkw only as copies
    for (const char* own : {"dyn_w_proj.dw1", "dyn_w_proj.dd", "dyn_w_proj.qkw"})
      only.each(own, [&](const std::string& prefix, Tensor&) { only.tensors.erase(prefix + own); });
    BOOST_TEST(is_close(logits_of(only), want, 0), name);
  }
}

BOOST_AUTO_TEST_CASE(the_type_of_the_model_is_the_callers_choice) {
  FolderData data = golden_folder("model_dcformer_lg");
  data.to(DType::f16);
  TempFolder scratch;
  data.write(scratch.path);
  for (DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    models::LoadedModel loaded = models::load_model(scratch.path, {.dtype = dtype});
    for (const nn::NamedTensor& p : nn::parameters(*loaded.model)) BOOST_TEST((p.value.dtype() == dtype), p.name);
    const double tolerance = dtype == DType::bf16 ? 0.1 : dtype == DType::f16 ? 0.02 : 2e-5;
    BOOST_TEST(is_close(braid::test::logits_of(*loaded.model).to(DType::f64), logits_of(data), tolerance));
  }
  models::LoadedModel by_itself = models::load_model(scratch.path);
  BOOST_TEST((nn::parameters(*by_itself.model)[0].value.dtype() == DType::f32));
}

BOOST_AUTO_TEST_CASE(copies_count_in_folders_of_the_later_training_code) {
  for (const char* name : {"model_dcformer_lg", "model_dcformer_train"}) {  // their "mgate" key marks the later code
    FolderData data = golden_folder(name);
    data.add_copies();
    train_copies(data);
    TempFolder scratch;
    data.write(scratch.path / "in");
    models::LoadedModel loaded = models::load_model(scratch.path / "in", {.dtype = DType::f64});
    BOOST_TEST(is_close(braid::test::logits_of(*loaded.model), logits_of(healed(data)), 0));
    BOOST_TEST(!is_close(braid::test::logits_of(*loaded.model), logits_of(golden_folder(name)), 1e-3));
    BOOST_REQUIRE(loaded.notes.size() == 1u);
    BOOST_TEST(loaded.notes[0].find("dw_m, qkw_m of layers 0,1 differ from dw1, qkw, dd: took the copies") !=
               std::string::npos);
    // Saved, both places hold what was taken.
    models::save_as_loaded(*loaded.model, loaded.format, scratch.path / "out");
    FolderData saved = read_folder(scratch.path / "out");
    for (const auto& [tensor, x] : healed(data).tensors) BOOST_TEST(is_close(saved.tensors.at(tensor), x, 0), tensor);
    for (const char* copy : {"dw_m", "qkw_m"}) {
      const std::string tensor = std::string("layers.1.attention.dyn_w_proj.") + copy;
      BOOST_TEST(same_bytes(saved.tensors.at(tensor), data.tensors.at(tensor)), tensor);
    }
    BOOST_TEST(models::load_model(scratch.path / "out").notes.empty());
  }
}

BOOST_AUTO_TEST_CASE(copies_are_made_anew_in_folders_of_the_inference_code) {
  FolderData data = golden_folder("model_dcformer_lg");
  data.replace("\"mgate\": false,", "");
  const Tensor want = logits_of(data);
  data.add_copies();
  const FolderData fresh = data;
  train_copies(data);
  TempFolder scratch;
  data.write(scratch.path / "in");
  models::LoadedModel loaded = models::load_model(scratch.path / "in", {.dtype = DType::f64});
  BOOST_TEST(is_close(braid::test::logits_of(*loaded.model), want, 0));
  BOOST_REQUIRE(loaded.notes.size() == 1u);
  BOOST_TEST(loaded.notes[0].find("took dw1, qkw, dd") != std::string::npos);
  models::save_as_loaded(*loaded.model, loaded.format, scratch.path / "out");
  const FolderData saved = read_folder(scratch.path / "out");
  for (const auto& [name, x] : fresh.tensors) BOOST_TEST(same_bytes(saved.tensors.at(name), x), name);
  // The caller may name the format.
  loaded =
      models::load_model(scratch.path / "in", {.dtype = DType::f64, .settings = {{"profile.dynamic_weights", "dw_m"}}});
  BOOST_TEST(is_close(braid::test::logits_of(*loaded.model), logits_of(healed(data)), 0));
}

BOOST_AUTO_TEST_CASE(static_matrices_are_parameters_where_the_model_has_them) {
  FolderData data = golden_folder("model_dcformer_lg");
  data.replace("\"static_proj\": false", "\"static_proj\": true");
  data.add_identities(DType::f32);
  data.each("_proj.w",
            [](const std::string& prefix, Tensor& x) { x = scale(x, prefix.ends_with("pre") ? 0.5 : -0.25); });
  check_round_trip(data, 1);
  FolderData zero = data, none = golden_folder("model_dcformer_lg");
  zero.each("_proj.w", [](const std::string&, Tensor& x) { x = scale(x, 0); });
  BOOST_TEST(!is_close(logits_of(data), logits_of(none), 1e-3));
  BOOST_TEST(is_close(logits_of(zero), logits_of(none), 1e-14));  // the identity of the composition is always there
}

BOOST_AUTO_TEST_CASE(changed_weights_are_saved_in_the_form_that_was_read) {
  FolderData data = golden_folder("model_dcpythia");
  data.to(DType::f16);
  data.separate();
  data.add_copies();
  TempFolder scratch;
  data.write(scratch.path / "in");
  models::LoadedModel loaded = models::load_model(scratch.path / "in");
  for (nn::NamedTensor& p : nn::parameters(*loaded.model)) p.value.copy_(scale(p.value, 2));
  models::save_as_loaded(*loaded.model, loaded.format, scratch.path / "out");
  const FolderData saved = read_folder(scratch.path / "out");
  BOOST_TEST(saved.tensors.size() == data.tensors.size());
  for (const auto& [name, x] : data.tensors)
    BOOST_TEST(same_bytes(saved.tensors.at(name), scale(x.to(DType::f32), 2).to(DType::f16)), name);
}

BOOST_AUTO_TEST_CASE(values_that_the_stored_type_cannot_hold_are_not_written) {
  FolderData data = golden_folder("model_transformer");
  data.to(DType::f16);
  TempFolder scratch;
  data.write(scratch.path / "in");
  models::LoadedModel loaded = models::load_model(scratch.path / "in");
  for (nn::NamedTensor& p : nn::parameters(*loaded.model))
    if (p.name == "output.weight") p.value.fill(1e6);
  BRAID_CHECK_FAILS(models::save_as_loaded(*loaded.model, loaded.format, scratch.path / "out"), ErrorKind::numerical,
                    "output.weight cannot be stored as f16", "choose a wider type");
  BOOST_TEST(!fs::exists(scratch.path / "out/model.safetensors"));
  BOOST_TEST(!fs::exists(scratch.path / "out/config.json"));
}

BOOST_AUTO_TEST_CASE(tensors_that_do_not_fit_are_named_with_both_shapes) {
  const FolderData good = golden_folder("model_dcformer_lg");
  FolderData data = good;
  data.tensors.erase("layers.1.attention.wo.weight");
  check_rejected(data, {"layers.1.attention.wo.weight is missing (expected (", "do not fit the model"});
  data = good;
  data.tensors["layers.0.attention.dyn_w_proj.extra"] = zeros({3, 2});
  check_rejected(data, {"layers.0.attention.dyn_w_proj.extra (3, 2) is not a parameter of this model"});
  data = good;
  data.tensors["norm.weight"] = zeros({7});
  check_rejected(data,
                 {"norm.weight has shape (7), expected (" + std::to_string(good.tensors.at("norm.weight").dim(0))});
  data = good;
  data.tensors["norm.weight"] = zeros(good.tensors.at("norm.weight").shape(), DType::i64);
  check_rejected(data, {"norm.weight (", "has type I64, expected F64, F32, BF16 or F16"});
  data = good;  // all faults in one message
  data.tensors.erase("output.weight");
  data.tensors["norm.weight"] = zeros({7});
  data.tensors["more"] = zeros({1});
  check_rejected(data, {"output.weight is missing", "norm.weight has shape (7)", "more (1) is not a parameter"});
}

BOOST_AUTO_TEST_CASE(parts_of_fused_tensors_are_named_too) {
  FolderData good = golden_folder("model_dcpythia");
  const int64_t D = good.tensors.at("norm.weight").dim(0);
  const FolderData fused = good;
  good.separate();
  FolderData data = good;
  data.tensors.erase("layers.0.attention.wk.bias");
  check_rejected(data, {"layers.0.attention.wk.bias is missing (expected (" + std::to_string(D) + "))"});
  data = good;
  data.tensors["layers.1.attention.wv.weight"] = zeros({D, D + 1});
  check_rejected(data, {"layers.1.attention.wv.weight has shape (" + std::to_string(D) + ", " + std::to_string(D + 1) +
                        "), expected (" + std::to_string(D) + ", " + std::to_string(D) + ")"});
  data = good;
  data.tensors["layers.0.attention.wqkv.weight"] = fused.tensors.at("layers.0.attention.wqkv.weight");
  check_rejected(data, {"layers.0.attention.wqkv.weight is there fused and also separate"});
  data = fused;
  data.add_copies();
  data.tensors["layers.1.attention.dyn_w_proj.dw_m"] = zeros({D, 3});
  check_rejected(data, {"layers.1.attention.dyn_w_proj.dw_m has shape (" + std::to_string(D) + ", 3), expected"});
  data = golden_folder("model_transformer");
  data.tensors["layers.0.attention.dyn_w_proj.dw1"] = zeros({2, 2});
  check_rejected(data,
                 {"layers.0.attention.dyn_w_proj.dw1 (2, 2) is not a parameter of this model (use_dcmha is false"});
}

BOOST_AUTO_TEST_CASE(values_that_cannot_be_weights_are_named) {
  for (double bad : {std::nan(""), HUGE_VAL}) {
    FolderData data = golden_folder("model_dcformer_lg");
    data.separate();
    data.add_copies();
    for (const char* name : {"layers.1.attention.wk.weight", "layers.0.attention.dyn_w_proj.qkw_m", "norm.weight"}) {
      Tensor last = data.tensors.at(name).reshaped({-1});
      last.sliced(0, last.numel() - 1, last.numel()).fill(bad);
    }
    check_rejected(data, {"layers.1.attention.wk.weight (", "layers.0.attention.dyn_w_proj.qkw_m (", "norm.weight (",
                          "contains NaN or Inf"});
  }
  FolderData data = golden_folder("model_dcformer_lg");
  data.tensors["norm.weight"].fill(1e6);
  check_rejected(data, {"norm.weight (", "holds values too large for f16"}, {.dtype = DType::f16});
}

BOOST_AUTO_TEST_CASE(matrices_that_are_no_identity_are_rejected) {
  FolderData data = golden_folder("model_dcformer_lg");
  data.add_identities(DType::f16);
  data.tensors.at("layers.1.attention.dyn_w_proj.post_proj.w").fill(0.25);
  check_rejected(data, {"layers.1.attention.dyn_w_proj.post_proj.w (1, ",
                        "is not the identity although "
                        "profile.static_proj is off",
                        "profile.static_proj=true"});
}

BOOST_AUTO_TEST_SUITE_END()
