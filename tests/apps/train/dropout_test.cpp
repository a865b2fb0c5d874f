// braid train with model.dropout: the same bytes however it is computed, none outside of training.
#include "tests/apps/train/runs.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(train_dropout)

namespace fs = std::filesystem;

BOOST_AUTO_TEST_CASE(the_same_bytes_at_any_thread_count_with_recomputation_and_after_a_resume) {
  const fs::path whole = trained({"model.dropout=0.2", "run.threads=2"}), plain = trained({});
  BOOST_TEST((weights(step(whole, kSteps)) != weights(step(plain, kSteps))));
  BOOST_TEST((weights(step(trained({"model.dropout=0"}), kSteps)) == weights(step(plain, kSteps))));
  check_same(trained({"model.dropout=0.2", "run.threads=1", "train.recompute=true"}), whole);
  const fs::path resumed = trained({"model.dropout=0.2", "train.steps=5"});
  BOOST_TEST(train(resumed, {"schedule.name=constant", "model.dropout=0.2"}).code == 0);
  check_same(resumed, whole);
  // Another seed draws others; the setting may change, and it is told.
  const Outcome changed = train(resumed, {"schedule.name=constant", "model.dropout=0.1", "train.steps=11"});
  BOOST_TEST(changed.output.find("\n  model.dropout: 0.2 -> 0.1\n") != std::string::npos, changed.output);
  // It is no part of the model: its files and what is computed with them.
  BOOST_TEST(slurp(step(whole, kSteps) / "config.json") == slurp(step(plain, kSteps) / "config.json"));
}

// With steps too small to change a weight: which sequences a step has, not how they are spread, decides what is
// dropped; validation drops nothing.
BOOST_AUTO_TEST_CASE(accumulation_drops_the_same_and_validation_nothing) {
  const std::vector<std::string> still = {"schedule.warmup=0", "optimizer.lr=1e-30"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), still.begin(), still.end());
    return apps::read_log(trained(more));
  };
  const auto plain = with({"train.batch_size=4"}), one = with({"train.batch_size=4", "model.dropout=0.3"}),
             two = with({"train.batch_size=1", "train.accumulate=4", "model.dropout=0.3"});
  for (size_t i = 0; i < plain.size(); ++i) {
    BOOST_TEST(std::fabs(one[i]["loss"] - two[i]["loss"]) < 1e-5);
    BOOST_TEST(std::fabs(one[i]["loss"] - plain[i]["loss"]) > 1e-5);
    if (plain[i].has("val_loss")) BOOST_TEST(one[i]["val_loss"] == plain[i]["val_loss"]);
  }
}

BOOST_AUTO_TEST_CASE(bad_values_and_models_without_it_are_rejected) {
  check_failure(train(world().fresh(), {"model.dropout=1"}), 2,
                "bad value for model.dropout in the command line: expected a number from 0 to below 1, found 1");
  const Outcome images = run("train model.preset=vit-28 model.dropout=0.1 --dry-run");
  check_failure(images, 2, "a model of type vit has no dropout by model.dropout: expected 0, found 0.1");
  const Outcome pairs =
      run("train model.preset=seq2seq-tiny model.dropout=0.2 data.path=pairs:reverse eval.interval=5 "
          "train.steps=3 schedule.warmup=1 train.batch_size=4 run.out=" +
          world().fresh().string());
  BOOST_TEST(pairs.code == 0, pairs.output);
}

BOOST_AUTO_TEST_SUITE_END()
