// ViT folders written by transformers, and those of big_vision's pooling, against their results: values and gradients
// under the names on disk, rejections, and folders that come out as they were.
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <set>

#include "braid/autograd.h"
#include "braid/models/folders/folder.h"
#include "braid/models/image_model.h"
#include "braid/models/registry.h"
#include "tests/models/families/dcformer/huggingface/support.h"
#include "tests/support/golden.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(vit_golden)

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

const char* const kCases[] = {"vit_gap", "vit_gap_rep", "vit_tok", "vit_tok_old"};

void rejects(const FolderData& data, const std::vector<std::string>& words) {
  const TempFolder scratch;
  data.write(scratch.path / "in");
  BOOST_CHECK_EXCEPTION(models::load_model(scratch.path / "in"), Error,
                        [&](const Error& e) { return says(e, ErrorKind::input, words); });
}

FolderData with(const char* base, const json& keys) {
  FolderData data = huggingface_folder(base);
  set_keys(data, keys);
  return data;
}

std::string bytes(const fs::path& file) { return io::read_text_file(file.string(), 1 << 24); }

}  // namespace

BOOST_AUTO_TEST_CASE(values_and_gradients) {
  for (const char* name : kCases) {
    const io::SafetensorsFile want(kHuggingFace + name + "/golden.safetensors");
    for (const auto& [dtype, tolerance, of_gradients] :
         {std::tuple{DType::f64, 1e-10, 1e-10}, {DType::f32, 2e-5, 1e-4}}) {
      BOOST_TEST_CONTEXT(name << " " << str(dtype)) {
        const auto model = models::as_image_model(models::load_model(kHuggingFace + name, {.dtype = dtype}).model);
        nn::require_grad(*model);
        int seen = 0;
        const nn::ActivationObserver observer{[&, tolerance = tolerance](const std::string& what, const Tensor& x) {
          compare_golden(want, what, x, tolerance, seen);
        }};
        const Tensor pixels = want.load("pixel_values"), labels = want.load("labels");
        const Tensor logits = model->logits(pixels, &observer);
        const Tensor loss = cross_entropy(logits, labels);
        compare_golden(want, "logits", logits, tolerance, seen);
        compare_golden(want, "loss", loss.detach().reshaped({1}), tolerance, seen);
        const double sum = model->loss_sum({{"pixel_values", pixels}, {"labels", labels}}).item();
        BOOST_TEST(std::fabs(sum / static_cast<double>(labels.numel()) - loss.item()) < tolerance);
        backward(loss);
        const auto spec = model->spec();
        for (const nn::NamedTensor& p : nn::parameters(*model)) {
          BOOST_REQUIRE(bool(grad(p.value)));
          for (const nn::NamedTensor& t :
               models::split_stored(spec->folder().stored(p.name, p.value.shape()), grad(p.value)))
            compare_golden(want, "grad." + t.name, t.value, of_gradients, seen);
        }
        int results = 0;
        for (const io::TensorInfo& info : want.tensors())
          results += info.name != "pixel_values" && info.name != "labels" && info.name != "logits_f32";
        BOOST_TEST(seen == results);  // nothing of the file was left out
        if (want.find("logits_f32")) BOOST_TEST(is_close(logits, want.load("logits_f32"), 2e-5));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(no_case_is_left_out) {
  std::set<std::string> there, tested(std::begin(kCases), std::end(kCases));
  for (const auto& entry : fs::directory_iterator(kHuggingFace)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_directory() && name.starts_with("vit")) there.insert(name);
  }
  BOOST_TEST(there == tested, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(rejections) {
  rejects(with("vit_tok_old", {{"patch_size", 7}}), {"patch_size", "image_size = 32"});
  rejects(with("vit_tok_old", {{"image_size", 64}}), {"position_embeddings"});
  rejects(with("vit_tok_old", {{"id2label", {{"0", "a"}, {"1", "b"}}}}), {"classifier.weight"});
  rejects(with("vit_tok", {{"hidden_act", "xielu"}}), {"hidden_act", "xielu"});
  rejects(with("vit_tok", {{"num_attention_heads", 5}}), {"num_attention_heads"});
  rejects(with("vit_tok", {{"num_hidden_layers", 3}}), {"vit.encoder.layer.2", "missing"});
  rejects(with("vit_tok", {{"image_size", "32"}}), {"image_size"});
  rejects(with("vit_tok", {{"image_size", {32, 32, 32}}}), {"image_size", "height and width"});
  rejects(with("vit_tok", {{"qkv_bias", false}}), {"query.bias", "is not a parameter", "qkv_bias"});
  rejects(with("vit_tok", {{"posemb", "sincos2d"}}), {"posemb"});
  rejects(with("vit_tok", {{"quantization_config", {{"bits", 4}}}}), {"quantization_config"});
  rejects(with("vit_tok", {{"architectures", {"ViTModel"}}}), {"ViTModel", "classifier"});
  rejects(with("vit_tok", {{"architectures", {"ViTForMaskedImageModeling"}}}), {"ViTForMaskedImageModeling"});
  rejects(with("vit_tok", {{"profile", {{"rnak", 2}}}}), {"profile.rnak", "did you mean"});
  FolderData bare = huggingface_folder("vit_tok");
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, x] : bare.tensors)
    if (name.starts_with("vit.")) tensors[name.substr(4)] = x;
  bare.tensors = tensors;
  rejects(bare, {"ViTModel, which has no classifier", "missing"});
}

BOOST_AUTO_TEST_CASE(folders_come_out_as_they_were) {
  for (const char* name : kCases) {
    BOOST_TEST_CONTEXT(name) {
      const TempFolder scratch;
      const models::LoadedModel loaded = models::load_model(kHuggingFace + name);
      BOOST_TEST(loaded.notes.empty());
      models::save_as_loaded(*loaded.model, loaded.format, scratch.path / "out");
      for (const char* file : {"config.json", "model.safetensors"})
        BOOST_TEST((bytes(fs::path(kHuggingFace) / name / file) == bytes(scratch.path / "out" / file)), file);
      // Written for the first time it is the same model.
      fs::create_directories(scratch.path / "new");
      models::save_model(*loaded.model, nullptr, scratch.path / "new");
      const models::LoadedModel again = models::load_model(scratch.path / "new");
      BOOST_TEST((models::differing_settings(*loaded.model->spec(), *again.model->spec()).empty()));
      const std::vector<nn::NamedTensor> now = nn::parameters(*again.model);
      for (const nn::NamedTensor& p : nn::parameters(*loaded.model))
        BOOST_TEST(is_close(std::ranges::find(now, p.name, &NamedTensor::name)->value, p.value, 0), p.name);
    }
  }
}

// The classes and the type change: these keys and no others.
BOOST_AUTO_TEST_CASE(a_changed_model_keeps_the_other_keys) {
  const models::LoadedModel loaded = models::load_model(kHuggingFace + "vit_tok", {.dtype = DType::f32});
  const json was = json::parse(loaded.format.config);
  const json now = json::parse(loaded.model->spec()
                                   ->with({{"num_labels", "3"}})
                                   ->config_json_like(loaded.format.config, "config.json", DType::bf16));
  BOOST_TEST(now["num_labels"] == 3);
  BOOST_TEST(now["dtype"] == "bfloat16");
  BOOST_TEST(!now.contains("id2label"));
  for (const auto& [key, value] : was.items())
    if (key != "id2label" && key != "label2id" && key != "dtype") BOOST_TEST((now[key] == value), key);
}

// Names of classes are part of the model; those of transformers for classes without names are none.
BOOST_AUTO_TEST_CASE(classes_have_names) {
  const auto spec_of = [](const json& labels) {
    json config = json::parse(models::load_model(kHuggingFace + "vit_tok").format.config);
    config["id2label"] = labels;
    return models::read_model_spec(config.dump(), "config.json");
  };
  const auto names = [](const models::ModelSpec& spec) {
    return dynamic_cast<const models::ImageModelSpec&>(spec).class_names();
  };
  BOOST_TEST(names(*spec_of({{"0", "LABEL_0"}, {"1", "LABEL_1"}})).empty());
  const std::vector<std::string> three = {"b", "a, or c", "7"};
  const auto spec = spec_of({{"0", "b"}, {"2", 7}, {"1", "a, or c"}});
  BOOST_TEST(names(*spec) == three, boost::test_tools::per_element());
  const json written = json::parse(spec->config_json());
  BOOST_TEST(written["id2label"] == json({{"0", "b"}, {"1", "a, or c"}, {"2", "7"}}));
  BOOST_TEST(written["label2id"] == json({{"b", 0}, {"a, or c", 1}, {"7", 2}}));
  BOOST_TEST(names(*models::read_model_spec(spec->config_json(), "config.json")) == three,
             boost::test_tools::per_element());
  BOOST_TEST(names(*spec->with({{"hidden_act", "relu"}})) == three, boost::test_tools::per_element());
  BOOST_TEST(names(*spec->with({{"num_labels", "4"}})).empty());
  BOOST_TEST(names(*spec->make({1, 0})->spec()) == three, boost::test_tools::per_element());
  rejects(with("vit_tok", {{"id2label", {{"1", "a"}, {"2", "b"}}}}), {"id2label", "from 0 to 1", "none for 0"});
  rejects(with("vit_tok", {{"id2label", {{"0", {1}}}}}), {"id2label", "[1] for 0"});
}

BOOST_AUTO_TEST_SUITE_END()
