// run.strict: the same bytes for every instruction set, accumulation and number of threads, and `braid verify`.
#include "tests/apps/train/strict_runs.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(train_strict)

namespace fs = std::filesystem;

namespace {

std::vector<std::string> strict(std::vector<std::string> more = {}) {
  more.insert(more.begin(),
              {"run.strict=true", "schedule.name=constant", "train.batch_size=4", "checkpoint.interval=4",
               "checkpoint.keep_every=4", "checkpoint.best=true", "eval.interval=2", "sample.interval=2"});
  return more;
}

// A strict run in one process.
const fs::path& plain_run() {
  static const fs::path out = [] {
    const fs::path path = world().fresh();
    const Outcome result = train(path, strict());
    if (result.code != 0) throw std::runtime_error(result.output);
    return path;
  }();
  return out;
}

Outcome verify(const std::string& arguments, const std::string& before = "") {
  return run("verify " + plain_run().string() + " " + arguments, before);
}

}  // namespace

BOOST_AUTO_TEST_CASE(instruction_sets_accumulation_and_threads_give_the_same_bytes) {
  BOOST_TEST(split(slurp(plain_run() / "weights.csv"), '\n').size() == size_t(kSteps + 2));
  for (const char* file : {"best", "samples.txt"}) BOOST_TEST(!slurp(plain_run() / file).empty(), file);
  for (const std::string set : {"portable", "avx2", "avx512", "amx"}) {
    const fs::path out = world().fresh();
    const Outcome result =
        train(out, strict({"train.batch_size=1", "train.accumulate=4", "run.threads=2"}), "BRAID_INSTRUCTIONS=" + set);
    BOOST_TEST(result.code == 0, result.output);
    check_same_run(out, plain_run(), set);
  }
}

BOOST_AUTO_TEST_CASE(a_resume_on_another_processor_goes_on_with_the_same_bytes) {
  const fs::path out = world().fresh();
  BOOST_TEST(
      train(out, strict({"train.steps=4", "train.batch_size=2", "train.accumulate=2"}), "BRAID_INSTRUCTIONS=avx2")
          .code == 0);
  const Outcome rest = train(out, strict({"run.threads=1"}), "BRAID_INSTRUCTIONS=portable");
  BOOST_TEST(rest.code == 0, rest.output);
  check_same_run(out, plain_run(), "resumed");
}

BOOST_AUTO_TEST_CASE(bf16_has_one_result_too) {
  const fs::path one = trained(strict({"train.dtype=bf16"})), other = world().fresh();
  BOOST_TEST(train(other, strict({"train.dtype=bf16", "train.batch_size=2", "train.accumulate=2"}),
                   "BRAID_INSTRUCTIONS=portable")
                 .code == 0);
  BOOST_TEST((weights(step(one, kSteps)) == weights(step(other, kSteps))));
}

BOOST_AUTO_TEST_CASE(other_settings_have_one_result_too) {
  const std::vector<std::string> settings[] = {{"model.dropout=0.2", "optimizer.clip=0.1"},
                                               {"optimizer.name=muon", "train.ema=0.9"},
                                               {"'optimizer.groups=*wo* frozen_until=2'"},
                                               {"lora.rank=2", "train.init_from=" + undisturbed().string()}};
  for (std::vector<std::string> more : settings) {
    more.push_back("train.steps=4");
    const fs::path one = trained(strict(more)), other = world().fresh();
    more.insert(more.end(), {"train.batch_size=1", "train.accumulate=4", "train.recompute=true"});
    const Outcome result = train(other, strict(more), "BRAID_INSTRUCTIONS=avx2");
    BOOST_TEST(result.code == 0, result.output);
    BOOST_TEST((weights(step(one, 4)) == weights(step(other, 4))), more[0]);
    BOOST_TEST(deterministic_log(one) == deterministic_log(other), more[0]);
    BOOST_TEST(slurp(one / "weights.csv") == slurp(other / "weights.csv"), more[0]);
  }
}

BOOST_AUTO_TEST_CASE(verify_tells_equal_from_different) {
  const auto says = [](const Outcome& o, int code, const std::string& words) {
    BOOST_TEST(o.code == code, o.output);
    BOOST_TEST(o.output.find(words) != std::string::npos, "no '" << words << "' in: " << o.output);
  };
  const Outcome middle = verify("--steps 4..9");
  says(middle, 0, "verified: steps 5 to 9 of ");
  BOOST_TEST(!has(middle, "to resume"), middle.output);  // nothing is left of it
  says(verify("--steps 0..3 train.batch_size=2 train.accumulate=2", "BRAID_INSTRUCTIONS=portable"), 0, "verified: ");
  says(verify("--steps 4..8 optimizer.lr=3e-3"), 2, "unexpected setting optimizer.lr=3e-3");
  says(verify("--steps 4..8 train.batch_size=2"), 2, "expected 4, found 2");
  says(verify("--steps 5..8"), 7, "there are 0, 4, 8, 10");
  says(verify("--steps 4..11"), 2, "only of steps up to 10");
  says(verify("--steps 8"), 2, "expected two steps A..B");
  says(run("verify " + undisturbed().string() + " --steps 0..2"), 3, "weights.csv does not exist");
}

BOOST_AUTO_TEST_CASE(verify_takes_the_settings_that_the_run_was_resumed_with) {
  const fs::path out = world().fresh();
  BOOST_TEST(train(out, strict({"train.steps=4"})).code == 0);
  BOOST_TEST(train(out, strict({"train.steps=8", "optimizer.lr=3e-3"})).code == 0);
  const Outcome result = run("verify " + out.string() + " --steps 4..8");
  BOOST_TEST(result.code == 0, result.output);
  check_failure(run("verify " + out.string() + " --steps 0..6"), 2, "end at step 4");
}

// The steps that train.epochs gives depend on the samples that the run had behind it.
BOOST_AUTO_TEST_CASE(verify_takes_the_steps_that_epochs_gave) {
  const fs::path out = world().fresh();
  const auto go = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = settings(out, strict(more));
    std::erase_if(all, [](const std::string& text) { return text == "train.steps=10"; });
    const Outcome result = run(join(all, " "));
    BOOST_TEST(result.code == 0, result.output);
  };
  go({"schedule.name=cosine", "train.steps=4"});
  go({"schedule.name=cosine", "train.epochs=0.2", "train.batch_size=8"});
  const Outcome result = run("verify " + out.string() + " --steps 4..7");
  BOOST_TEST(result.code == 0, result.output);
  const int64_t last = apps::read_log(out).back().step;
  const Outcome end = run("verify " + out.string() + " --steps 4.." + std::to_string(last));
  BOOST_TEST(end.code == 0, end.output);
}

// Its losses before the segment, which a verification does not have, tell what a spike is.
BOOST_AUTO_TEST_CASE(verify_looks_for_no_spikes) {
  const fs::path out = trained(
      strict({"train.batch_size=1", "optimizer.lr=1e-5", "guard.spike=1.7", "guard.warmup=2", "train.steps=10"}));
  const Outcome result = run("verify " + out.string() + " --steps 4..10");
  BOOST_TEST(result.code == 0, result.output);
}

BOOST_AUTO_TEST_CASE(verify_takes_a_run_that_is_read_only_or_was_killed) {
  const fs::path out = world().fresh();
  fs::copy(plain_run(), out, fs::copy_options::recursive);
  write(out / "weights.csv", slurp(out / "weights.csv") + "11,0a1b");
  std::vector<fs::path> all = {out};
  for (const auto& entry : fs::recursive_directory_iterator(out)) all.push_back(entry.path());
  constexpr auto written = fs::perms::owner_write | fs::perms::group_write | fs::perms::others_write;
  for (const fs::path& path : all) fs::permissions(path, written, fs::perm_options::remove);
  const Outcome result = run("verify " + out.string() + " --steps 4..6");
  BOOST_TEST(result.code == 0, result.output);
  for (const fs::path& path : all) fs::permissions(path, fs::perms::owner_write, fs::perm_options::add);
}

BOOST_AUTO_TEST_CASE(verify_sees_one_changed_bit) {
  const fs::path out = world().fresh();
  fs::copy(plain_run(), out, fs::copy_options::recursive);
  std::string hashes = slurp(out / "weights.csv");
  const size_t at = hashes.find("\n7,") + 3;
  hashes[at] = hashes[at] == '0' ? '1' : '0';
  write(out / "weights.csv", hashes);
  check_failure(run("verify " + out.string() + " --steps 4..8"), 5, "step 7 of ");
  check_failure(run("verify " + out.string() + " --steps 4..6 data.path=" + (world().scratch / "none").string()), 3,
                "cannot open");
  flip_byte(step(out, 4) / "model.safetensors");
  check_failure(run("verify " + out.string() + " --steps 4..6"), 7, "is damaged: model.safetensors");
  write(out / "weights.csv", "step,crc32c\n1,00\n");
  check_failure(run("verify " + out.string() + " --steps 0..1"), 3, "line 2 of ");
}

BOOST_AUTO_TEST_CASE(what_is_not_covered_is_rejected) {
  check_failure(train(world().fresh(), strict({"parallel.tensor=2"})), 2, "requires 2 processes");
  check_failure(train(world().fresh(), strict({"run.device=cuda"})), 2, "");
  const fs::path out = world().fresh();  // samples would end the run at the first one
  for (const char* setting : {"train.dtype=f64", "model.attention_softcap=5", "model.profile.causal=false"})
    for (const char* dry : {"log.interval=1", "--dry-run"})
      check_failure(train(out, strict({setting, dry})), 2, "expected sample.interval = 0 in this run, found 2");
  BOOST_TEST(!fs::exists(out));
}

BOOST_AUTO_TEST_SUITE_END()
