// braid train on preferences (DPO): it learns them, resumes to the same bits, and rejects what does not fit.
#include <cmath>
#include <nlohmann/json.hpp>

#include "braid/models/data/text/manifest.h"
#include "braid/tensor/io/safetensors.h"
#include "tests/apps/train/finished_run.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(train_preferences_suite)

namespace {

// Which of two answers is the better one depends on the first letter of the prompt, so that an accuracy above that of a
// guess is learnt from the prompt.
std::string pairs(int count) {
  std::mt19937 random(7);
  std::string lines;
  for (int i = 0; i < count; ++i) {
    const bool up = random() % 2 == 0;
    lines += std::string("{\"prompt\": \"") + (up ? "x" : "y") + std::to_string(random() % 1000) +
             " \", \"chosen\": \"" + (up ? "11 22" : "5") + "\", \"rejected\": \"" + (up ? "5" : "11 22") + "\"}\n";
  }
  return lines;
}

const std::filesystem::path& data() {
  static const std::filesystem::path folder = [] {
    const std::filesystem::path in = world().scratch / "pairs.jsonl", out = world().scratch / "pairs";
    write(in, pairs(200));
    const Outcome made = run("prepare " + in.string() + " --preferences --val-fraction 0.2 -o " + out.string());
    if (made.code != 0) throw std::runtime_error(made.output);
    if (made.output.find("200 pairs of sequences of at most ") == std::string::npos)
      throw std::runtime_error(made.output);
    return out;
  }();
  return folder;
}

Outcome train_pairs(const std::filesystem::path& out, const std::vector<std::string>& more = {}) {
  std::vector<std::string> all = {"data.path=" + data().string(), "train.init_from=" + undisturbed().string(),
                                  "data.seq_len=16", "train.accumulate=2"};
  all.insert(all.end(), more.begin(), more.end());
  return train(out, all);
}

int64_t train_pairs_of_data() { return models::text::read_manifest(data().string()).train.documents / 2; }

std::filesystem::path reference(const std::filesystem::path& out) { return out / "reference.safetensors"; }

const std::filesystem::path& straight() {
  static const std::filesystem::path out =
      finished_run([](const std::filesystem::path& path) { return train_pairs(path, {"sample.interval=5"}); });
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_preference_is_learnt) {
  const std::filesystem::path out = world().fresh();
  const Outcome result = train_pairs(out, {"train.steps=80", "train.batch_size=8", "optimizer.lr=3e-3",
                                           "eval.interval=80", "eval.samples=0", "dpo.beta=0.3"});
  BOOST_TEST(result.code == 0, result.output);
  for (const char* words :
       {"train pairs of sequences of 16", "reference: the weights of the start", "validation accuracy"})
    BOOST_TEST(result.output.find(words) != std::string::npos, result.output);
  const std::vector<apps::LogRow> log = apps::read_log(out);
  BOOST_TEST(log[0]["accuracy"] == 0.5);  // the model is its own reference
  BOOST_TEST(log[0]["margin"] == 0);
  BOOST_TEST(log[0]["loss"] == std::log(2.0), boost::test_tools::tolerance(1e-6));
  const apps::LogRow& last = log.back();
  BOOST_TEST(last["accuracy"] > 0.9, result.output);
  BOOST_TEST(last["val_accuracy"] > 0.9, result.output);
  BOOST_TEST(last["loss"] < 0.5);
  BOOST_TEST(last["val_loss"] < 0.5);
  BOOST_TEST(last["val_margin"] > 0);
  for (const apps::LogRow& row : log) {
    BOOST_TEST(row["margin"] - (row["reward_chosen"] - row["reward_rejected"]) == 0,
               boost::test_tools::tolerance(1e-9));
    BOOST_TEST((row["logp_chosen"] < 0 && row["logp_rejected"] < 0));
  }
  BOOST_TEST(last["tokens"] == 80 * 16 * 2 * 16);
  const std::filesystem::path chart = world().scratch / "pairs.svg", csv = world().scratch / "pairs.csv";
  BOOST_TEST(run("plot " + out.string() + " -o " + chart.string()).code == 0);
  for (const char* title : {"Preferred as labelled (%)", "Margin of the rewards", "Log-probability, rejected"})
    BOOST_TEST(slurp(chart).find(title) != std::string::npos, title);
  BOOST_TEST(run("status " + out.string() + " --json").output.find("\"accuracy\":") != std::string::npos);
  const Outcome seen = run("inspect " + data().string() + " --batch 1 data.seq_len=16 train.batch_size=1");
  BOOST_TEST(seen.code == 0, seen.output);
  for (const std::string& words : {std::string(", chosen"), std::string(", rejected"),
                                   std::to_string(train_pairs_of_data()) + " pairs of sequences"})
    BOOST_TEST(seen.output.find(words) != std::string::npos, seen.output);
}

BOOST_AUTO_TEST_CASE(a_resumed_run_ends_with_the_same_bits) {
  const std::filesystem::path origin = world().fresh();
  std::filesystem::copy(step(undisturbed(), kSteps), origin, std::filesystem::copy_options::recursive);
  const auto train_in = [&](const std::filesystem::path& path) {
    return train_pairs(path, {"train.init_from=" + origin.string(), "sample.interval=5", "checkpoint.interval=3"});
  };
  const std::filesystem::path out = finished_run(train_in);
  check_same(out, straight());
  BOOST_TEST(slurp(out / "samples.txt") == slurp(straight() / "samples.txt"));
  const std::string before = slurp(reference(out));
  BOOST_TEST(before == slurp(reference(straight())));
  std::filesystem::remove_all(origin);  // the reference is in the run
  check_resumes(out, straight(), train_in);
  BOOST_TEST(slurp(reference(out)) == before);
  std::filesystem::remove_all(step(out, kSteps));
  std::filesystem::remove(reference(out));
  check_failure(train_in(out), 3, "the losses of the reference are missing");
  io::save_safetensors(reference(out).string(), {{"train", zeros({4}, DType::f64)}});
  check_failure(train_in(out), 3, "the losses of the reference are not those of the data");
  write(reference(out), before);
  check_failure(train_pairs(out, {"train.init_from=" + origin.string(), "data.seq_len=12"}), 2, "data.seq_len");
  BOOST_TEST(train_in(out).code == 0);
  check_same(out, straight());
}

BOOST_AUTO_TEST_CASE(a_killed_run_ends_with_the_same_bits) {
  const std::filesystem::path out = world().fresh();
  const std::vector<std::string> more = {"data.path=" + data().string(),
                                         "train.init_from=" + undisturbed().string(),
                                         "data.seq_len=16",
                                         "train.accumulate=2",
                                         "sample.interval=5",
                                         "checkpoint.interval=2"};
  {
    Process process(settings(out, more));
    read_until(process, "step 7");
    process.signal(SIGKILL);
    process.wait();
  }
  const Outcome again = train(out, more);
  BOOST_TEST(again.code == 0, again.output);
  check_same(out, straight());
}

// The reference is computed for both splits, so a run may validate from any step on.
BOOST_AUTO_TEST_CASE(a_run_without_validation_may_go_on_with_it) {
  const std::filesystem::path out = world().fresh();
  const auto to = [&](const std::string& steps, const std::string& interval) {
    return train_pairs(out, {"schedule.name=constant", "train.steps=" + steps, "eval.interval=" + interval});
  };
  BOOST_TEST(to("3", "0").code == 0);
  BOOST_TEST(slurp(reference(out)) == slurp(reference(straight())));
  const Outcome more = to("5", "5");
  BOOST_TEST(more.code == 0, more.output);
  BOOST_TEST(std::isfinite(apps::read_log(out).back()["val_accuracy"]));
  // A run of an earlier version.
  const Tensor train = io::SafetensorsFile(reference(out).string()).load("train");
  io::save_safetensors(reference(out).string(), {{"train", train}});
  check_failure(to("7", "5"), 2, "began without validation, so it has no losses of the reference for the val split");
  BOOST_TEST(to("7", "0").code == 0);
}

// A pair has the tokens of two sequences.
BOOST_AUTO_TEST_CASE(a_study_counts_the_tokens_of_pairs) {
  const std::filesystem::path out = world().fresh(), file = world().scratch / "pairs-study.toml";
  write(file, "[study]\nout = \"" + out.string() + "\"\nseeds = 1\ntokens = 256\n[base]\ndata.path = \"" +
                  data().string() + "\"\ndata.seq_len = 16\ntrain.init_from = \"" + undisturbed().string() +
                  "\"\ntrain.batch_size = 2\nschedule.warmup = 1\neval.samples = 2\nlog.interval = 1\n[variants.x]\n");
  const Outcome result = run("study " + file.string());
  BOOST_TEST(result.code == 0, result.output);
  const std::filesystem::path of_run = out / "runs/one-x-256t-s1";
  BOOST_TEST(apps::read_log(of_run).back()["tokens"] == 256);
  BOOST_TEST(nlohmann::json::parse(slurp(of_run / "result.json"))["tokens"] == 256);
}

// With LoRA the reference is the same model with LoRA off, to the bit, and the weights beside it stay.
BOOST_AUTO_TEST_CASE(lora_has_the_reference_of_a_run_without) {
  const std::filesystem::path out = world().fresh();
  const Outcome result = train_pairs(out, {"lora.rank=4", "optimizer.lr=1e-2", "train.steps=20"});
  BOOST_TEST(result.code == 0, result.output);
  BOOST_TEST(slurp(reference(out)) == slurp(reference(straight())));
  BOOST_TEST(slurp(step(out, 20) / "model.safetensors") == slurp(step(undisturbed(), kSteps) / "model.safetensors"));
  const std::vector<apps::LogRow> log = apps::read_log(out);
  BOOST_TEST(log[0]["margin"] == 0);
  BOOST_TEST(log.back()["val_accuracy"] > 0.5);
}

BOOST_AUTO_TEST_CASE(every_setting_counts) {
  const apps::LogRow plain = apps::read_log(straight()).back();
  for (const char* more : {"dpo.beta=0.5", "dpo.label_smoothing=0.2", "dpo.length_normalised=true",
                           "dpo.sft_weight=0.5", "train.dtype=bf16", "optimizer.name=muon"}) {
    const std::filesystem::path out = world().fresh();
    const Outcome result = train_pairs(out, {more});
    BOOST_TEST(result.code == 0, result.output);
    BOOST_TEST(apps::read_log(out).back()["val_loss"] != plain["val_loss"], more);
  }
  const std::filesystem::path still = world().fresh();
  const Outcome result = train_pairs(still, {"optimizer.lr=1e-30", "eval.interval=1", "eval.patience=2"});
  BOOST_TEST(result.code == 0, result.output);
  BOOST_TEST(result.output.find("no lower validation loss in 2 validations") != std::string::npos, result.output);
  BOOST_TEST(apps::read_log(still).size() == 3u);
}

BOOST_AUTO_TEST_CASE(the_plan_counts_pairs) {
  const auto plan = [](const std::string& of, const std::string& more) {
    const Outcome o = run("train data.path=" + of + " train.init_from=" + undisturbed().string() +
                          " train.batch_size=4 --dry-run " + more);
    BOOST_TEST(o.code == 0, o.output);
    return o.output;
  };
  const std::string text = plan(data().string(), "data.seq_len=16 train.epochs=3");
  for (const char* words :
       {"by the log-probabilities of 200 pairs, computed once", "of memory instead of a second model",
        "batch 4 x 2 x 16 tokens", "tokens per step                    128", " pairs gives train.steps = "})
    BOOST_TEST(text.find(words) != std::string::npos, "no '" << words << "' in " << text);
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_rejected) {
  const auto rejected = [](const std::string& more, const std::string& words) {
    check_failure(train_pairs(world().fresh(), {more}), 2, words);
  };
  rejected("train.init_from=", "expected train.init_from=FOLDER, found none");
  rejected("model.dropout=0.1", "model.dropout does not go with preferences");
  rejected("train.z_loss=1e-4", "train.z_loss does not go with preferences");
  rejected("eval.tasks=5", "eval.tasks does not go with preferences");
  rejected("data.packing=in_order", "data.packing does not go with preferences");
  rejected("data.documents=joined", "data.documents does not go with preferences");
  for (const char* layout : {"parallel.tensor", "parallel.context"})
    check_failure(run(join(settings(world().fresh(), {"data.path=" + data().string(), std::string(layout) + "=2",
                                                      "train.init_from=" + undisturbed().string()}),
                           " ") +
                      " --dry-run"),
                  2, std::string(layout) + " does not go with preferences");
  rejected("dpo.beta=0", "dpo.beta");
  rejected("dpo.label_smoothing=0.5", "dpo.label_smoothing");
  rejected("dpo.sft_weight=-1", "dpo.sft_weight");
  rejected("augment.flip=true", "augment.* changes images");
  check_failure(train(world().fresh(), {"dpo.beta=0.2"}), 2, "dpo.* is for pairs of answers");
  check_failure(train(world().fresh(), {"data.path=", "data.sources=" + data().string()}), 2,
                "which holds preferences");
  check_failure(train_pairs(world().fresh(), {"data.seq_len=2"}), 3, "no sample of at most 3 tokens");
  const std::filesystem::path bad = world().scratch / "bad.jsonl";
  write(bad, "{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": \"c\"}\n{\"prompt\": \"a\", \"chosen\": \"b\"}\n");
  const std::string prepare = "prepare " + bad.string() + " -o " + (world().scratch / "bad").string();
  check_failure(run(prepare + " --preferences"), 3,
                "bad.jsonl at line 2: expected text (a list of messages needs a chat template, --chat) in the field "
                "\"rejected\", found none");
  check_failure(run(prepare + " --preferences --answers"), 2, "--answers is for samples with one answer");
  check_failure(run(prepare + " --preferences --tasks 10"), 2, "--tasks is for text");
  write(bad, "{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": \"" + std::string(40, 'c') + "\"}\n" + pairs(20));
  BOOST_TEST(run(prepare + " --preferences --val-fraction 0").code == 0);
  const std::string short_data = "data.path=" + (world().scratch / "bad").string();
  const Outcome left_out = train_pairs(world().fresh(), {short_data, "eval.interval=0"});
  BOOST_TEST(left_out.code == 0, left_out.output);
  BOOST_TEST(left_out.output.find("1 of 21 pairs are left out") != std::string::npos, left_out.output);
  check_failure(train_pairs(world().fresh(), {short_data}), 2, "no pair to validate on");
  const Outcome cut = train_pairs(world().fresh(), {"data.long_samples=cut", "data.seq_len=4", "eval.interval=0"});
  BOOST_TEST(cut.output.find("left out: a sequence has no answer within data.seq_len = 4\n") != std::string::npos,
             cut.output);
}

BOOST_AUTO_TEST_SUITE_END()
