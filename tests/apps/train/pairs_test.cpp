// braid train on pairs of sequences: it learns, resumes to the same bits, decodes, and rejects what does not fit.
#include <nlohmann/json.hpp>

#include "tests/apps/train/finished_run.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(train_pairs_suite)

namespace {

Outcome train_pairs(const std::filesystem::path& out, const std::string& more = "", const std::string& before = "") {
  return run("train run.out=" + out.string() +
                 " data.path=pairs:reverse model.preset=dc-seq2seq-tiny model.hidden_size=32 model.encoder_layers=1"
                 " model.decoder_layers=1 model.intermediate_size=64 train.steps=10 train.batch_size=6"
                 " train.accumulate=2 optimizer.lr=3e-3 schedule.warmup=2 eval.interval=5 eval.samples=18"
                 " checkpoint.interval=0 log.interval=1 guard.spike=0 run.threads=1 " +
                 more,
             before);
}

const std::filesystem::path& straight() {
  static const std::filesystem::path out =
      finished_run([](const std::filesystem::path& path) { return train_pairs(path, "sample.interval=5"); });
  return out;
}

}  // namespace

// An exact match is no choice among a few answers.
BOOST_AUTO_TEST_CASE(nothing_is_said_about_guessing) {
  const Outcome trained = train_pairs(world().fresh(), "train.steps=2");
  BOOST_TEST(trained.code == 0, trained.output);
  BOOST_TEST(trained.output.find("task accuracy") != std::string::npos, trained.output);
  BOOST_TEST(trained.output.find("guessing") == std::string::npos, trained.output);
}

BOOST_AUTO_TEST_CASE(a_resumed_run_ends_with_the_same_bits) {
  const auto train_in = [](const std::filesystem::path& path) {
    return train_pairs(path, "sample.interval=5 checkpoint.interval=3");
  };
  const std::filesystem::path out = finished_run(train_in);
  check_same(out, straight());
  check_resumes(out, straight(), train_in);
  BOOST_TEST(slurp(out / "samples.txt") == slurp(straight() / "samples.txt"));
  const std::vector<apps::LogRow> log = apps::read_log(out);
  for (const size_t at : {4u, 9u}) {
    BOOST_TEST(log[at]["val_loss"] > 0);
    BOOST_TEST((log[at]["task_acc"] >= 0 && log[at]["task_acc"] <= 1));
  }
  BOOST_TEST(std::isnan(log[3]["task_acc"]));
  BOOST_TEST(log[9]["tokens"] == 120 * 34);
}

// Validation and the saved model have the averaged weights, a resume the trained ones too.
BOOST_AUTO_TEST_CASE(averaged_weights_and_layer_decay_resume_exactly) {
  const std::string more = "train.ema=0.8 optimizer.layer_decay=0.7 ";
  const std::filesystem::path whole = world().fresh();
  const Outcome first = train_pairs(whole, more);
  BOOST_TEST(first.code == 0, first.output);
  for (const char* words : {"lr x 0.7", "lr x 0.343"})
    BOOST_TEST(first.output.find(words) != std::string::npos, first.output);
  const auto train_in = [&](const std::filesystem::path& path) {
    return train_pairs(path, more + "checkpoint.interval=7");
  };
  const std::filesystem::path out = finished_run(train_in);
  check_resumes(out, whole, train_in);
  const apps::LogRow last = apps::read_log(whole).back(), plain = apps::read_log(straight()).back();
  BOOST_TEST(last["val_loss"] != plain["val_loss"]);
  const std::filesystem::path json = world().scratch / "averaged.json";
  BOOST_TEST(run("eval " + whole.string() + " pairs:reverse --limit 18 --batch 6 --json " + json.string()).code == 0);
  BOOST_TEST(nlohmann::json::parse(slurp(json))["results"][0]["loss"].get<double>() == last["val_loss"],
             boost::test_tools::tolerance(1e-6));
  const Outcome bare = train_pairs(out, "train.steps=12");  // another setting may change at a resume
  BOOST_TEST(bare.output.find("train.ema: 0.8 -> 0") != std::string::npos, bare.output);
  BOOST_TEST(bare.code == 0, bare.output);
  check_failure(train_pairs(world().fresh(), "train.ema=1"), 2, "train.ema");
  check_failure(train_pairs(world().fresh(), "optimizer.layer_decay=0"), 2, "optimizer.layer_decay");
}

// The letters of short words are in the source, so that a copy at the right place is all there is to learn.
BOOST_AUTO_TEST_CASE(it_learns_and_is_scored) {
  for (const std::string more : {"", "train.dtype=bf16", "model.use_dcmha=false"}) {
    const std::filesystem::path out = world().fresh();
    const Outcome result = train_pairs(
        out, "train.steps=300 train.batch_size=32 train.accumulate=1 eval.interval=300 eval.samples=96 " + more);
    BOOST_TEST(result.code == 0, result.output);
    const apps::LogRow last = apps::read_log(out).back();
    BOOST_TEST(last["val_loss"] < 2.4, more << "\n" << result.output);  // by chance: ln 26 = 3.26
    if (!more.empty()) continue;
    const std::filesystem::path json = world().scratch / "pairs.json";
    const Outcome scored = run("eval " + out.string() + " pairs:reverse --limit 96 --batch 32 --json " + json.string());
    BOOST_TEST(scored.code == 0, scored.output);
    BOOST_TEST(scored.output.find("96 pairs  exact match") != std::string::npos, scored.output);
    const nlohmann::json found = nlohmann::json::parse(slurp(json))["results"][0];
    BOOST_TEST(found["exact_match"].get<double>() == last["task_acc"]);
    BOOST_TEST(found["loss"].get<double>() == last["val_loss"], boost::test_tools::tolerance(1e-5));
  }
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_rejected) {
  const auto rejected = [](const std::string& more, const std::string& words) {
    check_failure(train_pairs(world().fresh(), more), 2, words);
  };
  rejected("data.path=pairs:reversed", "did you mean 'reverse'?");
  rejected("data.seq_len=16", "data.seq_len is for text");
  rejected("eval.tasks=5", "eval.tasks is for text");
  rejected("data.documents=joined", "data.documents is for text");
  rejected("sample.prompt=abc", "sample.prompt is for text");
  rejected("augment.flip=true", "augment.* changes images");
  rejected("model.max_source_length=10", "model.max_source_length does not fit the pairs of sequences");
  check_failure(run("train data.path=pairs:sort model.preset=dcformer-tiny"), 2, "does not read pairs of sequences");
  check_failure(run("train data.path=" + world().data().string() + " model.preset=seq2seq-tiny"), 3,
                "does not model text");
  check_failure(train_pairs(straight(), "data.path=pairs:sort train.steps=12"), 2, "fingerprint");
  const std::string model = straight().string();
  check_failure(run("eval " + model + " pairs:dates"), 3, "pairs:dates does not fit the model");
  check_failure(run("eval " + model + " pairs:reverse in-context"), 2, "tasks of different models");
  check_failure(run("eval " + model + " pairs:reverse --max-length 5"), 2, "--max-length is for texts");
  check_failure(run("eval " + undisturbed().string() + " pairs:sort"), 3, "does not read pairs of sequences");
  const Outcome plan = run("train data.path=pairs:dates model.preset=dc-seq2seq-tiny --dry-run");
  BOOST_TEST(plan.code == 0, plan.output);
  BOOST_TEST(plan.output.find("parameters") != std::string::npos, plan.output);
}

BOOST_AUTO_TEST_SUITE_END()
