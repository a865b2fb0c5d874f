// braid train with train.z_loss and model.logit_softcap: resumed to the same bytes, losses without the z-loss.
#include "tests/apps/train/runs.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(train_z_loss)

namespace fs = std::filesystem;

BOOST_AUTO_TEST_CASE(a_resume_gives_the_same_bytes) {
  const fs::path plain = trained({}), whole = trained({"train.z_loss=0.01", "model.logit_softcap=3"});
  BOOST_TEST((weights(step(whole, kSteps)) != weights(step(plain, kSteps))));
  BOOST_TEST(
      (weights(step(trained({"train.z_loss=0", "model.logit_softcap=0"}), kSteps)) == weights(step(plain, kSteps))));
  BOOST_TEST(slurp(step(whole, kSteps) / "config.json").find("\"logit_softcap\": 3") != std::string::npos);
  const fs::path resumed = trained({"train.z_loss=0.01", "model.logit_softcap=3", "train.steps=5"});
  BOOST_TEST(train(resumed, {"schedule.name=constant", "train.z_loss=0.01", "model.logit_softcap=3"}).code == 0);
  check_same(resumed, whole);
  const Outcome changed =
      train(resumed, {"schedule.name=constant", "model.logit_softcap=3", "train.z_loss=0", "train.steps=11"});
  BOOST_TEST(changed.output.find("\n  train.z_loss: 0.01 -> 0.0\n") != std::string::npos, changed.output);
  check_failure(train(resumed, {"schedule.name=constant", "model.logit_softcap=2", "train.steps=12"}), 2,
                "logit_softcap");
}

// With steps too small to change a weight the losses of the log are those of a run without it.
BOOST_AUTO_TEST_CASE(the_log_is_without_it) {
  const std::vector<std::string> still = {"schedule.warmup=0", "optimizer.lr=1e-30"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), still.begin(), still.end());
    return apps::read_log(trained(more));
  };
  const auto plain = with({}), z = with({"train.z_loss=0.1"});
  BOOST_REQUIRE(z.size() == plain.size());
  for (size_t i = 0; i < plain.size(); ++i) {
    BOOST_TEST(z[i]["loss"] == plain[i]["loss"]);
    BOOST_TEST(z[i]["grad_norm"] != plain[i]["grad_norm"]);
    if (plain[i].has("val_loss")) BOOST_TEST(z[i]["val_loss"] == plain[i]["val_loss"]);
  }
}

BOOST_AUTO_TEST_CASE(bad_values_and_models_without_it_are_rejected) {
  check_failure(train(world().fresh(), {"train.z_loss=-1"}), 2,
                "bad value for train.z_loss in the command line: expected a number from 0 to 1, found -1");
  check_failure(train(world().fresh(), {"model.logit_softcap=-1"}), 2, "model.logit_softcap");
  check_failure(run("train model.preset=vit-28 train.z_loss=0.1 --dry-run"), 2,
                "a model of type vit has no z-loss: expected 0 for train.z_loss, found 0.1");
  const Outcome pairs =
      run("train model.preset=seq2seq-tiny train.z_loss=0.01 data.path=pairs:reverse eval.interval=5 "
          "train.steps=3 schedule.warmup=1 train.batch_size=4 run.out=" +
          world().fresh().string());
  BOOST_TEST(pairs.code == 0, pairs.output);
}

BOOST_AUTO_TEST_SUITE_END()
