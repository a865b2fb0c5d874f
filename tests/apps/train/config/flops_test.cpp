// FLOPs by hand: what is frozen has no weight gradient, LoRA has products of its own, separate documents fewer scores.
#include "apps/train/config/flops.h"

#include <boost/test/unit_test.hpp>

#include "braid/models/data/prepare/prepare.h"
#include "braid/models/registry.h"
#include "tests/support/temp_folder.h"

using namespace braid;

BOOST_AUTO_TEST_SUITE(training_flops)

namespace {

constexpr int64_t T = 24, D = 32, F = 48, V = 258, L = 2;

std::unique_ptr<const models::ModelSpec> small(const std::string& tied = "false") {
  return models::configure_model("llama-tiny", {{"dim", "32"},
                                                {"n_layer", "2"},
                                                {"n_head", "4"},
                                                {"n_kv_head", "4"},
                                                {"intermediate_size", "48"},
                                                {"vocab_size", "258"},
                                                {"tie_word_embeddings", tied}});
}

}  // namespace

BOOST_AUTO_TEST_CASE(frozen_weights_have_no_gradient) {
  const double matrices = L * (4 * D * D + 3 * D * F);
  for (const std::string tied : {"false", "true"}) {
    const auto model = small(tied);
    const double forward = model->forward_flops(T);
    apps::TrainConfig config;
    BOOST_TEST(apps::sample_flops(config, *model, T).training() == model->training_flops(T));
    config.optimizer.groups = {"* frozen", "*.w1.weight trained"};
    BOOST_TEST(apps::sample_flops(config, *model, T).forward == forward);
    BOOST_TEST(apps::sample_flops(config, *model, T).backward == 2 * forward - 2 * T * (matrices + V * D - L * D * F));
    config.optimizer.groups = {"* frozen_until=5", "*.w1.weight trained"};
    BOOST_TEST(apps::sample_flops(config, *model, T, 0, 4).backward ==
               2 * forward - 2 * T * (matrices + V * D - L * D * F));
    BOOST_TEST(apps::sample_flops(config, *model, T, 0, 5).backward == 2 * forward);
    BOOST_TEST(apps::sample_flops(config, *model, T).backward == 2 * forward);
    config.optimizer.groups.clear();
    config.lora.rank = 3;
    config.lora.targets = {"*.wqkv"};
    const apps::SampleFlops lora = apps::sample_flops(config, *model, T);
    BOOST_TEST(lora.forward == forward + 2 * T * L * 3 * (D + 3 * D));
    BOOST_TEST(lora.backward == 2 * lora.forward - 2 * T * (matrices + V * D));
  }
}

BOOST_AUTO_TEST_CASE(documents_of_the_data_are_sequences_of_their_own) {
  using namespace models::text;
  const TempFolder folder;
  std::string lines;
  for (int i = 0; i < 20; ++i) lines += "{\"text\": \"" + std::string(static_cast<size_t>(1 + i % 9), 'a') + "\"}\n";
  folder.write("in.jsonl", lines);
  PrepareOptions options;
  options.inputs = {folder / "in.jsonl"};
  options.output = folder / "out";
  options.val_fraction = 0;
  prepare(options);
  const auto model = small();
  const Dataset joined(folder / "out", Split::train, T),
      separate(folder / "out", Split::train, T, {.documents = DocumentAttention::separate});
  BOOST_TEST(apps::forward_flops(*model, joined) == model->forward_flops(T));
  double expected = 0;
  for (int64_t i = 0; i < separate.size(); ++i) {
    const std::vector<int32_t> at = separate.sequence(i).positions;
    for (size_t t = 0; t < at.size(); ++t)
      if (t + 1 == at.size() || at[t + 1] == 0) expected += model->forward_flops(at[t] + 1);
  }
  expected /= static_cast<double>(separate.size());
  BOOST_TEST(separate.size() > 1);
  BOOST_TEST(apps::forward_flops(*model, separate) == expected, boost::test_tools::tolerance(1e-14));
  BOOST_TEST(expected < model->forward_flops(T));
  apps::TrainConfig config;
  BOOST_TEST(apps::sample_flops(config, *model, T, expected).training() == 3 * expected,
             boost::test_tools::tolerance(1e-14));
}

BOOST_AUTO_TEST_SUITE_END()
