// braid train on packed documents and on samples for fine-tuning; epochs.
#include "tests/apps/train/runs.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(train_documents)

namespace fs = std::filesystem;

BOOST_AUTO_TEST_CASE(separate_documents_train_otherwise_and_resume_to_the_same_bytes) {
  const std::vector<std::string> separate = {"data.documents=separate", "model.block_size=512",
                                             "schedule.name=constant"};
  const auto with = [&](const char* more) {
    std::vector<std::string> all = separate;
    all.push_back(more);
    return all;
  };
  const fs::path whole = world().fresh(), stopped = world().fresh(), joined = world().fresh();
  const Outcome result = train(whole, with("run.threads=2"));
  BOOST_TEST(result.code == 0, result.output);
  BOOST_TEST(train(stopped, with("train.steps=4 run.threads=1")).code == 0);
  const Outcome rest = train(stopped, with("train.recompute=true"));
  BOOST_TEST(rest.code == 0, rest.output);
  BOOST_TEST((weights(step(stopped, kSteps)) == weights(step(whole, kSteps))));
  BOOST_TEST(train(joined, {"model.block_size=512", "schedule.name=constant"}).code == 0);
  BOOST_TEST((weights(step(whole, kSteps)) != weights(step(joined, kSteps))));
  BOOST_TEST(slurp(whole / "config.resolved.toml").find("\ndocuments = \"separate\" ") != std::string::npos);
  check_failure(train(world().fresh(), {"data.documents=apart"}), 2, "data.documents");
}

// One answer to each question: the loss counts the answers alone, and a model of this size learns some of them.
BOOST_AUTO_TEST_CASE(samples_train_by_epochs_and_resume_to_the_same_bytes) {
  const fs::path data = world().scratch / "samples";
  std::string lines;
  for (int i = 0; i < 60; ++i) {
    const std::string question = "item " + std::to_string(i * 7919 % 1000);
    lines += "{\"messages\": [{\"role\": \"user\", \"content\": \"" + question +
             "\"}, {\"role\": \"assistant\", \"content\": \"aaaa\"}]}\n";
  }
  lines += "{\"prompt\": \"" + std::string(200, 'x') + "\", \"answer\": \"y\"}\n";
  write(world().scratch / "chats.jsonl", lines);
  const Outcome made = run("prepare " + (world().scratch / "chats.jsonl").string() +
                           " -e --chat '{role}: {content}\\n' --val-fraction 0.1 -o " + data.string());
  BOOST_TEST(made.code == 0, made.output);
  for (const char* words : {"61 samples of at most 221 tokens, ", "% of the tokens are targets", "next: braid train"})
    BOOST_TEST(made.output.find(words) != std::string::npos, made.output);
  BOOST_TEST(run("prepare " + (world().scratch / "chats.jsonl").string() + " --answers --tasks 3 -o x").code == 2);
  BOOST_TEST(run("prepare a.txt --prompt-field q -o x").code == 2);

  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = {"data.path=" + data.string(), "model.block_size=96", "schedule.warmup=1",
                                    "schedule.name=constant", "optimizer.lr=0.01"};
    all.insert(all.end(), more.begin(), more.end());
    std::vector<std::string> args = settings(world().scratch / "unused", all);
    std::erase_if(args, [](const std::string& text) { return text == "train.steps=10"; });
    return args;
  };
  const auto go = [&](const fs::path& out, const std::vector<std::string>& more) {
    std::vector<std::string> args = with(more);
    args.push_back("run.out=" + out.string());
    return run(join(args, " "));
  };
  const fs::path whole = world().fresh(), stopped = world().fresh(), joined = world().fresh();
  const Outcome result = go(whole, {"train.epochs=1.5"});
  BOOST_TEST(result.code == 0, result.output);
  for (const char* words :
       {"note: train.epochs = 1.5 over ", " sequences gives train.steps = ", " samples, ", "% full; 1 of the samples"})
    BOOST_TEST(result.output.find(words) != std::string::npos, "no '" << words << "' in " << result.output);
  const auto rows = apps::read_log(whole);
  const int steps = static_cast<int>(rows.back().step);
  BOOST_TEST(result.output.find("train.steps = " + std::to_string(steps) + "\n") != std::string::npos);
  BOOST_TEST(rows.back()["loss"] < 0.5 * rows.front()["loss"]);
  BOOST_TEST(go(stopped, {"train.steps=3"}).code == 0);
  const Outcome rest = go(stopped, {"train.epochs=1.5", "run.threads=1"});
  BOOST_TEST(rest.code == 0, rest.output);
  BOOST_TEST((weights(step(stopped, steps)) == weights(step(whole, steps))));
  // With another batch size the rest of the epochs is left, not the rest of the steps.
  const fs::path wider = world().fresh();
  BOOST_TEST(go(wider, {"train.steps=3", "train.batch_size=2"}).code == 0);
  BOOST_TEST(go(wider, {"train.epochs=1.5", "train.batch_size=7"}).code == 0);
  const auto there = std::stoll(result.output.substr(result.output.find(" over ") + 6));
  const int64_t samples = models::read_state(models::step_folders(wider).back().path).samples;
  BOOST_TEST(2 * samples >= 3 * there);
  BOOST_TEST(2 * (samples - 7) < 3 * there);
  // The resolved file has both; train.steps on the command line replaces the epochs of the file.
  const std::string file = (whole / "config.resolved.toml").string();
  const Outcome longer = run("train " + file + " train.steps=" + std::to_string(steps + 1));
  BOOST_TEST(longer.code == 0, longer.output);
  BOOST_TEST(longer.output.find("train.epochs: 1.5 -> 0") != std::string::npos, longer.output);
  check_failure(go(world().fresh(), {"train.epochs=1", "train.steps=5"}), 2, "expected one of them");
  check_failure(go(stopped, {"train.epochs=1.5", "data.packing=in_order"}), 2, "packed in_order");
  check_failure(go(world().fresh(), {"train.epochs=1", "data.seq_len=8"}), 3, "no sample of at most 9 tokens");
}

BOOST_AUTO_TEST_SUITE_END()
