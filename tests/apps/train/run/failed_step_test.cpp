// A step with NaN or a loss spike: its state is kept, counts as no checkpoint, and the advice of the message helps.

#include <nlohmann/json.hpp>

#include "braid/models/training/checkpoint/find_model.h"
#include "braid/models/training/checkpoint/manifest.h"
#include "braid/tensor/io/json.h"
#include "braid/tensor/io/safetensors.h"
#include "tests/apps/train/runs.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(failed_step)

namespace fs = std::filesystem;

namespace {

using Settings = std::vector<std::string>;
Settings operator+(Settings a, const Settings& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

const Settings kBase = {"schedule.name=constant", "schedule.warmup=0", "eval.interval=0", "train.steps=40"};
// Steps of this size throw the weights about.
const Settings kWild = kBase + Settings{"optimizer.lr=30", "guard.spike=3", "guard.warmup=2"};

std::vector<int64_t> steps_of(const fs::path& run) {
  std::vector<int64_t> steps;
  for (const models::StepFolder& f : models::step_folders(run)) steps.push_back(f.step);
  return steps;
}

fs::path failed_folder(const fs::path& run) {
  fs::path found;
  for (const auto& entry : fs::directory_iterator(run)) {
    if (!entry.path().filename().string().starts_with("failed-step-")) continue;
    BOOST_TEST(found.empty());
    found = entry.path();
  }
  BOOST_REQUIRE(!found.empty());
  return found;
}

nlohmann::json failure_of(const fs::path& folder) {
  return io::read_json_file((folder / "failure.json").string(), 1 << 20);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_failed_step_counts_as_no_checkpoint_and_the_advice_helps) {
  const fs::path out = world().fresh();
  BOOST_TEST(train(out, kBase + Settings{"train.steps=10", "checkpoint.interval=5"}).code == 0);
  const Outcome wild = train(out, kWild);
  check_failure(wild, 5, "loss spike at step ");
  const fs::path failed = failed_folder(out);
  for (const std::string& words :
       {std::string("; the run resumes from step-00000010: before you start it again, lower optimizer.lr (now 30), or "
                    "set guard.spike=0"),
        failed.string() + " has its weights, batch and reason"})
    BOOST_TEST(has(wild, words), wild.output);
  BOOST_TEST(steps_of(out) == (std::vector<int64_t>{5, 10}), boost::test_tools::per_element());
  BOOST_TEST(slurp(out / "latest") == "step-00000010\n");
  BOOST_TEST(models::find_model(out) == step(out, 10));
  BOOST_TEST(!models::find_damage(failed));

  const Outcome rest = train(out, kBase + Settings{"optimizer.lr=1e-3", "guard.spike=6", "guard.warmup=0"});
  BOOST_TEST(rest.code == 0, rest.output);
  BOOST_TEST(has(rest, "resuming from " + step(out, 10).string()), rest.output);
  BOOST_TEST(apps::read_log(out).back()["loss"] < 5.6);
}

// The folder has the weights and the batch: the loss of the failed step comes out of it again, in two ways.
BOOST_AUTO_TEST_CASE(its_folder_reproduces_the_step) {
  const fs::path out = world().fresh();
  check_failure(train(out, kWild + Settings{"train.accumulate=2"}), 5, "loss spike at step ");
  const fs::path failed = failed_folder(out);
  const nlohmann::json failure = failure_of(failed);
  const int64_t number = failure.at("step");
  BOOST_TEST(failed.filename().string() == "failed-" + models::step_name(number));
  BOOST_TEST(failure.at("lr") == 30.0);
  BOOST_TEST(failure.at("windows").size() == 4u);
  BOOST_TEST(failure.at("reason").get<std::string>().find("loss spike at step ") == 0u);
  const double loss = failure.at("loss");

  const fs::path dumped = out / "dump.safetensors";
  const Outcome dump = run("dump " + failed.string() + " --ids " + (failed / "batch.safetensors").string() + " -o " +
                           dumped.string() + " --device cpu");
  BOOST_TEST(dump.code == 0, dump.output);
  BOOST_TEST(std::fabs(io::SafetensorsFile(dumped.string()).load("loss").to_vector<float>()[0] / loss - 1) < 1e-5);

  const fs::path again = world().fresh();
  fs::create_directories(again);
  fs::copy(failed, step(again, static_cast<int>(number) - 1), fs::copy_options::recursive);
  const Outcome repeated =
      train(again, kWild + Settings{"train.accumulate=2", "guard.spike=0", "train.steps=" + std::to_string(number)});
  BOOST_TEST(repeated.code == 0, repeated.output);
  BOOST_TEST(apps::read_log(again).back()["loss"] == loss);
}

BOOST_AUTO_TEST_CASE(the_same_failure_does_not_repeat_for_ever) {
  const fs::path out = world().fresh();
  const Outcome first = train(out, kWild), second = train(out, kWild), third = train(out, kWild);
  check_failure(first, 5, "; there is no checkpoint, so the run begins anew: before you start it again");
  BOOST_TEST(!has(first, "the next start"), first.output);
  check_failure(second, 5,
                "it is failure 2 of this step with these settings, and the next start with them will be rejected");
  check_failure(third, 5, "has failed 2 times with these settings, and would fail again (loss spike at step ");
  BOOST_TEST(!has(third, "step 1/"), third.output);
  BOOST_TEST(train(out, kWild + Settings{"optimizer.lr=1e-3"}).code == 0);
}

// Saved after every step, the newest checkpoint has the weights that the failed step was measured with.
BOOST_AUTO_TEST_CASE(a_checkpoint_of_the_failed_weights_is_withdrawn) {
  const fs::path out = world().fresh();
  const Outcome wild = train(out, kWild + Settings{"checkpoint.interval=1", "checkpoint.keep=3"});
  check_failure(wild, 5, "loss spike at step ");
  const fs::path failed = failed_folder(out);
  const int64_t number = failure_of(failed).at("step");
  BOOST_TEST(steps_of(out) == (std::vector<int64_t>{number - 3, number - 2}), boost::test_tools::per_element());
  BOOST_TEST(slurp(out / "latest") == models::step_name(number - 2) + "\n");
  BOOST_TEST(!models::find_damage(failed));
  BOOST_TEST(fs::exists(failed / "batch.safetensors"));
  const Outcome rest = train(out, kBase + Settings{"optimizer.lr=1e-3"});
  BOOST_TEST(has(rest, "resuming from " + step(out, static_cast<int>(number) - 2).string()), rest.output);
}

BOOST_AUTO_TEST_CASE(the_only_checkpoint_stays) {
  const fs::path out = world().fresh();
  const int last = static_cast<int>([&] {
    const fs::path probe = world().fresh();
    train(probe, kWild);
    return failure_of(failed_folder(probe)).at("step").get<int64_t>() - 1;
  }());
  BOOST_TEST(train(out, kWild + Settings{"train.steps=" + std::to_string(last)}).code == 0);
  const Outcome wild = train(out, kWild);
  check_failure(wild, 5,
                models::step_name(last) + " has the weights of the failed step: if it fails again, move it away");
  BOOST_TEST(steps_of(out) == std::vector<int64_t>{last}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(not_a_number) {
  const fs::path out = world().fresh();
  const Outcome result = train(out, {"optimizer.lr=1e30"});
  check_failure(result, 5, "contains NaN or Inf at step 3; no update was made; ");
  BOOST_TEST(has(result, "there is no checkpoint, so the run begins anew"), result.output);
  BOOST_TEST(!models::find_damage(out / "failed-step-00000003"));
  BOOST_TEST(models::step_folders(out).empty());
  // An update that leaves the range of f32 is noticed at the next step, or at the checkpoint before it.
  const Settings worse = {"optimizer.lr=3e38", "optimizer.weight_decay=1e6", "schedule.warmup=0"};
  check_failure(train(world().fresh(), worse), 5,
                "the weights before step 2 contain NaN or Inf, first in tok_embeddings");
  const fs::path saving = world().fresh();
  check_failure(train(saving, worse + Settings{"checkpoint.interval=1"}), 5,
                "contains NaN or Inf after step 1; no checkpoint was written; ");
  BOOST_TEST(models::step_folders(saving).empty());
  BOOST_TEST(failure_of(saving / "failed-step-00000001").at("windows").size() == 2u);
}

BOOST_AUTO_TEST_CASE(values_that_vanish_or_overflow_in_f32_are_rejected) {
  const fs::path out = world().fresh();
  check_failure(train(out, {"optimizer.eps=1e-50"}), 2, "optimizer setting eps must be 0 or at least 1.17549435");
  check_failure(train(out, {"optimizer.lr=1e300"}), 2, "optimizer setting lr must be at most 3.4028234");
  BOOST_TEST(!fs::exists(out));
}

BOOST_AUTO_TEST_CASE(a_run_of_an_older_version_resumes_with_a_note) {
  const fs::path out = world().fresh();
  BOOST_TEST(train(out, {"train.steps=5", "schedule.name=constant"}).code == 0);
  write(out / "failed-step-00000006.txt", "step 6\nreason loss spike at step 6\n");
  const Outcome rest = train(out, {"schedule.name=constant"});
  BOOST_TEST(rest.code == 0, rest.output);
  BOOST_TEST(has(rest, "step-00000005 was written because the step after it failed"), rest.output);
}

BOOST_AUTO_TEST_SUITE_END()
