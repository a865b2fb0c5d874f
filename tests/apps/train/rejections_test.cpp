// Mistakes and damage that braid train meets: each ends with its exit code and a message, and nothing is lost.
#include "braid/models/training/checkpoint/manifest.h"
#include "tests/apps/train/runs.h"
#include "tests/support/sanitizer.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(train_rejections)

namespace fs = std::filesystem;

BOOST_AUTO_TEST_CASE(wrong_settings_end_with_2) {
  const fs::path out = world().fresh();
  const auto wrong = [&](const char* setting, const char* words) { check_failure(train(out, {setting}), 2, words); };
  wrong("optimizer.lrr=1", "unknown key 'optimizer.lrr' in the command line; did you mean 'optimizer.lr'?");
  wrong("model.n_haed=2", "unknown key 'model.n_haed' in the command line; did you mean 'model.n_head'?");
  wrong("train.steps=many", "bad value for train.steps in the command line: expected an integer");
  wrong("train.steps=0", "expected an integer from 1");
  wrong("optimizer.lr=nan", "bad value for optimizer.lr");
  wrong("model.n_head=3", "bad n_head: expected a divisor of dim = 32, found 3");
  wrong("model.n_head=x", "bad value for model.n_head in the command line: expected an integer from 1 to");
  wrong("train.lr=1", "unknown key 'train.lr' in the command line; did you mean 'optimizer.lr'?");
  wrong("model.post_compose=false", "did you mean 'model.profile.post_compose'?");
  wrong("--seed=3", "did you mean the setting run.seed=VALUE, without dashes?");
  wrong("--for=h100", "--for plans a run for another machine: add --dry-run");
  wrong("model.preset=dcformer-huge", "unknown model preset 'dcformer-huge'");
  wrong("model.vocab_size=100", "model.vocab_size is too small for the data: expected at least 258, found 100");
  wrong("data.seq_len=64", "data.seq_len is longer than the model's block_size: expected at most 32, found 64");
  wrong("schedule.warmup=11", "schedule.warmup is longer than the run");
  wrong("model.profile.rank=-1",
        "bad value for model.profile.rank in the command line: expected an integer from 0 to 64");
  wrong("model.profile.branches=pre_q,post_q",
        "bad profile.branches: expected pre_k, which pre_compose reads, found pre_q,post_q; add it, or set "
        "profile.pre_compose=false or profile.key_side=false");
  wrong("model.profile.branches=[]",
        "found none; set profile.query_side=false and profile.key_side=false for a model without dynamic weights, or "
        "use_dcmha=false for plain attention");
  wrong("data.path=", "data.path is not set");
  wrong("run.out=", "run.out is empty");
  wrong(("run.out=" + world().data().string()).c_str(),
        "holds data that braid prepare wrote: expected a folder for the run alone");
  wrong("train.batch_size=1000000000", "a training step does not fit into memory");
  wrong("train.batch_size=1000000000", "one process then needs, with ");
  wrong("train.rounding=stochastic", "is of bf16 weights: expected train.dtype = bf16, found f32");
  wrong("train.rounding=up", "bad value for train.rounding");
  const auto with_rounding = [&](const char* setting, const char* words) {
    check_failure(train(out, {"train.dtype=bf16", "train.rounding=stochastic", setting}), 2, words);
  };
  with_rounding("train.ema=0.9", "train.ema averages f32 weights: expected 0");
  with_rounding("lora.rank=2", "expected lora.rank = 0 with train.rounding = stochastic, found 2");
  wrong("--device=cuda:7", "device cuda:7 does not exist: found");
  wrong("run.device=tpu", "bad value for run.device");
  BOOST_TEST(!fs::exists(out));
}

BOOST_AUTO_TEST_CASE(run_folders_that_cannot_be_made_end_with_4) {
  const fs::path here = world().fresh();
  fs::create_directories(here);
  fs::create_symlink(here / "b", here / "a");
  fs::create_symlink(here / "a", here / "b");
  check_failure(train(here / std::string(300, 'x')), 4, "File name too long");
  check_failure(train(here / "a"), 4, "Too many levels of symbolic links");
  check_failure(train(here / "a/run"), 4, "Too many levels of symbolic links");
}

// Found before the run, not in the middle of it.
BOOST_AUTO_TEST_CASE(samples_and_validation_are_checked_at_the_start) {
  const fs::path out = world().fresh(), little = world().scratch / "no-validation";
  const std::string prompt = "sample.prompt=" + std::string(40, 'x');
  for (const char* dry : {"log.interval=1", "--dry-run"}) {  // a plan is rejected like the run
    check_failure(
        train(out, {prompt, "sample.interval=8", dry}), 2,
        "sample.prompt is longer than the model's sequences: expected at most block_size = 32 tokens, found 40");
    check_failure(train(out, {"schedule.warmup=11", dry}), 2, "schedule.warmup is longer than the run");
  }
  check_failure(train(world().scratch / "in/1.txt", {"--dry-run"}), 4, "expected a folder, found the file ");
  check_failure(train(world().scratch / "in/1.txt/below", {"--dry-run"}), 4, "expected a folder, found the file ");
  BOOST_TEST(!fs::exists(out));
  BOOST_TEST(train(out, {prompt, "train.steps=2", "eval.interval=0"}).code == 0);  // no samples are made

  BOOST_TEST(
      run("prepare " + (world().scratch / "in/1.txt").string() + " --val-fraction 0 -o " + little.string()).code == 0);
  const fs::path blind = world().fresh();
  const std::string data = "data.path=" + little.string();
  for (const char* dry : {"log.interval=1", "--dry-run"})
    check_failure(train(blind, {data, dry}), 2,
                  "is too small to validate on: expected at least 33 tokens for one sequence, found 0; set "
                  "eval.interval=0 to train without validation");
  const Outcome trained = train(blind, {data, "eval.interval=0", "sample.interval=5", "eval.tasks=2"});
  BOOST_TEST(trained.code == 0, trained.output);
  BOOST_TEST(fs::exists(blind / "samples.txt"));
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
  const fs::path text = world().scratch / "in/1.txt";
  check_failure(train(out, {"data.path=" + text.string()}), 3,
                " is a file: expected a folder that braid prepare wrote; run braid prepare " + text.string() +
                    " -o DIR first, then set data.path=DIR");
  check_failure(train(out, {"data.path=" + text.parent_path().string()}), 3, " is a folder without dataset.json");
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
  const auto rejected = [&](const char* setting, const std::string& words) {
    check_failure(train(out, {setting}), 2, words);
    check_failure(train(out, {setting, "--dry-run"}), 2, words);
    BOOST_TEST((weights(step(out, kSteps)) == before));
    BOOST_TEST(slurp(out / "log.csv") == log);
  };
  rejected("model.n_head=4", "is not the configured one: expected model.n_head = 2, found 4; ");
  rejected("model.n_layer=3", "is not the configured one: expected model.n_layer = 2, found 3; ");
  rejected("model.preset=dcpythia-tiny", " more; undo the change or choose another run.out, where train.init_from=");
  rejected("model.preset=dcpythia-tiny", "; changed: model.preset: \"\" -> \"dcpythia-tiny\"");
  rejected("model.intermediate_size=40", "starts from these weights; changed: model.intermediate_size: not set -> 40");
  rejected("run.seed=2", ": expected 1, found 2; undo the change or choose another run.out, where train.init_from=");
  rejected("model.rope_base=500", " (it may change together with the longest sequence); undo the change or");
  rejected("train.dtype=f64", "expected train.dtype = f32, found f64; ");
  rejected("optimizer.name=adam", "is of another kind (optimizer.name: \"adamw\" -> \"adam\"); ");
  rejected("optimizer.name=sgd", "is of another kind (optimizer.name: \"adamw\" -> \"sgd\"); ");
  const fs::path other = world().scratch / "other-data";
  const Outcome made = run("prepare " + (world().scratch / "in/1.txt").string() + " " +
                           (world().scratch / "in/2.txt").string() + " --val-fraction 0.5 -o " + other.string());
  BOOST_TEST(made.code == 0, made.output);
  rejected(("data.path=" + other.string()).c_str(),
           "was trained on: expected data.path = " + world().data().string() + " with fingerprint ");
}

BOOST_AUTO_TEST_CASE(other_settings_may_change_and_are_told) {
  const fs::path out = world().fresh(), moved = world().fresh();
  BOOST_TEST(train(out, {"schedule.name=constant", "train.steps=5"}).code == 0);
  fs::rename(out, moved);
  const Outcome rest = train(moved, {"schedule.name=constant", "run.threads=1", "train.batch_size=4",
                                     "train.attention_workspace=64", "optimizer.lr=2e-3", "sample.prompt=A"});
  BOOST_TEST(rest.code == 0, rest.output);
  for (const char* line : {" with other settings:\n", "\n  run.threads: 0 -> 1\n", "\n  train.steps: 5 -> 10\n",
                           "\n  train.batch_size: 2 -> 4\n", "\n  train.attention_workspace: 0 -> 64\n",
                           "\n  optimizer.lr: 0.001 -> 0.002\n", "\n  sample.prompt: \"\" -> \"A\"\n"})
    BOOST_TEST(rest.output.find(line) != std::string::npos, "no '" << line << "' in: " << rest.output);
  int listed = 0;
  for (const std::string& line : detail::split(rest.output, '\n')) listed += line.starts_with("  ");
  BOOST_TEST(listed == 6, rest.output);  // that the folder was moved is no change
  // The checkpoint has the settings of its own, not the last ones that were tried.
  const Outcome again = train(moved, {"schedule.name=constant", "train.batch_size=4", "optimizer.lr=2e-3"});
  BOOST_TEST(again.output.find("\n  sample.prompt: \"A\" -> \"\"\n") != std::string::npos, again.output);
  BOOST_TEST(again.output.find("batch_size") == std::string::npos, again.output);
}

// With steps too small to change a weight, the loss of a step shows which sequences it read.
BOOST_AUTO_TEST_CASE(a_changed_batch_size_goes_on_with_the_next_sequences) {
  const std::vector<std::string> still = {"schedule.name=constant", "schedule.warmup=0", "optimizer.lr=1e-30",
                                          "eval.interval=0"};
  const auto losses = [&](const fs::path& out, const std::vector<std::string>& more) {
    std::vector<std::string> all = still;
    all.insert(all.end(), more.begin(), more.end());
    const Outcome result = train(out, all);
    BOOST_TEST(result.code == 0, result.output);
    std::vector<double> values;
    for (const apps::LogRow& row : apps::read_log(out)) values.push_back(row["loss"]);
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
  BOOST_TEST(apps::read_log(out).back()["tokens"] == 9 * 32);
}

BOOST_AUTO_TEST_CASE(damaged_checkpoints) {
  const fs::path out = world().fresh();
  BOOST_TEST(train(out, {"checkpoint.interval=5"}).code == 0);
  BOOST_TEST(fs::exists(step(out, 5)));
  flip_byte(step(out, kSteps) / "model.safetensors");
  for (const std::string command : {"info ", "generate --device cpu -n 1 ", "dump -o /dev/null --ids /dev/null ",
                                    "bench decode --tokens 4 --model "}) {
    const Outcome told = run(command + out.string());
    BOOST_TEST(told.output.find("note: checkpoint " + step(out, kSteps).string() +
                                " is damaged and was passed over: ") != std::string::npos,
               told.output);
    BOOST_TEST(told.output.find("note: taking the older checkpoint " + step(out, 5).string()) != std::string::npos);
  }
  const Outcome healed = train(out, {"checkpoint.interval=5"});
  BOOST_TEST(healed.code == 0, healed.output);
  BOOST_TEST(healed.output.find("is damaged and was passed over: model.safetensors has checksum") != std::string::npos);
  BOOST_TEST(healed.output.find("resuming from " + step(out, 5).string()) != std::string::npos);
  check_same(out);
  flip_byte(step(out, 5) / "trainer/optimizer.safetensors");
  fs::resize_file(step(out, kSteps) / "trainer/manifest.json", 30);
  check_failure(train(out), 7, "none of the 2 checkpoints in " + out.string() + " is usable");
  fs::remove_all(step(out, 5)), fs::remove_all(step(out, kSteps));
  check_failure(train(out), 7, "no checkpoint is left in " + out.string());  // and the log stays
  check_failure(run("generate --device cpu -n 1 " + out.string()), 7, "no checkpoint is left in " + out.string());
}

BOOST_AUTO_TEST_CASE(no_model_is_written_into_a_run_folder) {
  const fs::path run_folder = undisturbed();
  const Outcome result = run("convert " + run_folder.string() + " -o " + run_folder.string());
  check_failure(result, 2,
                run_folder.string() + " is the folder of a training run, whose checkpoints a model in it would");
  BOOST_TEST(!fs::exists(run_folder / "config.json"));
  // A model that an older version wrote there is reported.
  const fs::path mixed = world().fresh();
  fs::copy(run_folder, mixed, fs::copy_options::recursive);
  for (const char* file : {"config.json", "model.safetensors"}) fs::copy(step(mixed, kSteps) / file, mixed / file);
  const Outcome info = run("info " + mixed.string());
  BOOST_TEST(info.output.find("holds a model of its own beside the checkpoints of a run") != std::string::npos,
             info.output);
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

BOOST_AUTO_TEST_SUITE_END()
