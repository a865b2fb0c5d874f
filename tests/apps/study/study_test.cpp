// braid study: runs from one file, resumed, shared between processes, collected; and what it rejects.
#include <boost/test/unit_test.hpp>
#include <limits>
#include <nlohmann/json.hpp>
#include <numbers>

#include "braid/models/data/text/manifest.h"
#include "tests/apps/study/studies.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(study)

namespace fs = std::filesystem;

namespace {

// Two sizes x two variants x two seeds of a few steps.
std::string study_text(const fs::path& out, const std::string& more = "", const std::string& base = "") {
  return "[study]\nname = \"tiny\"\nout = \"" + out.string() +
         "\"\nbaseline = \"plain\"\nseeds = [1, 2]\nsteps = [4]\n" + more + "[base]\ndata.path = \"" +
         world().data().string() +
         "\"\nmodel.n_layer = 1\nmodel.n_head = 2\nmodel.block_size = 32\ntrain.batch_size = 2\nschedule.warmup = 1\n"
         "eval.interval = 4\neval.samples = 2\ncheckpoint.interval = 2\nguard.spike = 0\nrun.threads = 1\n" +
         base +
         "[sizes.a]\nmodel.dim = 16\n[sizes.b]\nmodel.dim = 32\n"
         "[variants.plain]\nmodel.compose = \"none\"\n[variants.full]\nmodel.compose = \"full\"\n";
}

}  // namespace

BOOST_AUTO_TEST_CASE(runs_are_trained_once_and_collected) {
  const fs::path out = world().fresh(), file = file_of(study_text(out));
  const Outcome plan = run("study " + file.string() + " --dry-run");
  BOOST_TEST(plan.code == 0, plan.output);
  for (const char* part : {"a-plain-4-s1", "b-full-4-s2", "8 runs", "on 8 H100: ", "on 64 H100: "})
    BOOST_TEST(plan.output.find(part) != std::string::npos, plan.output << " lacks " << part);
  BOOST_TEST(!fs::exists(out));
  // A size and a variant that are what [base] says.
  const fs::path more = file_of(study_text(out, "", "model.dim = 16\n") + "[sizes.c]\n[variants.as-base]\n");
  const Outcome larger = run("study " + more.string() + " --dry-run");
  for (const char* part : {"c-as-base-4-s1", "18 runs"})
    BOOST_TEST(larger.output.find(part) != std::string::npos, larger.output << " lacks " << part);
  check_rejected(file_of(study_text(out) + "[variant.typo]\n"), "unknown key 'variant.typo'");

  const Outcome first = run("study " + file.string());
  BOOST_TEST(first.code == 0, first.output);
  BOOST_TEST(rows_of(out / "report/runs.csv") == 8);
  BOOST_TEST(rows_of(out / "report/losses.csv") == 4);
  BOOST_TEST(rows_of(out / "report/differences.csv") == 2);
  const std::string page = slurp(out / "report/report.md");
  for (const char* part : {"# tiny", "| a | 4 | full | 2 |", "expected runs at 9 points"})
    BOOST_TEST(page.find(part) != std::string::npos, page << " lacks " << part);
  for (const char* chart : {"losses.svg", "differences.svg"})
    BOOST_TEST(slurp(out / "report" / chart).starts_with("<svg"), chart);

  // A run of the study is that of braid train with the same settings, bit for bit.
  const fs::path alone = world().fresh();
  const Outcome trained =
      train(alone, {"model.dim=16", "model.n_layer=1", "train.steps=4", "schedule.warmup=1", "eval.interval=4",
                    "eval.samples=2", "run.threads=1", "model.compose=full", "run.seed=2"});
  BOOST_TEST(trained.code == 0, trained.output);
  BOOST_TEST((weights(step(alone, 4)) == weights(step(out / "runs/a-full-4-s2", 4))));

  // Nothing is trained again, and the tables are the same.
  const std::string before = slurp(out / "report/runs.csv");
  const Outcome second = run("study " + file.string());
  BOOST_TEST(second.code == 0, second.output);
  BOOST_TEST(second.output.find("run 1 of 8") == std::string::npos, second.output);
  BOOST_TEST(slurp(out / "report/runs.csv") == before);
  BOOST_TEST(run("study " + file.string() + " --dry-run").output.find("finished") != std::string::npos);
}

// A budget in minutes: each variant trains as many steps as its measured pace allows, and the same again when resumed.
BOOST_AUTO_TEST_CASE(a_time_is_a_budget_of_its_own_for_each_variant) {
  const fs::path out = world().fresh();
  std::string text = study_text(out);  // a disk may take longer than the steps
  for (const std::string interval : {"eval.interval = 4", "checkpoint.interval = 2"})
    text.replace(text.find(interval), interval.size(), interval + "00000");
  text.replace(text.find("warmup = 1"), 10, "warmup = 2");  // more than the steps that are known before the pace
  const fs::path file = file_of(text);
  const std::string searched = file_of(text + "[search]\nrates = [\"1e-3\"]\nbudget = 300\n").string();
  BOOST_TEST(run("study " + searched + " --budget 0.6s --dry-run").output.find("search-a-plain-0.01m-s1-lr0.001") !=
             std::string::npos);
  const Outcome plan = run("study " + file.string() + " --budget 0.6s --dry-run");
  BOOST_TEST(plan.code == 0, plan.output);
  BOOST_TEST(plan.output.find("a-plain-0.01m-s1") != std::string::npos, plan.output);
  const Outcome part = run("study " + file.string() + " --budget 0.6s --part 1/2");
  BOOST_TEST(part.code == 75, part.output);
  BOOST_TEST(part.output.find("10 of 20 runs that measure a step are finished") != std::string::npos, part.output);
  const Outcome done = run("study " + file.string() + " --budget 0.6s");
  BOOST_TEST(done.code == 0, done.output);
  const auto json_of = [&](const std::string& path) { return nlohmann::json::parse(slurp(out / "runs" / path)); };
  for (const std::string cell : {"a-plain", "a-full", "b-plain", "b-full"}) {
    double pace = std::numeric_limits<double>::infinity();
    for (const std::string round : {"-1", "-2", "-3", "-4", "-5"})
      pace = std::min(pace, json_of("pace-" + cell + round + "/result.json")["seconds"].get<double>() / 30);
    const auto steps = std::max<int64_t>(1, static_cast<int64_t>(0.6 / pace));
    for (const std::string seed : {"-s1", "-s2"}) {
      const auto settings = json_of(cell + "-0.01m" + seed + "/study.json")["settings"];
      BOOST_TEST(std::ranges::count(settings, nlohmann::json("train.steps=" + std::to_string(steps))) == 1,
                 settings.dump());
    }
  }
  const std::string before = slurp(out / "report/runs.csv");
  BOOST_TEST(run("study " + file.string() + " --budget 0.6s").code == 0);
  BOOST_TEST(slurp(out / "report/runs.csv") == before);
  for (const char* wrong : {"10", "m", "-1m", "0s", "1d", "infm"})
    check_rejected(file, "expected a time such as 90s, 10m or 2h, found '" + std::string(wrong) + "'",
                   " --budget " + std::string(wrong));
}

// Where the steps follow from the pace, the warmup is checked with them.
BOOST_AUTO_TEST_CASE(all_runs_are_checked_before_the_first_one) {
  const fs::path out = world().fresh();
  std::string text = study_text(out);
  text.replace(text.find("checkpoint.interval = 2"), 23, "checkpoint.interval = 0");
  text.erase(text.find("[sizes.b]"), text.find("[variants.plain]") - text.find("[sizes.b]"));
  const fs::path file = file_of(text + "schedule.warmup = 1000000\n");  // of the second variant
  const std::string words = "schedule.warmup is longer than the run: expected at most train.steps = ";
  for (const char* flags : {"", " --dry-run", " --budget 0.3s --dry-run"}) check_rejected(file, words, flags);
  for (const auto& [group, why] : {std::pair{"zzz* lr=0.5", "optimizer.groups: no name matches 'zzz*'"},
                                   {"* update=matrix", "needs a rule that updates whole matrices, found adamw"}})
    for (const char* flags : {"", " --dry-run"})
      check_rejected(file_of(text + "optimizer.groups = [\"" + group + "\"]\n"), why, flags);
  BOOST_TEST(!fs::exists(out));
  const Outcome timed = run("study " + file.string() + " --budget 0.3s");
  BOOST_TEST(timed.code == 2, timed.output);
  BOOST_TEST(timed.output.find(words) != std::string::npos, timed.output);
  for (const auto& entry : fs::directory_iterator(out / "runs"))
    BOOST_TEST(entry.path().filename().string().starts_with("pace-"), entry.path());
  std::string without = study_text(out, "", "model.vocab_size = 258\n");  // data: a plan needs none
  without.erase(without.find("data.path"), without.find("model.n_layer") - without.find("data.path"));
  BOOST_TEST(run("study " + file_of(without).string() + " --dry-run").code == 0);
}

BOOST_AUTO_TEST_CASE(losses_are_stated_in_bits_per_byte) {
  const fs::path out = world().fresh(), file = file_of(study_text(out, "metric = \"bits-per-byte\"\n"));
  BOOST_TEST(run("study " + file.string()).code == 0);
  const std::string page = slurp(out / "report/report.md");
  BOOST_TEST(page.find("in bits per byte") != std::string::npos, page);
  const auto loss = [&] {
    const auto lines = split(slurp(out / "report/losses.csv"), '\n');
    const auto names = split(lines[0], ','), cells = split(lines[1], ',');
    return std::stod(cells[static_cast<size_t>(std::ranges::find(names, "loss") - names.begin())]);
  };
  const double bits = loss();
  BOOST_TEST(run("study " + file.string() + " --report --metric nats-per-token").code == 0);
  BOOST_TEST(slurp(out / "report/report.md").find("in nats per token") != std::string::npos);
  // The tokenizer is of bytes, and a special token ends every document: of one byte less than its tokens.
  const models::text::Manifest data = models::text::read_manifest(world().data().string());
  const auto tokens = static_cast<double>(data.val.tokens), ends = static_cast<double>(data.val.documents);
  BOOST_TEST(ends > 0);
  BOOST_TEST(bits == loss() * tokens / (tokens - ends) / std::numbers::ln2, boost::test_tools::tolerance(1e-9));
  check_rejected(file_of(study_text(world().fresh(), "metric = \"bits\"\n")), "one of nats-per-token, bits-per-byte");
  std::string mixed = study_text(world().fresh());
  const std::string path = "data.path = \"" + world().data().string() + "\"";
  mixed.replace(mixed.find(path), path.size(), "data.sources = [\"" + world().data().string() + "\"]");
  check_rejected(file_of(mixed), "a folder of plain text, found data.sources", " --metric bits-per-byte");
}

// A study that is defined on certain data takes no others.
BOOST_AUTO_TEST_CASE(the_fingerprint_of_its_data_may_be_part_of_a_study) {
  const std::string of_data = models::text::read_manifest(world().data().string()).fingerprint;
  check_rejected(file_of(study_text(world().fresh(), "fingerprint = \"0123456789abcdef\"\n")),
                 "expected study.fingerprint 0123456789abcdef, found " + of_data);
  const fs::path file = file_of(study_text(world().fresh(), "fingerprint = \"" + of_data + "\"\n"));
  BOOST_TEST(run("study " + file.string() + " --report").code == 0);
}

BOOST_AUTO_TEST_CASE(a_killed_study_goes_on_where_it_stopped) {
  const fs::path whole = world().fresh(), killed = world().fresh();
  const std::string longer = "train.accumulate = 8\n";
  BOOST_TEST(run("study " + file_of(study_text(whole, "", longer)).string()).code == 0);
  const fs::path file = file_of(study_text(killed, "", longer));
  {
    Process process({"study", file.string()});
    for (int i = 0; i < 600 && !fs::exists(killed / "runs/a-full-4-s1/result.json"); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }  // killed
  BOOST_TEST(!fs::exists(killed / "report"));
  const Outcome rest = run("study " + file.string());
  BOOST_TEST(rest.code == 0, rest.output);
  BOOST_TEST(rest.output.find("run 1 of 8") == std::string::npos, rest.output);
  for (const char* name : {"a-plain-4-s1", "b-full-4-s2"})
    BOOST_TEST((weights(step(whole / "runs" / name, 4)) == weights(step(killed / "runs" / name, 4))), name);
}

// A rate that diverges is not taken, and ends nothing.
BOOST_AUTO_TEST_CASE(a_search_passes_over_rates_that_diverge) {
  const fs::path out = world().fresh();
  const fs::path file = file_of(study_text(out) + "[search]\nrates = [\"1e-3\", \"1e20\"]\n");
  const Outcome done = run("study " + file.string());
  BOOST_TEST(done.code == 0, done.output);
  BOOST_TEST(done.output.find("diverged, so this learning rate is not taken: ") != std::string::npos, done.output);
  BOOST_TEST(done.output.find("learning rate of full: 0.001") != std::string::npos, done.output);
  BOOST_TEST(slurp(out / "report/report.md").find("diverged") != std::string::npos);
  BOOST_TEST(run("study " + file.string()).code == 0);  // nothing is trained again
  const fs::path none = world().fresh();
  const Outcome failed =
      run("study " + file_of(study_text(none) + "[search]\nrates = [\"1e20\", \"1e21\"]\n").string());
  BOOST_TEST(failed.code == 5, failed.output);
  BOOST_TEST(failed.output.find("every learning rate of the search diverged for plain") != std::string::npos,
             failed.output);
}

// Variants that differ in the rate alone, with numbers in place of lists of one.
BOOST_AUTO_TEST_CASE(a_best_rate_at_the_edge_is_marked) {
  const fs::path out = world().fresh();
  std::string text = study_text(out);
  for (const auto& [list, number] : {std::pair<std::string, std::string>{"seeds = [1, 2]", "seeds = 3"},
                                     {"steps = [4]", "steps = 4"},
                                     {"baseline = \"plain\"", "baseline = \"slow\""},
                                     {"[sizes.a]\nmodel.dim = 16\n[sizes.b]\n", "[sizes.b]\n"}})
    text.replace(text.find(list), list.size(), number);
  text = text.substr(0, text.find("[variants.plain]")) +
         "[variants.slow]\noptimizer.lr = 1e-5\n[variants.base]\n[variants.fast]\noptimizer.lr = 1e-2\n"
         "[variants.other]\nmodel.compose = \"none\"\n";
  const Outcome done = run("study " + file_of(text).string());
  BOOST_TEST(done.code == 0, done.output);
  BOOST_TEST(rows_of(out / "report/rates.csv") == 3);
  const std::string page = slurp(out / "report/report.md");
  for (const char* part : {"## Loss by learning rate", "| variant | 1e-05 | 0.001 | 0.01 |", "** (edge) |",
                           "The best rate of [base], 0.01, is the largest: try larger ones."})
    BOOST_TEST(page.find(part) != std::string::npos, page << " lacks " << part);
  BOOST_TEST(slurp(out / "report/rates.svg").starts_with("<svg"));
}

BOOST_AUTO_TEST_CASE(parts_share_a_study_and_a_search_gives_the_rates) {
  const fs::path out = world().fresh();
  const fs::path file = file_of(study_text(out) + "[search]\nrates = [\"1e-3\", \"1e-2\"]\n");
  const Outcome first = run("study " + file.string() + " --part 1/2");
  BOOST_TEST(first.code == 75, first.output);
  BOOST_TEST(first.output.find("2 of 4 runs of the learning-rate search are finished") != std::string::npos,
             first.output);
  const Outcome early = run("study " + file.string() + " --report");
  BOOST_TEST(early.output.find("learning-rate search, of which 2 of 4 are finished") != std::string::npos,
             early.output);
  BOOST_TEST(run("study " + file.string() + " --part 2/2").code == 0);
  BOOST_TEST(run("study " + file.string() + " --report").output.find("4 not finished") != std::string::npos);
  BOOST_TEST(run("study " + file.string() + " --part 1/2").code == 0);
  BOOST_TEST(rows_of(out / "report/runs.csv") == 12);
  BOOST_TEST(rows_of(out / "report/search.csv") == 4);
  const std::string report = slurp(out / "report/report.md");
  for (const char* part : {"** (edge) |", "The best rate of plain, 0.01, is the largest: try larger ones."})
    BOOST_TEST(report.find(part) != std::string::npos, report << " lacks " << part);
  check_rejected(file, "bad value for --part: expected I/N", " --part 3/2");
}

BOOST_AUTO_TEST_CASE(a_search_goes_beyond_its_edges) {
  const fs::path out = world().fresh();
  const fs::path file = file_of(study_text(out) + "[search]\nrates = [\"1e-5\", \"1e-4\"]\nextend = 1\n");
  BOOST_TEST(run("study " + file.string() + " --part 1/2").code == 75);
  BOOST_TEST(run("study " + file.string() + " --part 2/2").code == 75);  // the part of 0.001 that is the first one's
  BOOST_TEST(run("study " + file.string()).code == 0);
  BOOST_TEST(rows_of(out / "report/search.csv") == 6);
  BOOST_TEST(slurp(out / "report/report.md").find("| variant | 1e-05 | 1e-04 | 0.001 |") != std::string::npos);
  BOOST_TEST(run("study " + file.string() + " --dry-run").code == 0);
}

BOOST_AUTO_TEST_CASE(a_study_for_the_cpu_alone_has_a_plan) {
  for (const char* setting : {"train.dtype = \"bf16\"\ntrain.rounding = \"stochastic\"\n", "run.strict = true\n"}) {
    const Outcome plan = run("study " + file_of(study_text(world().fresh()) + setting).string() + " --dry-run");
    BOOST_TEST(plan.code == 0, plan.output);
    BOOST_TEST(plan.output.find("on GPUs: no time") != std::string::npos, plan.output);
    BOOST_TEST(plan.output.find("H100") == std::string::npos, plan.output);
  }
}

BOOST_AUTO_TEST_CASE(what_does_not_belong_together_is_rejected) {
  const fs::path out = world().fresh(), file = file_of(study_text(out));
  BOOST_TEST(run("study " + file.string() + " --part 1/8").code == 0);

  std::string other = study_text(out);
  other.replace(other.find("tiny"), 4, "else");
  check_rejected(file_of(other), "is of another study: expected else, found tiny");
  check_rejected(file_of(study_text(out, "", "optimizer.beta2 = 0.9\n")),
                 "was made with other settings: optimizer.beta2 was not set, the study now says 0.9");
  check_rejected(file_of(study_text(world().scratch.path)), "holds other files");

  const std::string manifest = slurp(out / "study.json");
  std::string changed = manifest;
  const size_t at = changed.find("\": \"", changed.find("\"data\"")) + 4;
  changed[at] = changed[at] == '0' ? '1' : '0';
  write(out / "study.json", changed);
  check_rejected(file, "have changed since the study");
  write(out / "study.json", manifest);

  const auto with = [&](const std::string& more) { return file_of(study_text(out) + more); };
  check_rejected(with("train.batch_size = 4\n"), "variants are compared on the same data and batches");
  check_rejected(with("run.seed = 4\n"), "the study sets run.seed");
  check_rejected(with("[search]\nrate = [1]\n"), "unknown key 'search.rate'");
  check_rejected(with("[search]\nrates = [0]\n"), "a list of numbers above 0");
  check_rejected(with("[search]\nrates = [1, 1]\n"), "different numbers");
  check_rejected(with("[search]\nrates = [1]\nbudget = -3\n"), "a number above 0, found -3");
  check_rejected(with("[sizes.a-b]\n[variants.b-plain]\n"), "two runs would have the name a-b-plain");
  std::string endless = study_text(out);
  endless.replace(endless.find("steps = [4]"), 11, "tokens = [\"1e300\"]");
  check_rejected(file_of(endless), "gives more steps than a run may have");
  check_rejected(with("[search]\nrates = [1]\nvariants = [\"plain\", \"plain\"]\n"), "different names");
  check_rejected(with("[search]\nrates = [1]\nextend = 1\n"), "expected two search.rates");
  check_rejected(with("[search]\nrates = [1, 2]\nextend = -1\n"), "an integer from 0");
  check_rejected(with("[search]\nrates = [1]\nsize = \"c\"\n"), "expected one of a, b, found c");
  check_rejected(file_of(study_text(out, "tokens = [100]\n")), "found steps as well");
  check_rejected(with("[variants.short]\nmodel.block_size = 16\n"), "variants are compared on the same sequences");
  check_rejected(with("dpo.beta = \"0.5\"\n"), "variants are compared on the same data and batches");
  std::string unmeasured = study_text(out);
  unmeasured.replace(unmeasured.find("eval.interval = 4"), 17, "eval.interval = 0");
  for (const char* flags : {"", " --dry-run"})
    check_rejected(file_of(unmeasured), "expected eval.interval above 0, found 0", flags);
  check_rejected(file_of(study_text(out, "", "eval.patience = 1\n")), "expected eval.patience = 0, found 1");
  check_rejected(file_of(study_text(out, "families = true\n")), "tasks-held-out.jsonl, found none");
  check_rejected(file_of(study_text(out, "", "train.batch = 2\n")), "unknown key 'train.batch' in ");
  check_rejected(file_of("[study]\nout = \"x\"\n"), "expected study.seeds, found none");
}

BOOST_AUTO_TEST_SUITE_END()
