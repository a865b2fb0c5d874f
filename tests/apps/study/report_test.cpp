// The report of results that are given: corrected comparisons, curves, LaTeX, paper, and the warning of a shared rate.
#include "apps/study/study_report.h"

#include <boost/test/unit_test.hpp>

#include "apps/study/differences.h"
#include "apps/study/rates.h"
#include "apps/study/report_text.h"
#include "apps/train/log/log.h"
#include "braid/models/study/comparisons.h"
#include "braid/tensor/base/strings.h"
#include "tests/apps/support.h"

using namespace braid;
using namespace braid::apps;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(study_report)

namespace fs = std::filesystem;

namespace {

Study study_in(const fs::path& out) {
  Study study;
  study.name = "given_50%", study.out = out.string(), study.baseline = "plain";
  study.seeds = {1, 2, 3};
  study.budgets = {40};
  study.sizes = {{"a", {}}};
  study.variants = {{"plain", {"model.compose=none"}}, {"full", {}}, {"post_only", {"model.compose=post"}}};
  return study;
}

// Losses of each variant by seed: `full` is lower by 0.2, 0.19, 0.21; `post_only` by 0.1, -0.1, 0.3.
std::vector<StudyResult> results_of(const Study& study) {
  const std::vector<std::vector<double>> losses = {{3, 3.1, 3.2}, {2.8, 2.91, 2.99}, {2.9, 3.2, 2.9}};
  std::vector<StudyResult> results;
  for (size_t v = 0; v < study.variants.size(); ++v)
    for (size_t s = 0; s < study.seeds.size(); ++s) {
      StudyResult r{.parameters = 1000, .tokens = 4000, .flops = 2e6, .loss = losses[v][s], .seconds = 2};
      r.run.size = "a", r.run.variant = study.variants[v].name, r.run.budget = 40, r.run.seed = study.seeds[s];
      r.run.steps = 40;
      r.run.name = study.variants[v].name + std::to_string(s);
      r.task_accuracy = std::nan("");
      results.push_back(r);
    }
  return results;
}

// A log of 40 steps whose validation losses are the result at the end and 1, 2, ... more before it.
void write_logs(const Study& study, const std::vector<StudyResult>& results, int validations) {
  for (const StudyResult& r : results) {
    const fs::path folder = fs::path(study.out) / "runs" / r.run.name;
    fs::create_directories(folder);
    RunLog log(folder, 0);
    for (int64_t step = 1; step <= 40; ++step) {
      LogRow row(step, {{"loss", r.loss + double(40 - step)}, {"lr", 1e-3}});
      if (step % (40 / validations) == 0) row["val_loss"] = r.loss + double(40 - step) / 10;
      log.append(row);
    }
  }
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

BOOST_AUTO_TEST_CASE(differences_are_corrected_together) {
  const Study study = study_in("unused");
  const std::vector<StudyResult> results = results_of(study);
  const std::vector<Difference> found = differences_from_baseline(study, results);
  BOOST_REQUIRE(found.size() == 2u);
  const double p0 = models::paired_p_value(std::vector<double>{2.8, 2.91, 2.99}, std::vector<double>{3, 3.1, 3.2}),
               p1 = models::paired_p_value(std::vector<double>{2.9, 3.2, 2.9}, std::vector<double>{3, 3.1, 3.2});
  BOOST_TEST(p0 < 0.01);
  BOOST_TEST(p1 > 0.1);
  BOOST_TEST(found[0].p == p0);
  BOOST_TEST(found[0].p_holm == 2 * p0);
  BOOST_TEST(found[1].p_holm == p1);
  BOOST_TEST(found[0].verdict() == "lower");
  BOOST_TEST(found[1].verdict() == "not decided");
  Difference d = found[0];
  d.loss.value = 0.2;
  BOOST_TEST(d.verdict() == "higher");
  d.p_holm = 0.05;
  BOOST_TEST(d.verdict() == "not decided");
  d.pairs = 1;
  BOOST_TEST(d.verdict() == "one pair: not decided");
}

// Runs of a budget in minutes have different numbers of steps.
BOOST_AUTO_TEST_CASE(costs_are_those_of_a_step) {
  const Study study = study_in("unused");
  std::vector<StudyResult> results = results_of(study);
  for (StudyResult& r : results)
    if (r.run.variant == "full") r.run.steps = 10, r.seconds = 1.5;
  const Difference d = differences_from_baseline(study, results)[0];
  BOOST_TEST(d.flops_ratio == 4.0);
  BOOST_TEST(d.time_ratio == 3.0);
}

BOOST_AUTO_TEST_CASE(files_of_a_report) {
  const Scratch scratch;
  const Study study = study_in(scratch.path);
  const std::vector<StudyResult> results = results_of(study);
  write_logs(study, results, 8);
  const std::string page = write_study_report(study, {}, results, 0, {});
  const fs::path report = scratch / "report";
  for (const char* part :
       {"**Warning**: one learning rate serves the variants plain, full, post_only", "n = 3 pairs", "n = 3 seeds",
        "![curves](curves.svg)", "Holm's method for the 2 comparisons", "| a | 40 | full | 3 | -0.2000 |", "| lower |"})
    BOOST_TEST(has(page, part), page << " lacks " << part);
  for (const char* name : {"losses", "differences", "curves", "runs"})
    BOOST_TEST(fs::exists(report / (std::string(name) + ".csv")), name);
  BOOST_TEST(slurp(report / "differences.csv").starts_with("size,budget,variant,pairs,difference,low,high,p,p_holm,"));
  const std::string tex = slurp(report / "tables.tex");
  for (const char* part : {"\\toprule", "\\label{tab:differences}", "post\\_only", "95 \\%", "$-$0.2000",
                           "corrected by Holm's method for the 2 comparisons"})
    BOOST_TEST(has(tex, part), tex << " lacks " << part);
  BOOST_TEST(has(slurp(report / "differences.svg"), "interval of 95 %"));
  BOOST_TEST(has(slurp(report / "differences.svg"), "n = 3 pairs"));
  BOOST_TEST(!fs::exists(report / "figures.tex"));
  BOOST_TEST(!fs::exists(report / "curves.pdf"));

  // The same for a column of paper.
  write_study_report(study, {}, results, 0, {.inches = 3.25});
  for (const char* name : {"losses", "differences", "curves"}) {
    const std::string svg = slurp(report / (std::string(name) + ".svg"));
    BOOST_TEST(has(svg, "width=\"234pt\""), name);
    BOOST_TEST(!has(svg, "class=\"panel\" x=\"8\""), name);  // the title
    BOOST_TEST(has(slurp(report / (std::string(name) + ".pdf")), "/MediaBox [0 0 234 "), name);
  }
  BOOST_TEST(has(slurp(report / "figures.tex"), "\\includegraphics[width=3.25in]{curves.pdf}"));
}

// Means and deviations over seeds at the steps of the validations, or of the smoothed training loss at all steps.
BOOST_AUTO_TEST_CASE(curves_with_bands) {
  const Scratch scratch;
  const Study study = study_in(scratch.path);
  const std::vector<StudyResult> results = results_of(study);
  write_logs(study, results, 4);
  const std::string page = write_study_report(study, {}, results, 0, {});
  BOOST_TEST(has(page, "Validation loss (nats per token) by step"));
  const std::vector<std::string> rows = detail::split(slurp(scratch / "report/curves.csv"), '\n');
  BOOST_REQUIRE(rows.size() == 1 + 3 * 4 + 1u);
  BOOST_TEST(rows[0] == "size,budget,variant,step,seeds,validation_loss,deviation");
  const std::vector<std::string> last = detail::split(rows[4], ',');
  BOOST_TEST(last[2] == "plain");
  BOOST_TEST(last[3] == "40");
  BOOST_TEST(last[4] == "3");
  BOOST_TEST(std::fabs(std::stod(last[5]) - 3.1) < 1e-12);
  BOOST_TEST(std::fabs(std::stod(last[6]) - 0.1) < 1e-12);
  BOOST_TEST(has(slurp(scratch / "report/curves.svg"), "class=\"band c2\""));

  fs::remove_all(scratch / "runs");
  write_logs(study, results, 2);  // too few for a curve
  BOOST_TEST(has(write_study_report(study, {}, results, 0, {}), "Training loss (nats per token), moving average"));
  BOOST_TEST(detail::split(slurp(scratch / "report/curves.csv"), '\n').size() == 1 + 3 * 40 + 1u);

  fs::remove_all(scratch / "runs");  // logs that are gone
  BOOST_TEST(!has(write_study_report(study, {}, results, 0, {}), "Learning curves"));
}

// The baseline has the loss 5 C^-1/4 after C, and `fast` after half of it: it is worth twice the compute at each
// budget.
BOOST_AUTO_TEST_CASE(multipliers_by_the_budgets_of_one_size) {
  const Scratch scratch;
  Study study = study_in(scratch.path);
  study.budgets = {10, 20, 40};
  study.variants = {{"plain", {}}, {"fast", {}}};
  std::vector<StudyResult> results;
  for (const double budget : study.budgets)
    for (const auto& [variant, speed] : {std::pair{"plain", 1.0}, {"fast", 2.0}})
      for (const int64_t seed : study.seeds) {
        const double noise = 1 + 1e-5 * static_cast<double>(seed);
        StudyResult r{.parameters = 1000, .tokens = 100 * budget, .flops = 1e4 * budget, .seconds = budget};
        r.loss = noise * 5 * std::pow(r.flops * speed, -0.25);
        r.run.size = "a", r.run.variant = variant, r.run.budget = budget, r.run.seed = seed;
        r.run.name = str(variant, static_cast<int64_t>(budget), "-", seed), r.task_accuracy = std::nan("");
        results.push_back(r);
      }
  const std::string page = write_study_report(study, {}, results, 0, {});
  BOOST_TEST(has(page, "for the loss that the variant has at this budget"), page);
  for (const char* row :
       {"| 10 | fast | a | 3 | 2.00 |", "| 20 | fast | a | 3 | 2.00 |", "| 40 | fast | a | 3 | 2.00 |"})
    BOOST_TEST(has(page, row), page << " lacks " << row);
  BOOST_TEST(has(page, "Compute multiplier over plain by budget"));
  BOOST_TEST(detail::split(slurp(scratch / "report/multipliers.csv"), '\n').size() == 1 + 3 + 1u);

  study.budgets = {10};
  std::erase_if(results, [](const StudyResult& r) { return r.run.budget != 10; });
  BOOST_TEST(!has(write_study_report(study, {}, results, 0, {}), "Compute multiplier"));
}

BOOST_AUTO_TEST_CASE(a_rate_that_serves_several_variants) {
  Study study = study_in("unused");
  BOOST_TEST(has(shared_rate_warning(study), "plain, full, post_only: it may suit one"));
  study.variants[2].settings.push_back("optimizer.lr=1e-3");
  BOOST_TEST(has(shared_rate_warning(study), "plain, full: it may suit one"));
  study.variants[1].settings.push_back("optimizer.lr=1e-3");
  BOOST_TEST(shared_rate_warning(study) == "");
  study = study_in("unused");
  study.search = Study::Search{.variants = {"plain", "full", "post_only"}};
  BOOST_TEST(shared_rate_warning(study) == "");
  study.search->variants = {"plain", "full"};
  BOOST_TEST(shared_rate_warning(study) == "");  // one alone shares nothing
  study.search.reset();
  study.variants = {{"base", {}}, {"fast", {"optimizer.lr=1e-2"}}, {"other", {"model.compose=none"}}};
  BOOST_TEST(shared_rate_warning(study) == "");  // base and fast are tries of one variant
}

BOOST_AUTO_TEST_CASE(counts_of_values) {
  Counts counts;
  counts.add(3);
  BOOST_TEST(counts.text() == "3");
  counts.add(2);
  BOOST_TEST(counts.text() == "2 to 3");
}

BOOST_AUTO_TEST_CASE(rates_are_tried_beyond_an_edge_while_the_best_one_is_there) {
  Study study = study_in("unused");
  study.search =
      Study::Search{.size = "a", .rates = {1e-3, 3e-3}, .extend = 2, .seeds = {1, 2}, .variants = {"plain", "full"}};
  std::vector<StudyResult> found;
  const auto tried = [&](const std::string& variant, double rate, double loss) {
    for (const int64_t seed : study.search->seeds) {
      found.push_back({.loss = loss});
      found.back().run.variant = variant, found.back().run.rate = rate, found.back().run.seed = seed;
    }
  };
  tried("plain", 1e-3, 3.0), tried("plain", 3e-3, 2.0), tried("full", 1e-3, 3.0);
  BOOST_TEST((rates_beyond(study, found) == VariantRates{{"plain", 9e-3}}));
  BOOST_TEST(best_rates(study, found).empty());
  tried("plain", 9e-3, 2.5), tried("full", 3e-3, 3.5);
  BOOST_TEST((rates_beyond(study, found) == VariantRates{{"plain", 9e-3}, {"full", 0.000333333}}));
  tried("full", 0.000333333, 2.9);
  BOOST_TEST(
      (rates_beyond(study, found) == VariantRates{{"plain", 9e-3}, {"full", 0.000333333}, {"full", 0.000111111}}));
  BOOST_TEST(best_rates(study, found).empty());
  tried("full", 0.000111111, 2.8);  // the edge once more, but two rates were added on this side
  BOOST_TEST(rates_beyond(study, found).size() == 3u);
  BOOST_TEST((best_rates(study, found) == VariantRates{{"plain", 3e-3}, {"full", 0.000111111}}));
  study.search->extend = 0;
  BOOST_TEST(rates_beyond(study, found).empty());
}

BOOST_AUTO_TEST_SUITE_END()
