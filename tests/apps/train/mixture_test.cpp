// Runs on several data folders, as the real program: counts, resuming inside a phase, what the log says, bad input.
#include <cmath>
#include <csignal>

#include "braid/models/data/text/manifest.h"
#include "tests/apps/train/runs.h"

BOOST_AUTO_TEST_SUITE(mixture)

using namespace braid::test;
namespace fs = std::filesystem;

namespace {

// Two more folders beside that of all tests: digits alone and letters alone.
struct Folders {
  Folders() {
    std::mt19937 random(6);
    for (const auto& [name, base] : {std::pair<std::string, char>{"digits", '0'}, {"letters", 'k'}}) {
      for (int i = 0; i < 12; ++i) {
        std::string text;
        for (int j = 0; j < 400; ++j) text += static_cast<char>(base + static_cast<char>(random() % 10));
        fs::create_directories(world().scratch / (name + "-in"));
        write(world().scratch / (name + "-in/" + std::to_string(i) + ".txt"), text);
      }
      prepare(name + "-in", name, "--val-fraction 0.2");
    }
  }
  static void prepare(const std::string& from, const std::string& to, const std::string& flags) {
    const Outcome made = run("prepare " + (world().scratch / from).string() + " " + flags + " -o " + folder(to));
    if (made.code != 0) throw std::runtime_error(made.output);
  }
  static std::string folder(const std::string& name) { return (world().scratch / name).string(); }
};

const Folders& folders() {
  static const Folders instance;
  return instance;
}

// The default of these tests: 3 to 1, and from sequence 24 on (step 12 of 2 sequences of 32 tokens) 1 to 4. A phase
// ends with sequence 60, step 30, so that the counts are those of the weights there.
std::string setting(const std::string& digits = " weight=3 weight=1@768 weight=1@1920",
                    const std::string& letters = " weight=1 weight=4@768 weight=4@1920") {
  folders();
  return "data.sources=[\"" + Folders::folder("digits") + digits + "\", \"" + Folders::folder("letters") + letters +
         "\"]";
}
template <class... Weights>
std::string sources(const Weights&... weights) {  // for a shell
  return "'" + setting(weights...) + "'";
}

Outcome mix(const fs::path& out, const std::string& mixture, const std::vector<std::string>& more = {}) {
  std::vector<std::string> all = {"data.path=", mixture, "train.steps=30", "eval.interval=10"};
  all.insert(all.end(), more.begin(), more.end());
  return train(out, all);
}

const fs::path& whole() {
  static const fs::path out = [] {
    const fs::path path = world().fresh();
    const Outcome result =
        mix(path, sources(), {"log.tensorboard=true", "log.metrics_file=" + (path / "run.prom").string()});
    if (result.code != 0) throw std::runtime_error(result.output);
    write(path / "output.txt", result.output);
    return path;
  }();
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_run_stopped_inside_a_phase_resumes_to_the_same_bytes) {
  const fs::path out = world().fresh();
  for (const int stop : {7, 17})
    BOOST_TEST(mix(out, sources(), {"train.steps=" + std::to_string(stop), "schedule.name=constant"}).code == 0);
  const fs::path straight = world().fresh();
  BOOST_TEST(mix(straight, sources(), {"schedule.name=constant"}).code == 0);
  BOOST_TEST(mix(out, sources(), {"schedule.name=constant"}).code == 0);
  BOOST_TEST((weights(step(out, 30)) == weights(step(straight, 30))));
  BOOST_TEST((weights(step(straight, 30)).size() > 10000u));
}

BOOST_AUTO_TEST_CASE(a_killed_run_resumes_to_the_same_bytes) {
  fs::path out;
  for (int attempt = 0; attempt < 10 && (out.empty() || fs::exists(step(out, 30))); ++attempt) {  // until it is in time
    out = world().fresh();
    Process process(
        settings(out, {"checkpoint.interval=9", "data.path=", setting(), "train.steps=30", "eval.interval=10"}));
    read_until(process, "step 20/");  // step 18 has a checkpoint, 6 steps into the second phase
    process.signal(SIGKILL);
    process.wait();
  }
  const Outcome resumed = mix(out, sources(), {"checkpoint.interval=9"});
  BOOST_TEST(resumed.code == 0, resumed.output);
  BOOST_TEST(resumed.output.find("resuming from ") != std::string::npos, resumed.output);
  check_same(out, whole(), 30);
}

BOOST_AUTO_TEST_CASE(counts_are_printed_and_are_those_of_the_weights) {
  const std::string output = slurp(whole() / "output.txt");
  // 24 sequences 3 to 1, 36 sequences 1 to 4: 18 + 7.2 and 6 + 28.8 of 60.
  for (const char* words : {"source digits: 25 sequences, 41.67 %, ", "source letters: 35 sequences, 58.33 %, ",
                            " train tokens in 2 sources, sequences of 32",
                            "source digits: ", " train tokens; over the run 25 sequences, 41.67 %, "})
    BOOST_TEST(output.find(words) != std::string::npos, "no '" << words << "' in: " << output);
  BOOST_TEST(output.find("warning: source") == std::string::npos, output);
}

BOOST_AUTO_TEST_CASE(a_source_that_is_read_too_often_is_warned_of) {
  const std::string few = sources(" weight=9", " weight=1");
  const std::string words = "warning: source digits is read ";
  const Outcome plan = mix(world().fresh(), few, {"--dry-run", "train.steps=400"});
  BOOST_TEST(plan.code == 0);
  for (const std::string& part : {words, std::string("source digits"), std::string("720 sequences, 90.00 %")})
    BOOST_TEST(plan.output.find(part) != std::string::npos, plan.output);
  BOOST_TEST(plan.output.find("warning: source letters") == std::string::npos, plan.output);
  const Outcome less = mix(world().fresh(), few, {"--dry-run", "train.steps=50"});
  BOOST_TEST(less.output.find("90 sequences, 90.00 %") != std::string::npos, less.output);
  BOOST_TEST(less.output.find("warning: source") == std::string::npos, less.output);
}

BOOST_AUTO_TEST_CASE(every_file_of_the_log_has_the_loss_of_each_source) {
  const std::vector<std::string> lines = split(slurp(whole() / "log.csv"), '\n');
  BOOST_TEST(lines.at(0).ends_with(",eta_s,loss.digits,loss.letters,val_loss.digits,val_loss.letters"), lines[0]);
  int64_t missing = 0;
  for (const braid::apps::LogRow& row : braid::apps::read_log(whole())) {
    const double digits = row.of_source("loss.digits"), letters = row.of_source("loss.letters");
    missing += std::isnan(digits) + std::isnan(letters);
    // Two samples of as many targets: the loss is that of the source they share, or the mean of both.
    const double mean = std::isnan(digits) ? letters : std::isnan(letters) ? digits : (digits + letters) / 2;
    BOOST_TEST(std::abs(mean - row["loss"]) < 1e-6);
    const double val_digits = row.of_source("val_loss.digits"), val_letters = row.of_source("val_loss.letters");
    BOOST_TEST(std::isnan(val_digits) == (row.step % 10 != 0));
    if (row.step % 10 == 0)
      BOOST_TEST(std::abs((val_digits + 4 * val_letters) / 5 - row["val_loss"]) < 1e-12);  // weights of the last phase
  }
  BOOST_TEST(missing > 0);
  BOOST_TEST(missing < 60);
  const std::string json = slurp(whole() / "log.jsonl"), prom = slurp(whole() / "run.prom");
  BOOST_TEST(json.find(",\"loss.digits\":") != std::string::npos);
  BOOST_TEST(json.find(",\"val_loss.letters\":null") != std::string::npos);
  BOOST_TEST(
      prom.find("braid_train_source_loss{run=\"" + whole().string() + "\",source=\"digits\"} ") != std::string::npos,
      prom);
  BOOST_TEST(prom.find("braid_train_source_validation_loss{") != std::string::npos);
  std::string events;
  for (const auto& entry : fs::directory_iterator(whole() / "tensorboard")) events += slurp(entry.path());
  BOOST_TEST(events.find("sources/loss.digits") != std::string::npos);
  BOOST_TEST(events.find("sources/val_loss.letters") != std::string::npos);
  const Outcome plot = run("plot " + whole().string() + " -o " + (world().scratch / "mixture.svg").string());
  BOOST_TEST(plot.code == 0, plot.output);
  const std::string svg = slurp(world().scratch / "mixture.svg"), csv = slurp(world().scratch / "mixture.csv");
  BOOST_TEST(svg.find("Loss of digits") != std::string::npos);
  BOOST_TEST(svg.find("Loss of letters") != std::string::npos);
  BOOST_TEST(svg.find("nan") == std::string::npos);
  BOOST_TEST(split(csv, '\n').at(0).ends_with(",loss.digits,loss.letters,val_loss.digits,val_loss.letters"));
}

BOOST_AUTO_TEST_CASE(one_source_trains_as_data_path_does) {
  const fs::path out = world().fresh();
  const Outcome result = train(out, {"data.path=", "'data.sources=[\"" + world().data().string() + " weight=0.3\"]'"});
  BOOST_TEST(result.code == 0, result.output);
  BOOST_TEST((weights(step(out, kSteps)) == weights(step(undisturbed(), kSteps))));
}

BOOST_AUTO_TEST_CASE(another_mixture_is_another_run) {
  check_failure(mix(whole(), sources(" weight=2 weight=1@768"), {"train.steps=40"}), 2,
                "is not what " + (whole() / "step-00000030").string());
  const std::string digits = Folders::folder("digits"), letters = Folders::folder("letters");
  const std::string other = "\"" + digits + " weight=3 weight=1@900\", \"" + letters + " weight=1 weight=4@900\"";
  check_failure(mix(whole(), "'data.sources=[" + other + "]'", {"train.steps=40"}), 2,
                ", found data.sources = [" + other);
  check_failure(mix(whole(), "'data.sources=[" + other + "]'", {"train.steps=40"}), 2,
                "expected data.sources = [\"" + digits + " weight=3 weight=1@768 weight=1@1920\", ");
  const Outcome swapped = mix(whole(),
                              "'data.sources=[\"" + letters + " weight=1 weight=4@768 weight=4@1920\", \"" + digits +
                                  " weight=3 weight=1@768 weight=1@1920\"]'",
                              {"train.steps=40"});
  check_failure(swapped, 2, "change weights only from a later block than that of sequence 60");
  check_failure(train(whole(), {"train.steps=40"}), 2, ", found data.path = " + world().data().string());
}

BOOST_AUTO_TEST_CASE(weights_change_where_the_run_has_not_come_to_yet) {
  // Blocks of 100 sequences, of 32 tokens: the change is at the end of the first, behind 10 steps of 10 sequences.
  const std::string before = sources(" weight=3", " weight=1"),
                    after = sources(" weight=3 weight=1@3200", " weight=1 weight=4@3200");
  std::vector<std::string> more = {"train.batch_size=10", "schedule.name=constant", "checkpoint.best=true"};
  const auto to = [&](const fs::path& out, const std::string& mixture, int steps) {
    std::vector<std::string> all = more;
    all.insert(all.end(), {"train.steps=" + std::to_string(steps), "eval.interval=5"});
    return mix(out, mixture, all);
  };
  const fs::path straight = world().fresh(), out = world().fresh();
  BOOST_TEST(to(straight, after, 15).code == 0);
  BOOST_TEST(to(out, before, 7).code == 0);
  const Outcome changed = to(out, after, 12);
  BOOST_TEST(changed.code == 0, changed.output);
  for (const char* words : {"  data.sources: [", "with other last weights of data.sources, cannot be compared"})
    BOOST_TEST(changed.output.find(words) != std::string::npos, "no '" << words << "' in: " << changed.output);
  check_failure(to(out, before, 15), 2, "is not what " + step(out, 12).string());  // the new weights have been read
  // Twice all weights are the same shares.
  const Outcome same = to(out, sources(" weight=6 weight=2@3200", " weight=2 weight=8@3200"), 15);
  BOOST_TEST(same.code == 0, same.output);
  BOOST_TEST((weights(step(out, 15)) == weights(step(straight, 15))));
  BOOST_TEST(weights(step(out, 15)).size() > 10000u);
  const Outcome dry = to(straight, before, 20), plan = mix(straight, before, {"--dry-run", "train.steps=20"});
  check_failure(dry, 2, "is not what ");
  check_failure(plan, 2, "is not what ");
}

BOOST_AUTO_TEST_CASE(a_longer_context_continues_each_source) {
  const fs::path out = world().fresh();
  BOOST_TEST(mix(out, sources(), {"train.steps=10", "schedule.name=constant"}).code == 0);
  const Outcome longer =
      mix(out, sources(), {"train.steps=20", "schedule.name=constant", "model.block_size=64", "data.seq_len=64"});
  BOOST_TEST(longer.code == 0, longer.output);
  BOOST_TEST(longer.output.find("context 32 -> 64") != std::string::npos, longer.output);
}

BOOST_AUTO_TEST_CASE(inspect_shows_the_batches_of_a_mixture) {
  const Outcome shown =
      run("inspect " + (whole() / "config.resolved.toml").string() + " --batch 1 train.batch_size=12");
  BOOST_TEST(shown.code == 0, shown.output);
  BOOST_TEST(shown.output.find(" of digits: 32 of 32 targets are counted") != std::string::npos, shown.output);
  BOOST_TEST(shown.output.find(" of letters: 32 of 32 targets") != std::string::npos, shown.output);
}

BOOST_AUTO_TEST_CASE(a_source_without_a_val_sequence_is_left_out_of_validation) {
  const auto sample = [](int n) {
    return "{\"prompt\": \"1\", \"answer\": \"" + std::string(size_t(n), '2') + "\"}\n";
  };
  write(world().scratch / "short.jsonl", sample(5) + sample(7));
  write(world().scratch / "long.jsonl", sample(50));
  Folders::prepare("short.jsonl", "answers", "--answers --val " + (world().scratch / "long.jsonl").string());
  folders();
  const std::string answers = Folders::folder("answers");
  const Outcome result =
      mix(world().fresh(), "'data.sources=[\"" + Folders::folder("digits") + "\", \"" + answers + "\"]'");
  BOOST_TEST(result.code == 0, result.output);
  BOOST_TEST(result.output.find("source answers has no sequence in its val split") != std::string::npos, result.output);
  check_failure(mix(world().fresh(), "'data.sources=[\"" + answers + "\"]'"), 2,
                "too small to validate on: expected at least one sample within 33 tokens");
}

BOOST_AUTO_TEST_CASE(folders_that_cannot_be_mixed) {
  folders();
  const std::string digits = Folders::folder("digits");
  const auto rejected = [&](const std::string& other, const std::string& words,
                            const std::vector<std::string>& more = {}) {
    check_failure(mix(world().fresh(), "'data.sources=[\"" + digits + "\", \"" + other + "\"]'", more), 2, words);
  };
  rejected(Folders::folder("nowhere"), "nowhere, which is no folder with dataset.json");
  rejected(Folders::folder("digits-in"), "digits-in, which is no folder with dataset.json");
  rejected(digits, "is there twice");
  rejected(Folders::folder("letters") + " weight=-1", "not a finite number of at least 0");
  rejected(Folders::folder("letters") + " weight=nan", "not a finite number of at least 0");
  rejected(Folders::folder("letters") + " weight=1 weight=2@64 weight=3@32", "phases out of order");
  check_failure(mix(world().fresh(), sources(" weight=0", " weight=0")), 2, "sum to 0");
  Folders::prepare("letters-in", "bpe", "--train-bpe 300");
  rejected(Folders::folder("bpe"), "have other tokens: expected the tokenizer ");
  fs::create_directories(world().scratch / "short-in");
  write(world().scratch / "short-in/a.txt", "abc");
  Folders::prepare("short-in", "short", "--val-fraction 0");
  rejected(Folders::folder("short"), "is too small: expected at least 33 training tokens for one sequence, found ");
  fs::copy(digits, Folders::folder("empty"), fs::copy_options::recursive);
  braid::models::text::Manifest empty = braid::models::text::read_manifest(digits);
  empty.train = {};
  braid::models::text::write_manifest(Folders::folder("empty"), empty);
  rejected(Folders::folder("empty"), "empty has no training tokens");
  rejected(Folders::folder("letters"), "data.path and data.sources both name data", {"data.path=" + digits});
  check_failure(mix(world().fresh(), "data.sources=" + Folders::folder("short")), 2, "is too small");
}

BOOST_AUTO_TEST_SUITE_END()
