// braid train as the real program: a run that is killed, stopped or damaged anywhere goes on to the same bytes, and
// every mistake ends with its exit code and a sentence.
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "apps/common/log.h"
#include "apps/common/text.h"
#include "models/checkpoint.h"
#include "tensor/io/json.h"
#include "tensor/io/safetensors.h"
#include "tests/apps/support.h"
#include "tests/support/sanitizer.h"

using namespace braid;
using braid::test::Outcome;
using braid::test::Process;
using braid::test::run;
using braid::test::Scratch;
using braid::test::slurp;
using braid::test::write;
namespace fs = std::filesystem;

namespace {

// One data set for all tests, prepared once; every run folder lies beside it.
struct World {
  Scratch scratch;
  int runs = 0;
  World() {
    std::mt19937 random(5);
    for (int i = 0; i < 40; ++i) {
      std::string text;
      for (int j = 0; j < 100; ++j) text += std::to_string(random() % 100) + " ";
      fs::create_directories(scratch / "in");
      write(scratch / ("in/" + std::to_string(i) + ".txt"), text);
    }
    const Outcome made = run("prepare " + (scratch / "in").string() + " --val-fraction 0.2 -o " + data().string());
    if (made.code != 0) throw std::runtime_error(made.output);
  }
  fs::path data() const { return scratch / "data"; }
  fs::path fresh() { return scratch / ("run-" + std::to_string(runs++)); }
};
World& world() {
  static World instance;
  return instance;
}

constexpr int kSteps = 10;

std::vector<std::string> settings(const fs::path& out, const std::vector<std::string>& more = {}) {
  std::vector<std::string> all = {"train", "run.out=" + out.string(), "data.path=" + world().data().string()};
  for (const char* text : {"model.dim=32", "model.n_layer=2", "model.n_head=2", "model.block_size=32", "train.steps=10",
                           "train.batch_size=2", "schedule.warmup=2", "eval.interval=5", "eval.batches=2",
                           "checkpoint.interval=0", "log.interval=1", "guard.spike=0"})
    all.push_back(text);
  all.insert(all.end(), more.begin(), more.end());  // the last one counts
  return all;
}

Outcome train(const fs::path& out, const std::vector<std::string>& more = {}, const std::string& before = "") {
  return run(braid::join(settings(out, more), " "), before);
}

fs::path step(const fs::path& out, int n) { return out / models::step_name(n); }

std::string weights(const fs::path& checkpoint) {
  return slurp(checkpoint / "model.safetensors") + slurp(checkpoint / "trainer/optimizer.safetensors");
}

// log.csv without the columns that are measured.
std::string deterministic_log(const fs::path& out) {
  std::string text;
  for (const std::string& line : braid::split(slurp(out / "log.csv"), '\n')) {
    const std::vector<std::string> fields = braid::split(line, ',');
    for (size_t i = 0; i < fields.size(); ++i)
      if (i == 0 || !app::log_columns.at(i - 1).measured) text += fields[i] + ",";
    text += "\n";
  }
  return text;
}

// The run that nothing disturbed.
const fs::path& undisturbed() {
  static const fs::path out = [] {
    const fs::path path = world().fresh();
    const Outcome result = train(path);
    if (result.code != 0) throw std::runtime_error(result.output);
    return path;
  }();
  return out;
}

void check_same(const fs::path& out, const fs::path& expected = undisturbed(), int n = kSteps) {
  BOOST_TEST(weights(step(out, n)).size() > 10000u);
  BOOST_TEST((weights(step(out, n)) == weights(step(expected, n))));
  BOOST_TEST(deterministic_log(out) == deterministic_log(expected));
  for (const auto& entry : fs::directory_iterator(out)) BOOST_TEST(entry.path().extension() != ".tmp");
}

void check_failure(const Outcome& result, int code, const std::string& words) {
  BOOST_TEST(result.code == code, result.output);
  BOOST_TEST(braid::split(result.output, '\n').size() > 1u);
  BOOST_TEST(result.output.find("error: ") != std::string::npos, result.output);
  BOOST_TEST(result.output.find(words) != std::string::npos, "no '" << words << "' in: " << result.output);
}

bool saving(const fs::path& out) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(out, ignored))
    if (entry.path().extension() == ".tmp") return true;
  return false;
}

void read_until(Process& process, const std::string& words) {
  for (std::string line; !(line = process.line()).empty();)
    if (line.find(words) != std::string::npos) return;
  BOOST_FAIL("the run ended before it said " << words);
}

void flip_byte(const fs::path& file) {
  std::string bytes = slurp(file);
  bytes[bytes.size() / 2] ^= 0x10;
  write(file, bytes);
}

void sleep_us(int64_t us) { std::this_thread::sleep_for(std::chrono::microseconds(us)); }

}  // namespace

BOOST_AUTO_TEST_SUITE(train_command)

BOOST_AUTO_TEST_CASE(the_same_seed_gives_the_same_bits_on_any_number_of_threads) {
  for (const char* threads : {"run.threads=1", "run.threads=2", "run.threads=3"}) {
    const fs::path out = world().fresh();
    const Outcome result = train(out, {threads});
    BOOST_TEST(result.code == 0, result.output);
    check_same(out);
  }
  BOOST_TEST(app::read_log(undisturbed()).back().val_loss < 6);
  const fs::path other = world().fresh();
  train(other, {"run.seed=2"});
  BOOST_TEST((weights(step(other, kSteps)) != weights(step(undisturbed(), kSteps))));
}

BOOST_AUTO_TEST_CASE(killed_at_any_moment_it_goes_on_to_the_same_bytes) {
  std::mt19937 random(1);
  for (const char* seen : {"step 1/", "step 3/", "step 4/", "step 8/"}) {
    BOOST_TEST_CONTEXT(seen) {
      const fs::path out = world().fresh();
      {
        Process process(settings(out, {"checkpoint.interval=1"}));
        read_until(process, seen);
        sleep_us(random() % 30000);
      }  // SIGKILL
      const Outcome rest = train(out);
      BOOST_TEST(rest.code == 0, rest.output);
      check_same(out);
    }
  }
}

BOOST_AUTO_TEST_CASE(killed_while_it_saves_it_goes_on_to_the_same_bytes) {
  int caught = 0;
  for (int delay : {0, 1000, 5000}) {
    BOOST_TEST_CONTEXT("delay " << delay) {
      const fs::path out = world().fresh();
      {
        Process process(settings(out, {"checkpoint.interval=1"}));
        read_until(process, "step 2/");
        for (int i = 0; i < 100000 && !saving(out) && !fs::exists(step(out, kSteps)); ++i) sleep_us(20);
        sleep_us(delay);
      }  // SIGKILL
      caught += saving(out);
      const Outcome rest = train(out);
      BOOST_TEST(rest.code == 0, rest.output);
      check_same(out);
    }
  }
  BOOST_TEST(caught > 0);
}

BOOST_AUTO_TEST_CASE(what_a_killed_save_left_behind_does_not_disturb) {
  const fs::path out = world().fresh();
  BOOST_TEST(train(out, {"schedule.name=constant", "train.steps=5"}).code == 0);
  for (const char* name : {"step-00000004.tmp", "step-00000010.tmp/trainer", "step-00000010.tmp/old", "step-99"})
    fs::create_directories(out / name);
  fs::copy(step(out, 5), out / "step-00000007.tmp", fs::copy_options::recursive);
  write(out / "step-00000010.tmp/model.safetensors", "half");
  const Outcome rest = train(out, {"schedule.name=constant"});
  BOOST_TEST(rest.code == 0, rest.output);
  BOOST_TEST(rest.output.find("resuming from " + step(out, 5).string()) != std::string::npos);
  BOOST_TEST(!fs::exists(step(out, kSteps) / "old"));
  const fs::path straight = world().fresh();
  train(straight, {"schedule.name=constant"});
  check_same(out, straight);
}

// bf16 arithmetic: the checkpoint holds f32 masters, a stopped run goes on to the same bytes, and the loss follows
// f32's.
BOOST_AUTO_TEST_CASE(bf16_runs_resume_exactly_and_follow_f32) {
  const fs::path straight = world().fresh(), out = world().fresh();
  const Outcome whole = train(straight, {"train.dtype=bf16", "train.accumulate=2"});
  BOOST_TEST(whole.code == 0, whole.output);
  BOOST_TEST(whole.output.find("bf16 with f32 master weights on cpu") != std::string::npos, whole.output);
  BOOST_TEST(whole.output.find("\npeak memory ") != std::string::npos, whole.output);
  {
    Process process(settings(out, {"checkpoint.interval=1", "train.dtype=bf16", "train.accumulate=2"}));
    read_until(process, "step 4/");
  }  // SIGKILL
  const Outcome rest = train(out, {"train.dtype=bf16", "train.accumulate=2", "run.threads=1"});
  BOOST_TEST(rest.code == 0, rest.output);
  BOOST_TEST(rest.output.find("resuming from ") != std::string::npos);
  check_same(out, straight);
  const io::TensorFiles stored((step(out, kSteps) / "model.safetensors").string());
  for (const auto& t : stored.tensors()) BOOST_TEST((t.dtype == DType::f32), t.name);

  const fs::path exact = world().fresh();
  BOOST_TEST(train(exact, {"train.accumulate=2"}).code == 0);
  const double a = app::read_log(out).back().val_loss, b = app::read_log(exact).back().val_loss;
  BOOST_TEST(std::fabs(a / b - 1) < 0.01);
  BOOST_TEST(a != b);
  // The same masters may go on in f32, and that is told; f64 is another matter.
  const Outcome changed = train(out, {"train.accumulate=2", "train.steps=11"});
  BOOST_TEST(changed.code == 0, changed.output);
  BOOST_TEST(changed.output.find("train.dtype: \"bf16\" -> \"f32\"") != std::string::npos, changed.output);
  check_failure(train(out, {"train.dtype=f64"}), 2, "expected train.dtype = f32, found f64; ");
  // What was trained so can be used in any arithmetic.
  for (const char* dtype : {"f32", "bf16", "f64"}) {
    const Outcome text = run("generate " + out.string() + " --tokens 4 --device cpu --dtype " + dtype);
    BOOST_TEST(text.code == 0, text.output);
  }
}

BOOST_AUTO_TEST_CASE(memory_is_reported_by_use) {
  const fs::path out = world().fresh(), saving = world().fresh();
  const auto peak = [&](const fs::path& folder, const std::vector<std::string>& more) {
    std::vector<std::string> all = {"train.steps=2", "train.dtype=bf16", "model.n_layer=8", "eval.interval=0"};
    all.insert(all.end(), more.begin(), more.end());
    const Outcome result = train(folder, all);
    BOOST_TEST(result.code == 0, result.output);
    for (const char* use : {"weights ", "gradients ", "optimizer ", "workspace ", " MB: weights "})
      BOOST_TEST(result.output.find(use) != std::string::npos, result.output);
    const auto state = io::read_json_file((step(folder, 2) / "trainer/state.json").string(), 1 << 20);
    return state.at("peak_memory_bytes").at("activations").get<int64_t>();
  };
  const int64_t kept = peak(out, {}), recomputed = peak(saving, {"train.checkpoint_activations=true"});
  BOOST_TEST(recomputed < kept / 2);
  BOOST_TEST((weights(step(out, 2)) == weights(step(saving, 2))));
  const Outcome plan = run("train --dry-run model.preset=dcformer-tiny train.dtype=bf16");
  BOOST_TEST(plan.code == 0, plan.output);
  for (const char* words : {"tokens, bf16)", ", f32 and copies in bf16", "total if blocks were recomputed"})
    BOOST_TEST(plan.output.find(words) != std::string::npos, plan.output);
}

BOOST_AUTO_TEST_CASE(signals_save_and_end_with_75) {
  for (const auto& [signal, name] : {std::pair{SIGTERM, "SIGTERM"}, {SIGINT, "SIGINT"}, {SIGUSR1, "SIGUSR1"}}) {
    BOOST_TEST_CONTEXT(name) {
      Outcome stopped{0, ""};
      fs::path out;
      for (int attempt = 0; attempt < 5 && stopped.code == 0;
           ++attempt) {  // again if it was done before the signal came
        out = world().fresh();
        Process process(settings(out, {"checkpoint.interval=1"}));
        read_until(process, "step 2/");
        process.signal(signal);
        stopped = process.wait();
      }
      BOOST_TEST(stopped.code == 75, stopped.output);
      BOOST_TEST(stopped.output.find(std::string("stopped by ") + name + " after step ") != std::string::npos);
      BOOST_TEST(stopped.output.find("run the same command again") != std::string::npos);
      const Outcome rest = train(out);
      BOOST_TEST(rest.code == 0, rest.output);
      BOOST_TEST(rest.output.find("resuming from ") != std::string::npos);
      check_same(out);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_finished_run_stays_as_it_is) {
  const fs::path out = world().fresh();
  train(out);
  const Outcome again = train(out);
  BOOST_TEST(again.code == 0);
  BOOST_TEST(again.output.find("trained 10 steps") != std::string::npos, again.output);
  BOOST_TEST(again.output.find("nan") == std::string::npos, again.output);
  check_same(out);
}

BOOST_AUTO_TEST_CASE(wrong_settings_end_with_2) {
  const fs::path out = world().fresh();
  const auto wrong = [&](const char* setting, const char* words) { check_failure(train(out, {setting}), 2, words); };
  wrong("optimizer.lrr=1", "unknown key 'optimizer.lrr' in the command line; did you mean 'optimizer.lr'?");
  wrong("model.n_haed=2", "unknown key 'model.n_haed' in the command line; did you mean 'model.n_head'?");
  wrong("train.steps=many", "bad value for train.steps in the command line: expected a whole number");
  wrong("train.steps=0", "expected a whole number from 1");
  wrong("optimizer.lr=nan", "bad value for optimizer.lr");
  wrong("model.n_head=3", "bad n_head: expected a divisor of dim = 32, found 3");
  wrong("model.n_head=x", "bad value of model key n_head");
  wrong("model.preset=dcformer-huge", "unknown model preset 'dcformer-huge'");
  wrong("model.vocab_size=100", "model.vocab_size is too small for the data: expected at least 258, found 100");
  wrong("data.seq_len=64", "data.seq_len is longer than the model's block_size: expected at most 32, found 64");
  wrong("schedule.warmup=11", "schedule.warmup is longer than the run");
  wrong("data.path=", "data.path is not set");
  wrong("run.out=", "run.out is empty");
  wrong("train.batch_size=1000000000", "a training step does not fit into memory");
  wrong("--device=cuda:7", "device cuda:7 does not exist: found");
  wrong("run.device=tpu", "bad value for run.device");
  BOOST_TEST(!fs::exists(out));
}

BOOST_AUTO_TEST_CASE(bad_data_ends_with_3) {
  const fs::path out = world().fresh(), copy = world().scratch / "copy";
  const auto wrong = [&](const std::string& words) {
    check_failure(train(out, {"data.path=" + copy.string()}), 3, words);
    fs::remove_all(copy);
    fs::copy(world().data(), copy);
  };
  wrong("cannot open " + (copy / "dataset.json").string());
  BOOST_TEST(!fs::exists(out));
  const fs::path shard = copy / "train-00000.tok";
  fs::resize_file(shard, fs::file_size(shard) - 100);
  wrong("damaged token shard: the file's size in " + shard.string() + ": expected ");
  flip_byte(shard);
  wrong("damaged token shard: block 0 in " + shard.string() + " at byte 64: expected checksum ");
  fs::remove(shard);
  wrong(shard.string());
  write(copy / "dataset.json", "{\"format\":");
  wrong((copy / "dataset.json").string());
}

BOOST_AUTO_TEST_CASE(one_process_per_run_folder) {
  const fs::path out = world().fresh();
  Process first(settings(out, {"train.steps=1000000"}));
  read_until(first, "step 1/");
  check_failure(train(out), 2, "is in use by process ");
}

BOOST_AUTO_TEST_CASE(a_run_goes_on_only_as_itself) {
  const fs::path out = world().fresh();
  train(out);
  const std::string before = weights(step(out, kSteps)), log = slurp(out / "log.csv");
  const auto refused = [&](const char* setting, const std::string& words) {
    check_failure(train(out, {setting}), 2, words);
    BOOST_TEST((weights(step(out, kSteps)) == before));
    BOOST_TEST(slurp(out / "log.csv") == log);
  };
  refused("model.n_head=4", "is not the configured one: expected model.n_head = 2, found 4; ");
  refused("model.n_layer=3", "is not the configured one: expected model.n_layer = 2, found 3; ");
  refused("model.preset=dcpythia-tiny", " more; undo the change or choose another run.out");
  refused("run.seed=2", ": expected 1, found 2; undo the change or choose another run.out");
  refused("data.seq_len=16", "data.seq_len differs from the run in ");
  refused("train.dtype=f64", "expected train.dtype = f32, found f64; ");
  refused("optimizer.name=sgd", "is of another kind (optimizer.name: \"adamw\" -> \"sgd\"); ");
  const fs::path other = world().scratch / "other-data";
  const Outcome made = run("prepare " + (world().scratch / "in/1.txt").string() + " " +
                           (world().scratch / "in/2.txt").string() + " --val-fraction 0.5 -o " + other.string());
  BOOST_TEST(made.code == 0, made.output);
  refused(("data.path=" + other.string()).c_str(),
          "was trained on: expected data.path = " + world().data().string() + " with fingerprint ");
}

BOOST_AUTO_TEST_CASE(other_settings_may_change_and_are_told) {
  const fs::path out = world().fresh(), moved = world().fresh();
  BOOST_TEST(train(out, {"schedule.name=constant", "train.steps=5"}).code == 0);
  fs::rename(out, moved);
  const Outcome rest = train(
      moved, {"schedule.name=constant", "run.threads=1", "train.batch_size=4", "optimizer.lr=2e-3", "sample.prompt=A"});
  BOOST_TEST(rest.code == 0, rest.output);
  for (const char* line :
       {" with other settings:\n", "\n  run.threads: 0 -> 1\n", "\n  train.steps: 5 -> 10\n",
        "\n  train.batch_size: 2 -> 4\n", "\n  optimizer.lr: 0.001 -> 0.002\n", "\n  sample.prompt: \"\" -> \"A\"\n"})
    BOOST_TEST(rest.output.find(line) != std::string::npos, "no '" << line << "' in: " << rest.output);
  int told = 0;
  for (const std::string& line : braid::split(rest.output, '\n')) told += line.starts_with("  ");
  BOOST_TEST(told == 5, rest.output);  // that the folder was moved is no change
  // The checkpoint remembers the settings of its own, not the last ones that were tried.
  const Outcome again = train(moved, {"schedule.name=constant", "train.batch_size=4", "optimizer.lr=2e-3"});
  BOOST_TEST(again.output.find("\n  sample.prompt: \"A\" -> \"\"\n") != std::string::npos, again.output);
  BOOST_TEST(again.output.find("batch_size") == std::string::npos, again.output);
}

// With steps too small to change a weight, the loss of a step tells which sequences it saw.
BOOST_AUTO_TEST_CASE(a_changed_batch_size_goes_on_with_the_next_sequences) {
  const std::vector<std::string> still = {"schedule.name=constant", "schedule.warmup=0", "optimizer.lr=1e-30",
                                          "eval.interval=0"};
  const auto losses = [&](const fs::path& out, const std::vector<std::string>& more) {
    std::vector<std::string> all = still;
    all.insert(all.end(), more.begin(), more.end());
    const Outcome result = train(out, all);
    BOOST_TEST(result.code == 0, result.output);
    std::vector<double> values;
    for (const app::LogRow& row : app::read_log(out)) values.push_back(row.loss);
    return values;
  };
  const std::vector<double> one = losses(world().fresh(), {"train.batch_size=1", "train.steps=9"});
  const fs::path out = world().fresh();
  losses(out, {"train.batch_size=2", "train.steps=3"});
  const std::vector<double> mixed = losses(out, {"train.batch_size=1", "train.steps=6"});
  BOOST_REQUIRE(one.size() == 9u);
  BOOST_REQUIRE(mixed.size() == 6u);
  BOOST_TEST(std::vector<double>(mixed.begin() + 3, mixed.end()) == std::vector<double>(one.begin() + 6, one.end()),
             boost::test_tools::per_element());
  BOOST_TEST(app::read_log(out).back().tokens == 9 * 32);
}

BOOST_AUTO_TEST_CASE(damaged_checkpoints) {
  const fs::path out = world().fresh();
  BOOST_TEST(train(out, {"checkpoint.interval=5"}).code == 0);
  BOOST_TEST(fs::exists(step(out, 5)));
  flip_byte(step(out, kSteps) / "model.safetensors");
  const Outcome healed = train(out, {"checkpoint.interval=5"});
  BOOST_TEST(healed.code == 0, healed.output);
  BOOST_TEST(healed.output.find("is damaged and was passed over: model.safetensors has checksum") != std::string::npos);
  BOOST_TEST(healed.output.find("resuming from " + step(out, 5).string()) != std::string::npos);
  check_same(out);
  flip_byte(step(out, 5) / "trainer/optimizer.safetensors");
  fs::resize_file(step(out, kSteps) / "trainer/manifest.json", 30);
  check_failure(train(out), 7, "none of the 2 checkpoints in " + out.string() + " is usable");
}

BOOST_AUTO_TEST_CASE(a_full_disk_ends_with_4_and_leaves_the_last_checkpoint) {
  if (braid::test::kThreadSanitizer) {
    BOOST_WARN_MESSAGE(false, "skipped: the thread sanitizer itself writes a file larger than the limit");
    return;
  }
  const fs::path out = world().fresh();
  BOOST_TEST(train(out, {"schedule.name=constant", "train.steps=5"}).code == 0);
  const std::string before = weights(step(out, 5));
  const Outcome full = train(out, {"schedule.name=constant"}, "ulimit -f 200;");  // blocks of 512 or 1024 bytes
  check_failure(full, 4, "cannot write " + step(out, kSteps).string() + ".tmp/model.safetensors after ");
  BOOST_TEST((weights(step(out, 5)) == before));
  BOOST_TEST(!saving(out));
  const Outcome rest = train(out, {"schedule.name=constant"});
  BOOST_TEST(rest.code == 0, rest.output);
  const fs::path straight = world().fresh();
  train(straight, {"schedule.name=constant"});
  check_same(out, straight);
}

// Steps of this size throw the weights about; the guard sees it and keeps the weights before the step.
BOOST_AUTO_TEST_CASE(a_loss_spike_ends_with_5_and_keeps_the_weights_before_it) {
  const std::vector<std::string> wild = {"schedule.name=constant", "optimizer.lr=30", "guard.spike=3", "guard.warmup=2",
                                         "eval.interval=0"};
  const fs::path out = world().fresh();
  const Outcome result = train(out, wild);
  check_failure(result, 5, "loss spike at step ");
  const auto log = app::read_log(out);
  const int last = static_cast<int>(log.back().step);
  const std::string dump = slurp(out / ("failed-" + models::step_name(last + 1) + ".txt"));
  for (const char* words : {"\nreason loss spike at step ", "\nlr 30\n", "\nloss ", "\ngrad_norm ", "\nwindows "})
    BOOST_TEST(dump.find(words) != std::string::npos, dump);
  BOOST_TEST(dump.find("nan") == std::string::npos, dump);
  const fs::path until = world().fresh();
  std::vector<std::string> shorter = wild;
  shorter.push_back("train.steps=" + std::to_string(last));
  BOOST_TEST(train(until, shorter).code == 0);
  check_same(out, until, last);
  // With a smaller step the run goes on from there.
  const Outcome rest = train(out, {"schedule.name=constant", "optimizer.lr=1e-3", "eval.interval=0"});
  BOOST_TEST(rest.code == 0, rest.output);
}

BOOST_AUTO_TEST_CASE(not_a_number_ends_with_5) {
  const fs::path out = world().fresh();
  check_failure(train(out, {"optimizer.lr=1e30"}), 5, "contains NaN or Inf at step 3; weights are untouched");
  BOOST_TEST(models::why_invalid(step(out, 2)) == "");
  BOOST_TEST(slurp(out / "failed-step-00000003.txt").find("contains NaN or Inf") != std::string::npos);
  // Here the weights themselves leave the range of f32: the reason is told, no such checkpoint is written.
  const fs::path worse = world().fresh();
  const Outcome result = train(worse, {"optimizer.lr=1e300"});
  check_failure(result, 5, "error: the loss is NaN at step 3");
  BOOST_TEST(result.output.find("contains NaN or Inf at step 2; no checkpoint was written") != std::string::npos);
  BOOST_TEST(models::step_folders(worse).empty());
}

BOOST_AUTO_TEST_SUITE_END()
