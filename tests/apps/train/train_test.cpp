// braid train as the real program: a run that is killed or stopped anywhere continues to the same bytes. Its errors:
// rejections_test.cpp.
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "braid/tensor/io/json.h"
#include "braid/tensor/io/safetensors.h"
#include "tests/apps/train/runs.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(train_command)

namespace fs = std::filesystem;

BOOST_AUTO_TEST_CASE(the_same_seed_gives_the_same_bits_on_any_number_of_threads) {
  for (const char* threads : {"run.threads=1", "run.threads=2", "run.threads=3"}) {
    const fs::path out = world().fresh();
    const Outcome result = train(out, {threads});
    BOOST_TEST(result.code == 0, result.output);
    check_same(out);
  }
  BOOST_TEST(apps::read_log(undisturbed()).back()["val_loss"] < 6);
  const fs::path other = world().fresh();
  train(other, {"run.seed=2"});
  BOOST_TEST((weights(step(other, kSteps)) != weights(step(undisturbed(), kSteps))));
}

// config.resolved.toml has what was given and in comments what follows, so that it alone repeats the run.
BOOST_AUTO_TEST_CASE(the_resolved_file_alone_gives_the_same_bytes) {
  const fs::path out = world().fresh(), again = world().fresh(), wide = world().fresh();
  const std::vector<std::string> model = {"model.profile.rank=1", "model.window_size=8", "train.accumulate=2"};
  BOOST_TEST(train(out, model).code == 0);
  const std::string file = (out / "config.resolved.toml").string(), text = slurp(file);
  for (const char* line :
       {"\nwindow_size = 8 ", "\n# norm = \"rms\" ", "\n# head_dim = 16 ", "\n# vocab_size = 258 ",
        "\n# layer_windows = \"8,null\" ", "# keys W of a query of a local layer, null = no local layers; an "})
    BOOST_TEST(text.find(line) != std::string::npos, "no '" << line << "' in: " << text);
  BOOST_TEST(text.find("not set") == std::string::npos, text);
  const Outcome repeated = run("train " + file + " run.out=" + again.string());
  BOOST_TEST(repeated.code == 0, repeated.output);
  check_same(again, out);
  // The comments at its head say when and where a run was.
  const auto settings = [](const std::string& words, const char* from) { return words.substr(words.find(from)); };
  BOOST_TEST(settings(slurp(again / "config.resolved.toml"), "\nseed = ") == settings(text, "\nseed = "));
  // It resumes the run too, and --print-config prints it again.
  const Outcome resumed = run("train " + file + " train.steps=11");
  BOOST_TEST(resumed.code == 0, resumed.output);
  BOOST_TEST(resumed.output.find("with other settings:\n  train.steps: 10 -> 11\n") != std::string::npos,
             resumed.output);
  BOOST_TEST(settings(run("train " + file + " --print-config").output, "\n[") == settings(slurp(file), "\n["));
  // A size on the command line takes those along that follow from it, a preset all.
  const Outcome other = run("train " + file + " model.dim=64 --print-config run.out=" + wide.string());
  BOOST_TEST(other.output.find("\n# head_dim = 32 ") != std::string::npos, other.output);
  const Outcome preset = run("train model.preset=transformer-tiny " + file + " model.dim=64 --print-config");
  for (const char* line :
       {"\n# n_layer = 4 ", "\n# head_dim = 8 ", "\n# use_dcmha = false ", "\n# window_size = \"null\" ",
        "\n# vocab_size = 258 ", "note: model.preset=transformer-tiny "})
    BOOST_TEST(preset.output.find(line) != std::string::npos, preset.output);
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

// bf16 arithmetic: the checkpoint holds f32 masters, a stopped run continues to the same bytes, and the loss follows
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
  const double a = apps::read_log(out).back()["val_loss"], b = apps::read_log(exact).back()["val_loss"];
  BOOST_TEST(std::fabs(a / b - 1) < 0.01);
  BOOST_TEST(a != b);
  // The same masters may continue in f32, with a message; f64 is rejected.
  const Outcome changed = train(out, {"train.accumulate=2", "train.steps=11"});
  BOOST_TEST(changed.code == 0, changed.output);
  BOOST_TEST(changed.output.find("train.dtype: \"bf16\" -> \"f32\"") != std::string::npos, changed.output);
  check_failure(train(out, {"train.dtype=f64"}), 2, "expected train.dtype = f32, found f64; ");
  // The trained model can be used in any arithmetic.
  for (const char* dtype : {"f32", "bf16", "f64"}) {
    const Outcome text = run("generate " + out.string() + " --tokens 4 --device cpu --dtype " + dtype);
    BOOST_TEST(text.code == 0, text.output);
  }
}

BOOST_AUTO_TEST_CASE(stochastic_rounding_keeps_16_bits_and_resumes_exactly) {
  const std::vector<std::string> given = {"train.dtype=bf16", "train.rounding=stochastic", "schedule.name=constant"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), given.begin(), given.end());
    return more;
  };
  const fs::path straight = world().fresh(), out = world().fresh();
  const Outcome whole = train(straight, given);
  BOOST_TEST(whole.code == 0, whole.output);
  BOOST_TEST(whole.output.find("bf16 weights, stochastically rounded, on cpu") != std::string::npos, whole.output);
  {
    Process process(settings(out, with({"checkpoint.interval=1"})));
    read_until(process, "step 4/");
  }  // SIGKILL
  BOOST_TEST(train(out, with({"run.threads=1"})).output.find("resuming from ") != std::string::npos);
  check_same(out, straight);
  const io::TensorFiles stored((step(out, kSteps) / "model.safetensors").string());
  for (const auto& t : stored.tensors())
    BOOST_TEST((t.dtype == (t.name.starts_with("tok_embeddings") ? DType::f32 : DType::bf16)), t.name);
  check_failure(train(out, {"train.dtype=bf16", "train.steps=11"}), 2,
                "expected weights in bf16, found f32 (train.rounding); undo the change");
  for (const std::string& works : {"generate " + out.string() + " --tokens 4 --device cpu",
                                   join(settings(world().fresh(), with({"--dry-run"})), " ")})
    BOOST_TEST(run(works).code == 0, works);
  check_failure(run(join(settings(world().fresh(), with({"--dry-run", "--for=h100"})), " ")), 2,
                "train.rounding = stochastic is for the CPU");
}

BOOST_AUTO_TEST_CASE(a_validation_takes_the_same_samples_at_any_batch_size) {
  std::vector<double> losses;
  for (const char* batch : {"4 train.accumulate=1", "2 train.accumulate=2", "1 train.accumulate=4"}) {
    const fs::path out = world().fresh();
    const Outcome result = train(out, {std::string("train.batch_size=") + batch, "train.dtype=f64", "eval.samples=6",
                                       "train.steps=5", "optimizer.eps=1e-4"});
    BOOST_REQUIRE_MESSAGE(result.code == 0, result.output);
    losses.push_back(apps::read_log(out).back()["val_loss"]);
  }
  BOOST_TEST(losses[1] == losses[0], boost::test_tools::tolerance(1e-10));
  BOOST_TEST(losses[2] == losses[0], boost::test_tools::tolerance(1e-10));
}

BOOST_AUTO_TEST_CASE(samples_of_a_padded_vocabulary_have_ids_of_the_tokenizer) {  // nearly all ids are padding
  const fs::path out = world().fresh();
  const Outcome result =
      train(out, {"model.vocab_size=5000", "sample.interval=5", "sample.tokens=20", "sample.prompt=1"});
  BOOST_TEST(result.code == 0, result.output);
  BOOST_TEST(slurp(out / "samples.txt").find("--- step 10\n1") != std::string::npos);
}

// The loss decides about a run, not a sample: that it could not be drawn is noted.
BOOST_AUTO_TEST_CASE(a_sample_of_infinite_logits_is_noted_and_ends_nothing) {
  const fs::path out = world().fresh();
  const Outcome result = train(out, {"optimizer.lr=1e17", "optimizer.clip=0", "schedule.warmup=0", "eval.interval=0",
                                     "sample.interval=1", "sample.prompt=12"});
  BOOST_TEST(result.code == 5);
  BOOST_TEST(
      result.output.find("note: no sample at step 1: no token can be drawn for position 2: ") != std::string::npos,
      result.output);
  BOOST_TEST(result.output.find("the loss is NaN at step 2; ") != std::string::npos, result.output);
  BOOST_TEST(
      slurp(out / "samples.txt").starts_with("--- step 1\n12\n(no sample: no token can be drawn for position 2: "));
}

BOOST_AUTO_TEST_CASE(a_model_that_is_shown_its_targets_gets_a_warning) {
  const Outcome result = train(world().fresh(), {"model.profile.causal=false", "train.steps=2", "eval.interval=0"});
  BOOST_TEST(result.code == 0, result.output);
  BOOST_TEST(result.output.find("warning: with profile.causal=false every position attends to the token that it") !=
                 std::string::npos,
             result.output);
  BOOST_TEST(result.output.find("trained 2 steps in ") != std::string::npos, result.output);
  BOOST_TEST(result.output.find("trained 2 steps in 0 s") == std::string::npos, result.output);
}

BOOST_AUTO_TEST_CASE(a_plan_uses_the_rate_that_the_run_had) {
  const Outcome plan = run(join(settings(undisturbed(), {"train.steps=1000000", "--dry-run"}), " "));
  BOOST_TEST(plan.code == 0, plan.output);
  for (const std::string& words :
       {"measured: " + undisturbed().string() + "/log.csv", std::string("for 999990 steps after step 10")})
    BOOST_TEST(plan.output.find(words) != std::string::npos, plan.output);
  const Outcome other = run(join(settings(undisturbed(), {"train.dtype=bf16", "--dry-run"}), " "));
  BOOST_TEST(other.output.find("at 33.3 % of the matrix product's rate (assumed") != std::string::npos, other.output);
}

BOOST_AUTO_TEST_CASE(memory_is_reported_by_use) {
  const fs::path out = world().fresh(), saving = world().fresh();
  const auto peak = [&](const fs::path& folder, const std::vector<std::string>& more) {
    std::vector<std::string> all = {"train.steps=2", "train.dtype=bf16", "model.n_layer=8", "eval.interval=0"};
    all.insert(all.end(), more.begin(), more.end());
    const Outcome result = train(folder, all);
    BOOST_TEST(result.code == 0, result.output);
    for (const char* use : {"weights ", "gradients ", "optimizer ", "workspace ", " MiB: weights "})
      BOOST_TEST(result.output.find(use) != std::string::npos, result.output);
    const auto state = io::read_json_file((step(folder, 2) / "trainer/state.json").string(), 1 << 20);
    return state.at("peak_memory_bytes").at("activations").get<int64_t>();
  };
  const int64_t kept = peak(out, {}), recomputed = peak(saving, {"train.recompute=true"});
  BOOST_TEST(recomputed < kept / 2);
  BOOST_TEST((weights(step(out, 2)) == weights(step(saving, 2))));
  const Outcome plan = run("train --dry-run model.preset=dcformer-tiny train.dtype=bf16");
  BOOST_TEST(plan.code == 0, plan.output);
  for (const char* words : {"tokens, bf16)", ", f32 and copies in bf16", "total if blocks were recomputed"})
    BOOST_TEST(plan.output.find(words) != std::string::npos, plan.output);
}

// Static mixing of heads alone, and nothing that mixes heads, from the first step to the dump.
BOOST_AUTO_TEST_CASE(switched_off_parts_leave_a_model_that_trains) {
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"model.profile.static_proj=true", "model.profile.query_side=false",
                                 "model.profile.key_side=false"},
        {"model.profile.pre_compose=false", "model.profile.post_compose=false"}}) {
    const fs::path out = world().fresh();
    const Outcome trained = train(out, more);
    BOOST_TEST(trained.code == 0, trained.output);
    const Outcome text = run("generate " + out.string() + " -p 1 -n 4 -t 0");
    BOOST_TEST(text.code == 0, text.output);
  }
}

BOOST_AUTO_TEST_CASE(task_accuracy_stands_beside_that_of_a_guess) {
  for (const auto& [set, chance] : {std::pair{"in-context", "33.3%"}, {"recall", "25.0%"}}) {
    const Outcome trained = train(world().fresh(), {"eval.tasks=2", "eval.task_set=" + std::string(set),
                                                    "model.block_size=128", "train.steps=2"});
    BOOST_TEST(trained.code == 0, trained.output);
    BOOST_TEST(trained.output.find("(guessing: " + std::string(chance) + ")") != std::string::npos, trained.output);
  }
}

BOOST_AUTO_TEST_CASE(no_graded_answer_is_said) {
  const fs::path out = world().fresh();
  const Outcome trained = train(out, {"eval.tasks=6", "model.block_size=3", "train.steps=2"});
  BOOST_TEST(trained.code == 0, trained.output);
  BOOST_TEST(trained.output.find("note: task_acc stays empty: no answer of the eval.tasks = 6 tasks lies in the last "
                                 "model.block_size = 3 tokens of its sample") != std::string::npos,
             trained.output);
  BOOST_TEST(trained.output.find("task accuracy") == std::string::npos, trained.output);
}

BOOST_AUTO_TEST_CASE(the_best_and_every_so_many_checkpoints_are_kept) {
  const std::vector<std::string> kept = {"checkpoint.best=true", "checkpoint.keep_every=4", "eval.interval=3",
                                         "train.steps=20",       "optimizer.lr=0.05",       "schedule.name=constant"};
  const fs::path out = world().fresh();
  const Outcome result = train(out, kept);
  BOOST_TEST(result.code == 0, result.output);
  double lowest = INFINITY;
  int64_t best = 0;
  for (const apps::LogRow& row : apps::read_log(out))
    if (row["val_loss"] < lowest) lowest = row["val_loss"], best = row.step;
  BOOST_TEST(slurp(out / "best") == models::step_name(best) + "\n");
  std::set<int64_t> expected = {4, 8, 12, 16, 20, best}, found;
  for (const models::StepFolder& f : models::step_folders(out)) found.insert(f.step);
  BOOST_TEST(found == expected, boost::test_tools::per_element());
  BOOST_TEST(best < 16);  // else the test shows nothing
  const Outcome info = run("info " + (out / "best").string()),
                text = run("generate --device cpu -n 4 -t 0 " + (out / "best").string()),
                named = run("generate --device cpu -n 4 -t 0 " + step(out, static_cast<int>(best)).string());
  BOOST_TEST(info.code == 0, info.output);
  BOOST_TEST(text.code == 0, text.output);
  BOOST_TEST(text.output == named.output);
  BOOST_TEST(run("info " + (out / "latest").string()).code == 0);
  // Killed between a checkpoint and `best`, the run names it at the next start; also without the log.
  for (const bool log : {true, false}) {
    const fs::path killed = world().fresh();
    fs::copy(out, killed, fs::copy_options::recursive);
    write(killed / "best", "step-00000004\n");
    if (!log) fs::remove(killed / "log.csv");
    BOOST_TEST(train(killed, kept).code == 0);
    BOOST_TEST(slurp(killed / "best") == models::step_name(best) + "\n");
  }
  // A resumed run measures itself against the best so far.
  std::vector<std::string> longer = kept;
  longer.insert(longer.end(), {"train.steps=24", "optimizer.lr=1e-9", "eval.interval=1"});
  BOOST_TEST(train(out, longer).code == 0);
  BOOST_TEST(slurp(out / "best") == models::step_name(best) + "\n");
  flip_byte(step(out, static_cast<int>(best)) / "model.safetensors");
  check_failure(run("info " + (out / "best").string()), 7, "is damaged: model.safetensors has checksum");
  check_failure(train(out, {"checkpoint.best=true", "eval.interval=0"}), 2, "checkpoint.best needs a validation");
}

BOOST_AUTO_TEST_CASE(the_best_checkpoint_is_not_chosen_across_two_measures) {
  const std::vector<std::string> few = {"checkpoint.best=true", "eval.interval=2", "train.steps=4", "eval.samples=1"};
  const fs::path out = world().fresh();
  BOOST_TEST(train(out, few).code == 0);
  std::vector<std::string> more = few;
  more.insert(more.end(), {"train.steps=6", "eval.samples=0", "optimizer.lr=1e-9", "schedule.name=constant"});
  const Outcome result = train(out, more);
  BOOST_TEST(result.code == 0, result.output);
  BOOST_TEST(result.output.find("validated with another eval.samples than 0") != std::string::npos, result.output);
  BOOST_TEST(slurp(out / "best") == "step-00000006\n");
}

BOOST_AUTO_TEST_CASE(checkpoints_by_the_clock) {
  const fs::path out = world().fresh();
  BOOST_TEST(train(out, {"checkpoint.minutes=1e-9"}).code == 0);
  BOOST_TEST(fs::exists(step(out, 9)));
  BOOST_TEST(fs::exists(step(out, 10)));
}

BOOST_AUTO_TEST_CASE(latest_is_corrected_after_a_kill_between_a_checkpoint_and_it) {
  const fs::path out = world().fresh();
  BOOST_TEST(train(out, {"checkpoint.interval=5"}).code == 0);
  write(out / "latest", "step-00000005\n");
  BOOST_TEST(train(out, {"checkpoint.interval=5"}).code == 0);  // the run is finished, nothing is saved
  BOOST_TEST(slurp(out / "latest") == "step-00000010\n");
}

BOOST_AUTO_TEST_SUITE_END()
