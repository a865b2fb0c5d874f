// A run that continues with another context: what goes on, what is told, what is rejected.
#include "tests/apps/train/runs.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(train_context)

namespace fs = std::filesystem;

namespace {

const std::vector<std::string> kConstant = {"schedule.name=constant"};
const std::vector<std::string> kLonger = {"schedule.name=constant", "model.block_size=80", "data.seq_len=80"};

std::vector<std::string> joined(std::vector<std::string> all, const std::vector<std::string>& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

void succeeds(const fs::path& out, const std::vector<std::string>& settings, const std::string& words = "") {
  const Outcome result = train(out, settings);
  BOOST_TEST(result.code == 0, result.output);
  BOOST_TEST(result.output.find(words) != std::string::npos, "no '" << words << "' in: " << result.output);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_run_continues_with_a_longer_context_and_resumes_to_the_same_bytes) {
  const fs::path out = world().fresh(), stopped = world().fresh();
  for (const fs::path& run : {out, stopped}) succeeds(run, joined(kConstant, {"train.steps=4"}));
  succeeds(out, kLonger, "\n  context 32 -> 80\n");
  succeeds(stopped, joined(kLonger, {"train.steps=5", "run.threads=1"}), "\n  model.block_size: 32 -> 80\n");
  const Outcome rest = train(stopped, kLonger);
  BOOST_TEST(rest.code == 0, rest.output);
  BOOST_TEST(rest.output.find("context") == std::string::npos, rest.output);
  check_same(stopped, out);
  // The curve, the counts of steps and tokens and the moments continue.
  const auto rows = apps::read_log(out);
  BOOST_REQUIRE(rows.size() == 10u);
  BOOST_TEST(rows[3]["tokens"] == 4 * 2 * 32);
  BOOST_TEST(rows[9]["tokens"] == 4 * 2 * 32 + 6 * 2 * 80);
  const models::RunState state = models::read_state(step(out, 10));
  BOOST_REQUIRE(state.earlier.size() == 1u);
  BOOST_TEST(state.earlier[0].seq_len == 32);
  BOOST_TEST(state.earlier[0].sequences == 8);
  BOOST_TEST(state.seq_len == 80);
  BOOST_TEST(slurp(step(out, 10) / "config.json").find("\"block_size\": 80") != std::string::npos);
  BOOST_TEST(slurp(step(out, 4) / "trainer/state.json").find("earlier") == std::string::npos);
  // And back again.
  succeeds(out, joined(kConstant, {"train.steps=12"}), "\n  context 80 -> 32\n");
  BOOST_TEST(apps::read_log(out).back()["tokens"] == 4 * 2 * 32 + 6 * 2 * 80 + 2 * 2 * 32);
  BOOST_TEST(models::read_state(step(out, 12)).earlier.size() == 2u);
}

// With steps too small to change a weight, the loss of a step shows which sequences it read and the weights what the
// change did to them.
BOOST_AUTO_TEST_CASE(weights_stay_and_the_order_is_that_of_the_rest) {
  const std::vector<std::string> still = {"schedule.name=constant", "schedule.warmup=0", "optimizer.lr=1e-30",
                                          "train.batch_size=1"};
  const fs::path out = world().fresh();
  succeeds(out, joined(still, {"train.steps=4"}));
  const std::string before = slurp(step(out, 4) / "model.safetensors");
  succeeds(out, joined(still, {"train.steps=9", "model.block_size=64"}));
  BOOST_TEST((slurp(step(out, 9) / "model.safetensors") == before));
  // The same rest as in one micro-batch of other sizes; every step of it differs.
  const fs::path other = world().fresh();
  succeeds(other, joined(still, {"train.steps=2", "train.batch_size=2"}));
  succeeds(other, joined(still, {"train.steps=7", "model.block_size=64"}));
  const auto a = apps::read_log(out), b = apps::read_log(other);
  for (size_t i = 0; i < 5; ++i) BOOST_TEST(a.at(4 + i)["loss"] == b.at(2 + i)["loss"]);
}

BOOST_AUTO_TEST_CASE(epochs_are_those_of_the_data) {
  const auto go = [&](const fs::path& out, const std::vector<std::string>& more) {
    std::vector<std::string> all = settings(out, joined(kConstant, more));
    std::erase_if(all, [](const std::string& text) { return text == "train.steps=10"; });
    return run(join(all, " "));
  };
  const fs::path out = world().fresh();
  BOOST_TEST(go(out, {"train.steps=5"}).code == 0);
  const Outcome rest = go(out, {"train.epochs=1", "model.block_size=96", "train.batch_size=1"});
  BOOST_TEST(rest.code == 0, rest.output);
  const auto dataset = slurp(world().data() / "dataset.json");
  const auto tokens = std::stod(dataset.substr(dataset.find("\"tokens\": ", dataset.find("\"train\"")) + 10));
  const double read = apps::read_log(out).back()["tokens"];
  BOOST_TEST(read <= tokens - 1);
  BOOST_TEST(read > tokens - 1 - 96);
}

BOOST_AUTO_TEST_CASE(the_scaling_of_rotations_may_change_with_it) {
  const fs::path out = world().fresh();
  succeeds(out, joined(kConstant, {"train.steps=4"}));
  const std::vector<std::string> scaling = {"model.rope_scaling=linear", "model.rope_scaling_factor=2"};
  check_failure(train(out, joined(kConstant, scaling)), 2, "(it may change together with the longest sequence)");
  check_failure(train(out, joined(kConstant, {"data.seq_len=80"})), 2,
                "expected at most 32, found 80; with rotary positions a larger model.block_size may be given");
  check_failure(train(out, joined(kLonger, {"model.n_layer=3"})), 2,
                "expected model.n_layer = 2, found 3; model.block_size = 32, found 80; model.profile");
  succeeds(out, joined(kLonger, scaling), "\n  model.rope_scaling_factor: 1 -> 2\n");
  // The best checkpoint is one of this context: the earlier validation was another measure.
  const Outcome best = train(out, joined(kLonger, joined(scaling, {"train.steps=11", "checkpoint.best=true"})));
  BOOST_TEST(best.code == 0, best.output);
  BOOST_TEST(best.output.find("in another context or with other last weights of data.sources, cannot be compared") !=
                 std::string::npos,
             best.output);
}

// Also not at the resume after the next.
BOOST_AUTO_TEST_CASE(validations_of_other_samples_or_another_context_do_not_end_a_run) {
  const auto end = [](const fs::path& out, const std::string& measure, int steps) {
    const Outcome result = train(out, {"eval.interval=1", "eval.patience=3", "optimizer.lr=1e-30", measure,
                                       "schedule.name=constant", "train.steps=" + std::to_string(steps)});
    BOOST_TEST(result.code == 0, result.output);
    return apps::read_log(out).back().step;
  };
  for (const auto& [before, after] :
       {std::pair{"eval.samples=2", "eval.samples=4"}, {"data.seq_len=8", "data.seq_len=16"}})
    for (const auto& [first, then] : {std::pair{before, after}, {after, before}}) {  // one of them has the lower loss
      const fs::path out = world().fresh();
      BOOST_TEST(end(out, first, 3) == 3);
      BOOST_TEST(end(out, then, 4) == 4);
      BOOST_TEST(end(out, then, 6) == 6);
      BOOST_TEST(end(out, then, 9) == 7);
    }
}

// The folder of a run in place of its file of settings, also where it was moved.
BOOST_AUTO_TEST_CASE(the_folder_of_a_run_names_its_settings) {
  const fs::path out = world().fresh(), moved = world().fresh();
  succeeds(out, kConstant);
  fs::rename(out, moved);
  const Outcome longer = run("train " + moved.string() + " train.steps=12 model.block_size=64");
  BOOST_TEST(longer.code == 0, longer.output);
  BOOST_TEST(longer.output.find("\n  context 32 -> 64\n") != std::string::npos, longer.output);
  BOOST_TEST(apps::read_log(moved).size() == 12u);
  BOOST_TEST(!fs::exists(out));
}

BOOST_AUTO_TEST_SUITE_END()
