// braid study: a table of training runs from one file, and what they show.
#include <cstdio>
#include <functional>

#include "apps/chart/medium.h"
#include "apps/cli/commands.h"
#include "apps/cli/text.h"
#include "apps/study/metric.h"
#include "apps/study/pace.h"
#include "apps/study/rates.h"
#include "apps/study/study_cost.h"
#include "apps/study/study_report.h"
#include "apps/train/train.h"
#include "braid/tensor/error.h"

namespace braid::apps {
namespace {

struct Part {
  int64_t number = 1, of = 1;
};
Part part_of(const Arguments& arguments) {
  if (!arguments.has("part")) return {};
  const std::string text = arguments.get("part");
  const std::vector<std::string> words = split(text, '/');
  const auto number = [&](size_t i) { return i < words.size() ? parse_int(words[i]).value_or(0) : 0; };
  const Part part{number(0), number(1)};
  check(words.size() == 2 && part.number >= 1 && part.number <= part.of, ErrorKind::setting,
        [&] { return "bad value for --part: expected I/N with I from 1 to N, found '" + preview(text) + "'"; });
  return part;
}

// The finished ones of these runs, their losses in the unit of the study.
std::vector<StudyResult> results_of(const Study& study, const std::vector<StudyRun>& runs) {
  std::vector<StudyResult> results;
  for (const StudyRun& run : runs)
    if (const std::optional<StudyResult> result = read_result(study, run)) results.push_back(*result);
  convert_losses(study, results);
  return results;
}

// Trains the runs of the part that are not finished. Returns 0, or 75 when a signal stopped one.
int run_part(const Study& study, const std::vector<StudyRun>& runs, const Part& part, const Job& job,
             const std::string& command) {
  for (size_t i = 0; i < runs.size(); ++i) {
    const StudyRun& run = runs[i];
    if (run.turn % part.of != part.number - 1) continue;
    std::optional<StudyResult> done;
    at_root(job.world(), [&] { done = read_result(study, run); });
    if (job.world().any(done.has_value())) continue;
    const RunSettings settings(study, run.settings);
    mesh_from_config(settings.config.parallel, job.world(), "study");
    std::printf("run %zu of %zu: %s\n", i + 1, runs.size(), run.name.c_str());
    std::fflush(stdout);
    at_root(job.world(), [&] { begin_run(study, run); });
    try {
      if (const int code = train(settings.config, settings.schema, job, command); code != 0) return code;
    } catch (const Error& e) {  // on all ranks
      if (!run.search || e.kind() != ErrorKind::numerical) throw;
      std::printf("%s diverged, so this learning rate is not taken: %s\n", run.name.c_str(), e.what());
      at_root(job.world(), [&] { finish_diverged(study, run); });
      continue;
    }
    job.world().set_timeout(0);  // the others wait until rank 0 has measured the families
    at_root(job.world(), [&] { finish_run(study, run); });
  }
  return 0;
}

int wait_for_others(const char* which, const std::vector<StudyResult>& finished, const std::vector<StudyRun>& all) {
  std::printf(
      "stopped: %zu of %zu runs %s are finished, the others belong to other parts; run the same command again when "
      "they are\n",
      finished.size(), all.size(), which);
  return exit_stopped;
}

struct Search {
  int code = 0;  // of the training, not 0 where it stopped
  std::vector<StudyRun> runs;
  std::vector<StudyResult> results;
};
// The search for rates, with those beyond the file's that results ask for.
Search search_with(const Study& study, const Paces& paces,
                   const std::function<int(const std::vector<StudyRun>&)>& train_runs) {
  Search search{.code = 0, .runs = search_runs(study, paces, {}), .results = {}};
  while (true) {
    search.code = train_runs(search.runs);
    if (search.code != 0) return search;
    search.results = results_of(study, search.runs);
    std::vector<StudyRun> all = search_runs(study, paces, rates_beyond(study, search.results));
    if (all.size() == search.runs.size()) return search;
    search.runs = std::move(all);
  }
}

// Before the learning rates of the search are known.
std::vector<StudyRun> all_runs(const Study& study, const Paces& paces) {
  std::vector<StudyRun> all = search_runs(study, paces, {});
  for (StudyRun& run : main_runs(study, {}, paces)) all.push_back(std::move(run));
  return all;
}

int study_with(const Arguments& arguments, const Job& job) {
  Study study = read_study(arguments.get("STUDY"));
  const Medium medium = medium_of(arguments);
  for (const char* name : {"threads", "device"})
    if (arguments.has(name)) study.base.settings.push_back(str("run.", name, "=", arguments.get(name)));
  if (arguments.has("budget")) {
    study.budget_unit = "minutes", study.budgets = {minutes_of(arguments.get("budget"), "--budget")};
    if (study.search) study.search->budget = study.budgets[0];
  }
  if (arguments.has("metric")) study.bits_per_byte = arguments.get("metric") == "bits-per-byte";
  const Part part = part_of(arguments);
  check_sequences(study);
  const std::vector<StudyRun> pace = pace_runs(study);
  if (arguments.has("dry-run")) {
    at_root(job.world(), [&] {
      StepFormula formula;
      const Paces paces = planned_paces(study, paces_of(results_of(study, pace)), formula);
      auto [code, all, searched] = search_with(study, paces, [](const auto&) { return 0; });
      for (StudyRun& run : main_runs(study, best_rates(study, searched), paces)) all.push_back(std::move(run));
      check_runs(study, all);
      std::fputs(study_plan(study, all, formula).c_str(), stdout);
    });
    return 0;
  }
  const bool report_only = arguments.has("report");
  at_root(job.world(), [&] {
    std::vector<StudyRun> all = all_runs(study, {});
    all.insert(all.end(), pace.begin(), pace.end());
    open_study(study, all);
  });
  if (!report_only)
    if (const int code = run_part(study, pace, part, job, arguments.line()); code != 0) return code;
  const std::vector<StudyResult> paced = results_of(study, pace);
  if (paced.size() < pace.size() && !report_only) return wait_for_others("that measure a step", paced, pace);
  const Paces paces = paces_of(paced);
  if (!report_only && !pace.empty())
    at_root(job.world(), [&] { check_runs(study, all_runs(study, paces)); });  // their steps are known
  const auto [stopped, search, searched] = search_with(study, paces, [&](const std::vector<StudyRun>& runs) {
    return report_only ? 0 : run_part(study, runs, part, job, arguments.line());
  });
  if (stopped != 0) return stopped;
  const auto rates = best_rates(study, searched);
  const bool waits = study.search && rates.empty();
  for (const auto& [variant, rate] : rates)
    std::printf("learning rate of %s: %s\n", variant.c_str(), shortest(rate).c_str());
  if (waits && !report_only) return wait_for_others("of the learning-rate search", searched, search);
  const std::vector<StudyRun> runs = main_runs(study, rates, paces);
  if (!report_only)
    if (const int code = run_part(study, runs, part, job, arguments.line()); code != 0) return code;
  at_root(job.world(), [&] {
    const std::vector<StudyResult> results = waits ? std::vector<StudyResult>{} : results_of(study, runs);
    const auto missing = std::ssize(runs) - std::ssize(results);
    if (waits)
      std::fprintf(
          stderr,
          "note: the report leaves out all runs but those of the learning-rate search, of which %zu of %zu are "
          "finished: their rates follow from it\n",
          searched.size(), search.size());
    std::printf("\n%s\n", write_study_report(study, searched, results, missing, medium).c_str());
    std::printf("wrote %s/report\n", study.out.c_str());
  });
  return 0;
}

int run_study(const Arguments& arguments) {
  Job job;
  return job.run([&] { return study_with(arguments, job); });
}

}  // namespace

Command study_command() {
  return {
      .name = "study",
      .summary = "train a table of runs from one file, and write tables and charts of them",
      .positionals = {{.name = "STUDY", .help = "TOML file: sizes, variants, budgets, seeds (apps/study/README.md)"}},
      .flags = {{.name = "dry-run",
                 .help = "print the runs with their cost, and the time of the whole here and on H100"},
                {.name = "report", .help = "train nothing: write the report of the runs that are finished"},
                medium_flag(),
                value_flag(
                    "part", "I/N",
                    "train every N-th run from the I-th on: N processes or hosts with the same folder share a study"),
                value_flag("budget", "TIME",
                           "90s, 10m, 2h: each run trains as many steps as fit into it here, in place of the file's "
                           "budgets"),
                value_flag("metric", "UNIT", "of losses in the report, in place of the file's", "",
                           models::one_of({"nats-per-token", "bits-per-byte"})),
                {.name = "device", .value = "DEVICE", .help = "same as run.device=DEVICE for every run"},
                integer_flag("threads", "N", "same as run.threads=N for every run; 0 = all that the process may use",
                             "", 0, 4096)},
      .details =
          "Runs are trained in order as `braid train` does, each in study.out/runs/NAME. SIGINT and SIGTERM save\n"
          "the state and end with exit code 75; the same command resumes where it stopped, also after a kill.\n"
          "A folder of another study, changed data, and a run that was begun with other settings are rejected.\n"
          "Under mpirun the processes train each run together; --part gives each host runs of its own.",
      .examples = {"braid study configs/studies/ablation.toml --dry-run", "braid study configs/studies/ablation.toml",
                   "braid study configs/studies/scaling.toml --part 2/4",
                   "braid study configs/studies/scaling.toml --report --for paper"},
      .run = run_study,
      .shared = [](const Arguments&) { return true; },  // MPI starts on all processes or on none
  };
}

}  // namespace braid::apps
