// A language model of another family, registered here, is trained, resumed and continued by the commands of the
// program: a bigram model, whose next token depends on the last one alone.
#include <boost/test/unit_test.hpp>

#include "apps/cli/commands.h"
#include "braid/autograd/ops.h"
#include "braid/models/folders/pretrained.h"
#include "braid/models/language_model.h"
#include "braid/models/registry.h"
#include "braid/nn.h"
#include "braid/nn/observer.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/io/json.h"
#include "tests/apps/train/runs.h"

#include <nlohmann/json.hpp>

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(language_family)

namespace {

struct Sizes {
  int64_t vocabulary = 300, longest = 16, width = 8;
};

class Bigram final : public models::LanguageModel {
 public:
  Bigram(const Sizes& sizes, RandomKey key)
      : sizes_(sizes),
        table_(sizes.vocabulary, sizes.width, nn::Init::normal(0.1), child(key, "table")),
        out_(sizes.width, sizes.vocabulary, {}, child(key, "out")) {}

  std::unique_ptr<const models::ModelSpec> spec() const override;
  DType dtype() const override { return out_.weight().dtype(); }
  Device device() const override { return out_.weight().device(); }
  void to(DType dtype) override { nn::to(*this, dtype); }
  void to(Device device) override { nn::to(*this, device); }
  int64_t vocab_size() const override { return sizes_.vocabulary; }
  int64_t max_sequence_length() const override { return sizes_.longest; }
  Tensor hidden(const Tensor& ids, models::KvCache*, const nn::ActivationObserver* observer) const override {
    return nn::Pass{.observer = observer}.observe(table_(ids), "hidden");
  }
  Tensor logits(const Tensor& hidden) const override { return out_(hidden); }
  models::KvCache make_cache(int64_t) const override { return {}; }
  using LanguageModel::loss_sum;
  Tensor loss_sum(const Tensor& ids, const Tensor& targets) const override {
    return linear_cross_entropy(table_(ids), out_.weight(), targets);
  }
  void visit(nn::Visitor& v) const override {
    v("table", table_);
    v("out", out_);
  }

 private:
  Sizes sizes_;
  nn::Embedding table_;
  nn::Linear out_;
};

class BigramSpec final : public models::ModelSpec {
 public:
  explicit BigramSpec(const Sizes& sizes) : sizes_(sizes) {}
  std::string model_type() const override { return "bigram"; }
  std::string config_json() const override {
    std::string text = "{\n  \"model_type\": \"bigram\"";
    for (const models::ModelSetting& s : settings()) text += ",\n  \"" + s.name + "\": " + s.value;
    return text + "\n}\n";
  }
  std::vector<models::ModelSetting> settings() const override {
    return {{"vocab_size", std::to_string(sizes_.vocabulary), "tokens"},
            {"block_size", std::to_string(sizes_.longest), "longest sequence"},
            {"width", std::to_string(sizes_.width), "width"}};
  }
  std::unique_ptr<const ModelSpec> with(const models::SettingTexts& settings) const override {
    Sizes sizes = sizes_;
    for (const auto& [name, text] : settings) {
      int64_t& size = name == "vocab_size" ? sizes.vocabulary : name == "block_size" ? sizes.longest : sizes.width;
      size = detail::parse_int(text).value();
    }
    return std::make_unique<BigramSpec>(sizes);
  }
  std::unique_ptr<models::Model> make(RandomKey key, const dist::ProcessMesh&) const override {
    return std::make_unique<Bigram>(sizes_, key);
  }
  int64_t vocab_size() const override { return sizes_.vocabulary; }
  int64_t max_sequence_length() const override { return sizes_.longest; }

 private:
  Sizes sizes_;
};

std::unique_ptr<const models::ModelSpec> Bigram::spec() const { return std::make_unique<BigramSpec>(sizes_); }

models::ModelFamily bigram_family() {
  return {.model_type = "bigram",
          .presets = {"bigram-tiny"},
          .settings = BigramSpec({}).settings(),
          .read = [](const std::string& text, const std::string& file) -> std::unique_ptr<const models::ModelSpec> {
            const nlohmann::json json = io::parse_json(text, file);
            return std::make_unique<BigramSpec>(Sizes{json.at("vocab_size"), json.at("block_size"), json.at("width")});
          },
          .configure = [](const std::string&,
                          const models::SettingTexts& settings) { return BigramSpec({}).with(settings); }};
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_bigram_model_is_trained_and_resumed_by_the_program) {
  const models::RegisteredFamily registered(bigram_family());
  const auto run_in_process = [](const std::vector<std::string>& arguments) {
    return apps::run_program({apps::train_command(), apps::generate_command(), apps::bench_command()}, arguments);
  };
  const auto trained = [&](const std::filesystem::path& out, const std::vector<std::string>& more) {
    std::vector<std::string> all = {"train",
                                    "run.out=" + out.string(),
                                    "data.path=" + world().data().string(),
                                    "model.preset=bigram-tiny",
                                    "model.width=6",
                                    "train.batch_size=4",
                                    "schedule.name=constant",
                                    "schedule.warmup=0",
                                    "optimizer.lr=0.01",
                                    "eval.interval=5",
                                    "eval.samples=8",
                                    "sample.interval=10",
                                    "sample.tokens=5",
                                    "checkpoint.interval=5",
                                    "guard.spike=0",
                                    "run.threads=1"};
    all.insert(all.end(), more.begin(), more.end());
    return run_in_process(all);
  };
  const std::filesystem::path straight = world().fresh(), stopped = world().fresh();
  BOOST_TEST(trained(straight, {"train.steps=40"}) == 0);
  BOOST_TEST(trained(stopped, {"train.steps=15"}) == 0);
  BOOST_TEST(trained(stopped, {"train.steps=40"}) == 0);
  BOOST_TEST((weights(step(straight, 40)) == weights(step(stopped, 40))));
  const std::vector<apps::LogRow> log = apps::read_log(straight / "log.csv");
  BOOST_TEST(log.size() == 40u);
  BOOST_TEST(log.back()["loss"] < log.front()["loss"] - 0.5);

  const models::LoadedModel loaded = models::load_model(step(straight, 40));
  BOOST_TEST(loaded.model->spec()->model_type() == "bigram");
  BOOST_TEST(loaded.model->spec()->vocab_size() == loaded.tokenizer->vocab_size());  // of the data
  BOOST_TEST(run_in_process({"generate", straight.string(), "--tokens", "3", "--prompt", "12"}) == 0);
  BOOST_TEST(run_in_process({"bench", "--preset", "bigram-tiny", "--steps", "1", "--batch", "1", "--json"}) == 0);
  BOOST_TEST(trained(world().fresh(), {"train.steps=5", "data.seq_len=17"}) == 2);
  BOOST_TEST(trained(stopped, {"train.steps=50", "model.width=7"}) == 2);  // not the model of the checkpoint
}

BOOST_AUTO_TEST_SUITE_END()
