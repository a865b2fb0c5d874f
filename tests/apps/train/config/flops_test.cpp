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
  // Below the first trained weight, w1 of the first layer, no gradient is computed: of w1 and w3's inputs, of attention
  // and its projections; with LoRA below its first A.
  const double below = 2 * T * (2 * D * F + 4 * D * D) + 2 * 4 * D * T * (T + 1) / 2;
  const double below_lora = 2 * T * (3 * D * D + 3 * D);
  for (const std::string tied : {"false", "true"}) {
    const auto model = small(tied);
    const double forward = models::forward_flops(*model, T).total();
    const models::Batch batch = models::blank_batch(*model, 1, T);
    apps::TrainConfig config;
    BOOST_TEST(apps::sample_flops(config, *model, batch).training() == 3 * forward);
    config.optimizer.groups = {"* frozen", "*.w1.weight trained"};
    BOOST_TEST(apps::sample_flops(config, *model, batch).forward == forward);
    BOOST_TEST(apps::sample_flops(config, *model, batch).backward ==
               2 * forward - 2 * T * (matrices + V * D - L * D * F) - below);
    config.optimizer.groups = {"* frozen_until=5", "*.w1.weight trained"};
    BOOST_TEST(apps::sample_flops(config, *model, batch, 4).backward ==
               2 * forward - 2 * T * (matrices + V * D - L * D * F) - below);
    BOOST_TEST(apps::sample_flops(config, *model, batch, 5).backward == 2 * forward);
    BOOST_TEST(apps::sample_flops(config, *model, batch).backward == 2 * forward);
    config.optimizer.groups.clear();
    config.lora.rank = 3;
    config.lora.targets = {"*.wqkv"};
    const apps::SampleFlops lora = apps::sample_flops(config, *model, batch);
    BOOST_TEST(lora.forward == forward + 2 * T * L * 3 * (D + 3 * D));
    BOOST_TEST(lora.backward == 2 * lora.forward - 2 * T * (matrices + V * D) - below_lora);
  }
}

BOOST_AUTO_TEST_CASE(documents_of_the_data_are_sequences_of_their_own) {
  using namespace models::text;
  const TempFolder folder;
  std::string lines;
  for (int i = 0; i < 20; ++i) lines += "{\"text\": \"" + std::string(static_cast<size_t>(1 + i % 9), 'a') + "\"}\n";
  folder.write("in.jsonl", lines);
  PrepareOptions options{.inputs = {folder / "in.jsonl"}, .output = folder / "out", .val_fraction = 0};
  prepare(options);
  const auto model = small();
  const Dataset joined(folder / "out", Split::train, T),
      separate(folder / "out", Split::train, T, {.documents = DocumentAttention::separate});
  const apps::TrainConfig config;
  const auto flops = [&](const Dataset& data) {
    return apps::sample_flops(config, *model, apps::typical_batch(*model, data));
  };
  BOOST_TEST(flops(joined).forward == models::forward_flops(*model, T).total());
  double expected = 0;
  for (int64_t i = 0; i < separate.size(); ++i) {
    const std::vector<int32_t> at = separate.sequence(i).positions;
    for (size_t t = 0; t < at.size(); ++t)
      if (t + 1 == at.size() || at[t + 1] == 0) expected += models::forward_flops(*model, at[t] + 1).total();
  }
  expected /= static_cast<double>(separate.size());
  BOOST_TEST(separate.size() > 1);
  BOOST_TEST(flops(separate).forward == expected, boost::test_tools::tolerance(1e-14));
  BOOST_TEST(expected < models::forward_flops(*model, T).total());
  BOOST_TEST(flops(separate).training() == 3 * expected, boost::test_tools::tolerance(1e-14));
}

BOOST_AUTO_TEST_SUITE_END()
