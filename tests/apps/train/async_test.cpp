// checkpoint.async: the files, the messages and the ends of a run are those of checkpoints that training waits for.
#include "braid/models/training/checkpoint/manifest.h"
#include "tests/apps/train/disk_errors.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(train_async)

namespace fs = std::filesystem;

namespace {

const std::vector<std::string> kOften = {"checkpoint.async=true", "checkpoint.interval=2"};
const std::vector<std::string> kOnce = {"checkpoint.async=true", "checkpoint.interval=5"};  // and at the end, not async

// Environment variables of processes that begin meanwhile.
class Preloaded {
 public:
  explicit Preloaded(const std::string& fault) {
    ::setenv("LD_PRELOAD", BRAID_FAULTS, 1), ::setenv("BRAID_FAULT", fault.c_str(), 1);
    const char* asan = std::getenv("ASAN_OPTIONS");
    asan_ = asan ? asan : "";
    ::setenv("ASAN_OPTIONS", (asan_ + ":verify_asan_link_order=0").c_str(), 1);
  }
  ~Preloaded() {
    ::unsetenv("LD_PRELOAD"), ::unsetenv("BRAID_FAULT");
    ::setenv("ASAN_OPTIONS", asan_.c_str(), 1);
  }

 private:
  std::string asan_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(the_files_are_those_of_a_run_that_waits) {
  const std::vector<std::string> more = {"checkpoint.interval=2", "checkpoint.keep_every=4", "checkpoint.best=true",
                                         "eval.interval=3", "train.ema=0.5"};
  std::vector<std::string> async = more;
  async.push_back("checkpoint.async=true");
  const fs::path sync_out = world().fresh(), out = world().fresh();
  BOOST_REQUIRE(train(sync_out, more).code == 0);
  const Outcome result = train(out, async);
  BOOST_REQUIRE_MESSAGE(result.code == 0, result.output);
  const std::vector<models::StepFolder> all = models::step_folders(sync_out);
  BOOST_REQUIRE(models::step_folders(out).size() == all.size());
  for (const models::StepFolder& f : all) {
    for (const char* file : {"model.safetensors", "trainer/optimizer.safetensors", "config.json", "tokenizer.json"}) {
      const fs::path other = step(out, static_cast<int>(f.step)) / file;
      BOOST_TEST(fs::exists(other) == fs::exists(f.path / file), other);
      BOOST_TEST((slurp(other) == slurp(f.path / file)), other);
    }
    BOOST_TEST(!models::find_damage(step(out, static_cast<int>(f.step))));
    const models::RunState state = models::read_state(step(out, static_cast<int>(f.step)));
    BOOST_TEST(state.samples == models::read_state(f.path).samples);
  }
  for (const char* file : {"latest", "best"}) BOOST_TEST(slurp(out / file) == slurp(sync_out / file));
  check_same(out, sync_out);
}

BOOST_AUTO_TEST_CASE(one_error_of_the_disk_is_survived) { check_single_errors(kOften); }

BOOST_AUTO_TEST_CASE(the_third_failure_in_a_row_ends_with_4) { check_third_failure(kOften); }

// A best checkpoint that could not be written is not the best one of those to come.
BOOST_AUTO_TEST_CASE(what_failed_is_not_the_best) {
  const fs::path out = world().fresh();
  const Outcome result = train(
      out, {"checkpoint.async=true", "checkpoint.best=true", "eval.interval=1", "optimizer.lr=1e-30", "train.steps=4"},
      fault("rename", "step-00000001", 0, 1, EIO));
  BOOST_TEST(result.code == 0, result.output);
  BOOST_TEST(has(result, "(failure 1 of 3 in a row; "), result.output);
  BOOST_TEST(!slurp(out / "best").empty());
  BOOST_TEST(slurp(out / "best") != "step-00000001\n");  // of a loss that is the same after every step
}

BOOST_AUTO_TEST_CASE(killed_at_each_call_it_goes_on_to_the_same_bytes) {
  for (const auto& [call, part, stride] : {std::tuple{"fallocate", "step-00000005", 1},
                                           {"pwrite", "step-00000005", 13},
                                           {"fsync", "step-00000005", 2},
                                           {"open", "step-00000005", 5},
                                           {"rename", "step-00000005", 1},
                                           {"rename", "latest", 1},
                                           {"fsync", "log.csv", 1}}) {
    int killed = 0;
    for (int pass = 0;; pass += stride) {
      BOOST_TEST_CONTEXT(call << " of " << part << " after " << pass) {
        const fs::path out = world().fresh();
        const Outcome result = train(out, kOnce, fault(call, part, pass, 1, kKilled));
        if (result.code != 0) {
          ++killed;
          const Outcome rest = train(out, kOnce);
          BOOST_TEST(rest.code == 0, rest.output);
        }
        check_same(out);
        if (result.code == 0) break;
      }
    }
    BOOST_TEST(killed > 0, call << " of " << part);
  }
}

BOOST_AUTO_TEST_CASE(the_next_one_waits_and_says_so) {
  const fs::path out = world().fresh();
  const Outcome result = train(out, kOften, fault("pwrite", "step-00000004.tmp/model", 0, 1, kSlow));
  BOOST_TEST(result.code == 0, result.output);
  BOOST_TEST(has(result, "note: step 6 waited "), result.output);
  BOOST_TEST(has(result, " s until the checkpoint of step 4 was written"), result.output);
  const std::string log = slurp(out / "log.jsonl");
  BOOST_TEST(log.find("{\"step\":6,\"event\":\"checkpoint_waited\",\"checkpoint\":4,\"seconds\":0.") !=
             std::string::npos);
  check_same(out);
}

BOOST_AUTO_TEST_CASE(a_stop_waits_for_what_is_being_written) {
  const fs::path out = world().fresh();
  std::vector<std::string> more = kOften;
  more.insert(more.end(), {"train.steps=1000000", "schedule.name=constant", "checkpoint.keep_every=2"});
  Outcome stopped{0, ""};
  {
    const Preloaded fault("fsync step-00000002.tmp/model 0 1 0");
    Process process(settings(out, more));
    read_until(process, "step 2/");
    for (int i = 0; i < 10000 && !saving(out); ++i) sleep_us(1000);
    BOOST_TEST(saving(out));
    process.signal(SIGTERM);
    stopped = process.wait();
  }
  BOOST_TEST(stopped.code == 75, stopped.output);
  const std::vector<models::StepFolder> all = models::step_folders(out);
  BOOST_REQUIRE(all.size() >= 2u);
  BOOST_TEST(all[0].step == 2);
  for (const models::StepFolder& f : all) BOOST_TEST(!models::find_damage(f.path));
  BOOST_TEST(!saving(out));
  const int steps = static_cast<int>(all.back().step);
  const std::string end = "train.steps=" + std::to_string(steps + 2);
  BOOST_TEST(train(out, {end, "schedule.name=constant"}).code == 0);
  const fs::path straight = world().fresh();
  BOOST_TEST(train(straight, {end, "schedule.name=constant"}).code == 0);
  BOOST_TEST((weights(step(out, steps + 2)) == weights(step(straight, steps + 2))));
}

// The step that fails while a checkpoint is being written is reported, and the checkpoint is complete.
BOOST_AUTO_TEST_CASE(a_failed_step_waits_for_what_is_being_written) {
  const fs::path out = world().fresh();
  const Outcome result =
      train(out, {"checkpoint.async=true", "checkpoint.interval=1", "optimizer.lr=1e30", "schedule.warmup=0"},
            fault("pwrite", "step-00000001.tmp/model", 0, 1, kSlow));
  check_failure(result, 5, "failed-step-");
  BOOST_REQUIRE(!models::step_folders(out).empty());
  for (const models::StepFolder& f : models::step_folders(out)) BOOST_TEST(!models::find_damage(f.path));
  BOOST_TEST(!saving(out));
}

BOOST_AUTO_TEST_CASE(the_plan_counts_the_copy) {
  const std::string model = "train model.preset=dcformer-tiny --dry-run ";
  const Outcome plain = run(model), async = run(model + "checkpoint.async=true");
  BOOST_TEST(plain.code == 0, plain.output);
  BOOST_TEST(async.code == 0, async.output);
  BOOST_TEST(!has(plain, "copy for checkpoint.async"));
  BOOST_TEST(has(async, "  copy for checkpoint.async "), async.output);
  const auto line = [](const Outcome& plan, const std::string& label) {
    const size_t at = plan.output.find("\n  " + label);
    return plan.output.substr(at + 1, plan.output.find('\n', at + 1) - at - 1);
  };
  BOOST_TEST(line(plain, "total ") != line(async, "total "));
  const Outcome gpu = run("train model.preset=dcformer-2.8b run.device=cuda train.dtype=bf16 checkpoint.async=true " +
                          std::string("train.batch_size=8 --dry-run --for h200x1"));
  BOOST_TEST(has(gpu, ", of the host, beside the total"), gpu.output);
}

BOOST_AUTO_TEST_SUITE_END()
