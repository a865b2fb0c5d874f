// StrictBits of models of images, of pairs of sequences and of preferences, which data ranks share: one result on every
// mesh, for any micro-batches and threads and on every instruction set.
#include "braid/models/families/seq2seq/pairs.h"
#include "braid/models/families/vit/model.h"
#include "braid/models/training/preferences.h"
#include "tests/distributed/strict_support.h"
#include "tests/models/families/seq2seq/support.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(strict_tasks)

namespace {

constexpr int64_t kSamples = 7;
constexpr RandomKey kKey{3, 0};

// Makes a model with random weights.
template <class M, class Config>
auto maker(const Config& config, double dropout = 0) {
  return [=](const dist::ProcessMesh& mesh) -> std::unique_ptr<models::Model> {
    auto model = std::make_unique<M>(config, kKey, mesh);
    randomise(*model, kKey, 0.2);
    model->set_dropout(dropout);
    return model;
  };
}

models::Batch with_keys(models::Batch batch, int64_t step) {
  std::vector<int64_t> keys;
  for (int64_t i = 0; i < batch.samples(); ++i) keys.push_back(1000 * step + i);
  batch.add({models::kSampleKeys, from_vector(keys, {batch.samples()})});
  return batch;
}

StrictTask preferences(const models::PreferenceOptions& options) {
  const models::DcformerConfig config = parity_config("dcformer");
  const auto batch = [config](int64_t step) {
    models::Batch all = step_batch(config, step, 2 * kSamples, 21);
    std::vector<double> reference;
    for (int64_t i = 0; i < 2 * kSamples; ++i) reference.push_back(60 + 1.25 * static_cast<double>((i * 7 + step) % 5));
    all.add({models::kReferenceLosses, from_vector(reference, {2 * kSamples})});
    return all;
  };
  return {.make = [config](const dist::ProcessMesh& mesh) { return make_model(config, mesh, DType::f32); },
          .batch = batch,
          .objective = std::make_shared<models::PreferenceObjective>(options)};
}

StrictTask pairs(bool compose, bool lengths, double dropout) {
  models::Seq2SeqConfig config = small_seq2seq(compose);
  config.hidden_size = 24, config.num_attention_heads = 4, config.intermediate_size = 35;
  config.vocab_size = models::kPairVocabulary;
  config.max_source_length = config.max_target_length = 40;
  const auto batch = [=](int64_t step) {
    std::vector<int64_t> indices;
    for (int64_t i = 0; i < kSamples; ++i) indices.push_back(kSamples * step + i);
    models::Batch all = models::pair_batch(models::PairTask("dates"), models::text::Split::train, indices);
    if (lengths) all.add({models::kSourceLengths, models::source_lengths_of(all.at("source_ids"))});
    return dropout > 0 ? with_keys(all, step) : all;
  };
  return {.make = maker<models::Seq2Seq>(config, dropout), .batch = batch};
}

models::VitConfig vit() {
  models::VitConfig c;
  c.hidden_size = 24, c.num_hidden_layers = 2, c.num_attention_heads = 4, c.intermediate_size = 35;
  c.image_size = {12, 16}, c.patch_size = {4}, c.num_channels = 3, c.num_labels = 5;
  return c;
}

StrictTask images(const models::VitConfig& config, bool mixed) {
  const auto batch = [=](int64_t step) {
    const auto stream = static_cast<uint64_t>(step);
    std::vector<int64_t> labels;
    for (int64_t i = 0; i < kSamples; ++i) labels.push_back((i + step) % config.num_labels);
    models::Batch all{{"pixel_values", randn({kSamples, 3, 12, 16}, {7, stream})},
                      {"labels", from_vector(labels, {kSamples})}};
    if (mixed) all.add({"label_weights", rand({kSamples, config.num_labels}, {8, stream})});
    return config.random_training() ? with_keys(all, step) : all;
  };
  return {.make = maker<models::Vit>(config), .batch = batch};
}

// And that layouts differ without the scope.
void check_everywhere(const std::string& name, const StrictTask& task) {
  BOOST_TEST_CONTEXT(name) {
    for (const DType compute : {DType::f32, DType::bf16}) {
      const Bits want = trained(task, {.compute = compute});
      BOOST_TEST(std::isfinite(want.metrics.back()));
      on_every_set([&] {
        BOOST_TEST(trained(task, {.mesh = {3}, .of_micro_batch = 2, .threads = 2, .compute = compute}) == want);
      });
      for (const int64_t ranks : {2, 7})
        BOOST_TEST(trained(task, {.mesh = {ranks}, .compute = compute}) == want, ranks);
      BOOST_TEST(trained(task, {.of_micro_batch = 1, .compute = compute}) == want);
    }
    BOOST_TEST(trained(task, {.mesh = {2}, .rule = "muon"}) == trained(task, {.rule = "muon"}));
    BOOST_TEST(trained(task, {.mesh = {3}, .strict = false}) != trained(task, {.strict = false}));
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(preferences_have_one_result) {
  check_everywhere("preferences", preferences({.beta = 0.7}));
  check_everywhere("all terms",
                   preferences({.beta = 2.5, .label_smoothing = 0.1, .length_normalised = true, .sft_weight = 2}));
}

BOOST_AUTO_TEST_CASE(pairs_have_one_result) {
  check_everywhere("composed", pairs(true, false, 0));
  check_everywhere("lengths and dropout", pairs(true, true, 0.2));
  check_everywhere("not composed", pairs(false, true, 0));
}

BOOST_AUTO_TEST_CASE(images_have_one_result) {
  models::VitConfig config = vit();
  check_everywhere("class token", images(config, false));
  config.stem_channels = {6}, config.rep_size = true, config.use_dcmha = true;
  check_everywhere("convolutions", images(config, true));
  config.stem_channels = {}, config.pool_type = "gap", config.posemb = "sincos2d";
  config.hidden_dropout_prob = config.drop_path_rate = config.compose_dropout = 0.2;
  check_everywhere("mean of patches, dropout", images(config, true));
}

BOOST_AUTO_TEST_CASE(many_steps_leave_no_difference) {
  for (const StrictTask& task : {preferences({.beta = 0.7}), pairs(true, false, 0), images(vit(), false)})
    BOOST_TEST(trained(task, {.mesh = {3}, .of_micro_batch = 1, .steps = 60}) == trained(task, {.steps = 60}));
}

BOOST_AUTO_TEST_SUITE_END()
