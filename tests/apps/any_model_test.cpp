// A family of another kind, registered here: a classifier of vectors trains, is checkpointed, resumed, loaded,
// converted and reported without a line for it in training/, pretrained or apps/.
#include <boost/test/unit_test.hpp>

#include "apps/info.h"
#include "apps/train/plan/dry_run.h"
#include "apps/train/task/from_config.h"
#include "braid/autograd/detail/check.h"
#include "braid/autograd/ops.h"
#include "braid/models/folders/pretrained.h"
#include "braid/models/language_model.h"
#include "braid/models/registry.h"
#include "braid/models/training/checkpoint/checkpoint_writer.h"
#include "braid/models/training/checkpoint/find_model.h"
#include "braid/nn.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/io/json.h"
#include "tests/apps/support.h"
#include "tests/support/compare.h"

#include <nlohmann/json.hpp>

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(any_model)

using models::Batch;

namespace {

struct Sizes {
  int64_t in = 5, hidden = 8, classes = 3;
};

// Batches: x (B, in) f32, label (B) i64; a negative label is not counted.
class Classifier final : public models::Model {
 public:
  Classifier(const Sizes& sizes, RandomKey key)
      : sizes_(sizes),
        hidden_(sizes.in, sizes.hidden, {.bias = true}, child(key, "hidden")),
        out_(sizes.hidden, sizes.classes, {.bias = true}, child(key, "out")) {}

  std::unique_ptr<const models::ModelSpec> spec() const override;
  DType dtype() const override { return out_.weight().dtype(); }
  Device device() const override { return out_.weight().device(); }
  void to(DType dtype) override { nn::to(*this, dtype); }
  void to(Device device) override { nn::to(*this, device); }
  Tensor logits(const Tensor& x) const { return out_(gelu(hidden_(cast(x, dtype())))); }  // (B, classes)
  Tensor loss_sum(const Batch& batch) const override {
    return sum(cross_entropy_per_token(logits(batch.at("x")), batch.at("label")));
  }
  Batch blank_batch(int64_t samples, int64_t) const override {
    return {{"x", zeros({samples, sizes_.in})}, {"label", zeros({samples}, DType::i64)}};
  }
  int64_t count_targets(const Batch& batch) const override {
    int64_t n = 0;
    for (int64_t label : batch.at("label").to_vector<int64_t>()) n += label >= 0;
    return n;
  }
  void check_batch(const Batch& batch) const override {
    check_ids("classifier", "label", batch.at("label"), sizes_.classes, true);
  }
  void observe(const Batch& batch, const nn::ActivationObserver& observer) const override {
    observer("logits", logits(batch.at("x")));
  }
  void visit(nn::Visitor& v) const override {
    v("hidden", hidden_);
    v("out", out_);
  }

 private:
  Sizes sizes_;
  nn::Linear hidden_, out_;
};

class ClassifierSpec final : public models::ModelSpec {
 public:
  explicit ClassifierSpec(const Sizes& sizes) : sizes_(sizes) {}
  std::string model_type() const override { return "classifier"; }
  std::string config_json() const override {
    std::string text = "{\n  \"model_type\": \"classifier\"";
    for (const models::ModelSetting& s : settings()) text += ",\n  \"" + s.name + "\": " + s.value;
    return text + "\n}\n";
  }
  std::vector<models::ModelSetting> settings() const override {
    return {{"in", std::to_string(sizes_.in), "features"},
            {"hidden", std::to_string(sizes_.hidden), "hidden width"},
            {"classes", std::to_string(sizes_.classes), "classes"}};
  }
  std::unique_ptr<const ModelSpec> with(const models::SettingTexts& settings) const override {
    Sizes sizes = sizes_;
    for (const auto& [name, text] : settings) {
      int64_t* size = name == "in" ? &sizes.in : name == "hidden" ? &sizes.hidden : &sizes.classes;
      *size = detail::parse_int(text).value();
    }
    return std::make_unique<ClassifierSpec>(sizes);
  }
  std::unique_ptr<models::Model> make(RandomKey key, const dist::ProcessMesh&) const override {
    return std::make_unique<Classifier>(sizes_, key);
  }

 private:
  Sizes sizes_;
};

std::unique_ptr<const models::ModelSpec> Classifier::spec() const { return std::make_unique<ClassifierSpec>(sizes_); }

models::ModelFamily classifier_family() {
  return {.model_type = "classifier",
          .presets = {"classifier-tiny"},
          .settings = ClassifierSpec({}).settings(),
          .read = [](const std::string& text, const std::string& file) -> std::unique_ptr<const models::ModelSpec> {
            const nlohmann::json json = io::parse_json(text, file);
            return std::make_unique<ClassifierSpec>(Sizes{json.at("in"), json.at("hidden"), json.at("classes")});
          },
          .configure = [](const std::string&,
                          const models::SettingTexts& settings) { return ClassifierSpec({}).with(settings); }};
}

Batch batch(int64_t step) {
  std::vector<float> x;
  std::vector<int64_t> labels;
  for (int64_t b = 0; b < 6; ++b) {
    labels.push_back(b == 5 ? -1 : (b + step) % 3);
    for (int64_t i = 0; i < 5; ++i)
      x.push_back(static_cast<float>(labels.back() == i) + 0.03f * static_cast<float>((7 * b + 3 * i + step) % 11));
  }
  return {{"x", from_vector(x, {6, 5})}, {"label", from_vector(labels, {6})}};
}

struct Training {
  std::unique_ptr<models::Model> model = models::configure_model("classifier-tiny", {})->make({3, 0});
  models::Trainer trainer{*model, {}, 1.0};
  double step(int64_t number) { return trainer.step({batch(number), batch(number + 100)}, 3e-2).loss; }
  std::vector<std::vector<double>> weights() const {
    std::vector<std::vector<double>> all;
    for (const nn::NamedTensor& p : nn::parameters(*model)) all.push_back(p.value.to_vector<double>());
    return all;
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_classifier_of_vectors_trains_and_resumes_bit_for_bit) {
  const models::RegisteredFamily registered(classifier_family());
  const Scratch run;
  Training straight, stopped;
  double first = 0, last = 0;
  for (int64_t i = 0; i < 30; ++i) {
    last = straight.step(i);
    if (i == 0) first = last;
    if (i < 10) stopped.step(i);
    if (i == 9)
      models::CheckpointWriter(run.path, 2).save(stopped.trainer, nullptr, {10, 60, 1.0, 3, 0, "vectors"}, "");
  }
  BOOST_TEST(last < first / 2);
  Training resumed;
  models::load_checkpoint(run / "step-00000010", resumed.trainer);
  for (int64_t i = 10; i < 30; ++i) last = resumed.step(i);
  BOOST_TEST((resumed.weights() == straight.weights()));
  BOOST_TEST(models::evaluate(*resumed.model, {batch(7)}) == models::evaluate(*straight.model, {batch(7)}));

  // A model of other sizes is rejected, by the names of its settings.
  auto other = models::configure_model("classifier-tiny", {{"hidden", "9"}})->make({3, 0});
  models::Trainer trainer(*other, {}, 1.0);
  BOOST_TEST(throws_with([&] { models::load_checkpoint(run / "step-00000010", trainer); },
                         "expected model.hidden = 8, found 9"));
}

BOOST_AUTO_TEST_CASE(a_bad_batch_and_a_bad_loss_are_named) {
  const models::RegisteredFamily registered(classifier_family());
  Training t;
  Batch bad = batch(0);
  bad.at("label").fill(3);
  BOOST_TEST(throws_with([&] { t.trainer.step({bad}, 1e-2); }, "label"));
  BOOST_TEST(throws_with(
      [&] {
        t.trainer.step({Batch{{"x", bad.at("x")}}}, 1e-2);
      },
      "the batch has no tensor 'label': expected by this model, found x"));
  Batch nan = batch(0);
  nan.at("x").fill(NAN);
  BOOST_TEST(throws_with([&] { t.trainer.step({nan}, 1e-2); }, "the first tensor with NaN or Inf is logits"));
}

BOOST_AUTO_TEST_CASE(its_checkpoint_is_a_model_folder_that_info_reports) {
  const models::RegisteredFamily registered(classifier_family());
  const Scratch run;
  Training t;
  t.step(0);
  models::CheckpointWriter(run.path, 2).save(t.trainer, nullptr, {1, 6, 1.0, 3, 0, "vectors"}, "");

  const models::LoadedModel loaded = models::load_model(models::find_model(run.path));
  BOOST_TEST(!loaded.tokenizer);
  BOOST_TEST(loaded.model->spec()->model_type() == "classifier");
  NoGrad off;
  BOOST_TEST(loaded.model->loss_sum(batch(4)).item() == t.model->loss_sum(batch(4)).item());
  models::save_as_loaded(*loaded.model, loaded.format, run / "again", DType::f64);
  BOOST_TEST(models::inspect_model(run / "again").format->describe() == "f64");

  const std::string text = apps::info_text(run.path.string());
  for (const char* part : {"hidden                       8", "features", "total", "75", "Weights in the folder"})
    BOOST_TEST(text.find(part) != std::string::npos, std::string("'") + part + "' is not in: " + text);
  const std::string json = apps::info_text("classifier-tiny", {.settings = {{"hidden", "16"}}, .json = true});
  for (const char* part : {"\"model_type\": \"classifier\"", "\"hidden\": 16", "\"total\": 147"})
    BOOST_TEST(json.find(part) != std::string::npos, std::string("'") + part + "' is not in: " + json);
  BOOST_CHECK_THROW(models::as_language_model(models::configure_model("classifier-tiny", {})->make({})), Error);
}

// `braid train --dry-run`: parameters, FLOPs, memory and communication by a traced step.
BOOST_AUTO_TEST_CASE(its_training_is_planned) {
  const models::RegisteredFamily registered(classifier_family());
  const auto report = [](std::vector<std::string> settings) {
    apps::TrainConfig config;
    settings.insert(settings.end(), {"model.preset=classifier-tiny", "run.device=cpu", "train.batch_size=6"});
    apps::load_config(apps::train_schema(config, apps::model_settings()), "", settings);
    return apps::dry_run(config).text;
  };
  const auto value = [](const std::string& text, const std::string& label) -> std::string {
    const size_t at = text.find("\n  " + label + " ");
    if (at == std::string::npos) return "no line '" + label + "' in: " + text;
    const size_t begin = text.find_first_not_of(' ', at + 3 + label.size());
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  const std::string text = report({"model.hidden=400"});  // 400 (5 + 1) + 3 (400 + 1) elements
  BOOST_TEST(value(text, "parameters") == "3603");
  BOOST_TEST(value(text, "FLOPs per sample, training") == "15.2 kFLOP");  // x has no gradient
  BOOST_TEST(value(text, "gradients").ends_with("(at most 14.1 KiB)"), value(text, "gradients"));
  BOOST_TEST(value(text, "samples per step") == "6");
  BOOST_TEST(text.find("embeddings") == std::string::npos);

  const std::string mesh = report({"model.hidden=400000", "parallel.data=2"});  // 3600003 elements of 4 bytes
  BOOST_TEST_MESSAGE(mesh);
  const size_t of_rank = mesh.find("one of 2 processes");
  BOOST_REQUIRE(of_rank != std::string::npos);
  BOOST_TEST(value(mesh.substr(of_rank), "weights") == "13.7 MiB");
  BOOST_TEST(value(mesh.substr(of_rank), "optimizer") == "13.7 MiB");  // two moments of half of them
  BOOST_TEST(value(mesh.substr(of_rank), "between all ranks") == "13.7 MiB");
  BOOST_TEST(value(mesh.substr(of_rank), "  reduce_scatter") == "6.87 MiB");

  BOOST_TEST(throws_with([&] { report({"data.seq_len=7"}); }, "expected at most 1, found 7"));
  BOOST_TEST(throws_with([&] { report({"model.hiden=7"}); }, "did you mean 'model.hidden'?"));
}

BOOST_AUTO_TEST_CASE(families_are_known_by_their_type) {
  BOOST_CHECK_THROW(models::read_model_spec("{\"model_type\": \"classifier\"}", "config.json"), Error);
  const models::RegisteredFamily registered(classifier_family());
  BOOST_CHECK_THROW(models::RegisteredFamily{classifier_family()}, Error);
  BOOST_TEST(throws_with([] { models::read_model_spec("{\"model_type\": \"mamba\"}", "config.json"); },
                         ", classifier, found \"mamba\""));
  BOOST_TEST(throws_with([] { models::configure_model("classifier-tinny", {}); }, "did you mean 'classifier-tiny'?"));
}

BOOST_AUTO_TEST_SUITE_END()
