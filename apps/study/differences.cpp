#include "apps/study/differences.h"

#include <cmath>

#include "apps/cli/text.h"
#include "apps/study/metric.h"
#include "apps/study/report_text.h"
#include "braid/models/study/comparisons.h"

namespace braid::apps {
namespace {

const StudyResult* result_of(const std::vector<StudyResult>& results, const StudyRun& like,
                             const std::string& variant) {
  for (const StudyResult& r : results)
    if (r.run.size == like.size && r.run.budget == like.budget && r.run.seed == like.seed && r.run.variant == variant)
      return &r;
  return nullptr;
}

std::string p_text(double p) { return std::isnan(p) ? "-" : p < 0.001 ? "< 0.001" : fixed(p, 3); }

}  // namespace

std::string Difference::verdict() const {
  if (pairs < 2) return "one pair: not decided";
  return p_holm >= 0.05 ? "not decided" : loss.value < 0 ? "lower" : "higher";
}

std::vector<Difference> differences_from_baseline(const Study& study, const std::vector<StudyResult>& results) {
  std::vector<Difference> found;
  std::vector<double> all_p;
  for (const Study::Section& size : study.sizes)
    for (const double budget : study.budgets)
      for (const Study::Section& variant : study.variants) {
        if (variant.name == study.baseline) continue;
        std::vector<double> x, y, flops, seconds;
        for (const StudyResult& r : results) {
          if (r.run.size != size.name || r.run.budget != budget || r.run.variant != variant.name) continue;
          const StudyResult* base = result_of(results, r.run, study.baseline);
          if (base == nullptr) continue;
          x.push_back(r.loss), y.push_back(base->loss);
          const double steps = static_cast<double>(r.run.steps) / static_cast<double>(base->run.steps);
          flops.push_back(r.flops / base->flops / steps), seconds.push_back(r.seconds / base->seconds / steps);
        }
        if (x.empty()) continue;
        all_p.push_back(models::paired_p_value(x, y));
        found.push_back({.size = size.name,
                         .variant = variant.name,
                         .budget = budget,
                         .pairs = std::ssize(x),
                         .loss = models::paired_difference(x, y),
                         .p = all_p.back(),
                         .flops_ratio = models::mean_with_interval(flops).value,
                         .time_ratio = models::mean_with_interval(seconds).value});
      }
  const std::vector<double> adjusted = models::holm_adjusted(all_p);
  for (size_t i = 0; i < found.size(); ++i) found[i].p_holm = adjusted[i];
  return found;
}

void report_differences(const Study& study, const std::vector<StudyResult>& results, ReportWriter& report) {
  if (study.variants.size() < 2) return;
  const std::vector<Difference> differences = differences_from_baseline(study, results);
  report.title("Differences from " + study.baseline + ", seed by seed");
  Csv csv({"size", "budget", "variant", "pairs", "difference", "low", "high", "p", "p_holm", "flops_per_step_ratio",
           "seconds_per_step_ratio"});
  Table table({"size", "budget", "variant", "pairs", "difference of loss", "interval", "p, corrected", "FLOPs per step",
               "time per step", "verdict"});
  std::vector<Bar> bars;
  Counts pairs;
  int64_t tests = 0;
  for (const Difference& d : differences) {
    csv.row({d.size, d.budget, d.variant, d.pairs, d.loss.value, d.loss.low, d.loss.high, d.p, d.p_holm, d.flops_ratio,
             d.time_ratio});
    table.row({d.size, shortest(d.budget), d.variant, std::to_string(d.pairs), with_sign(d.loss.value),
               interval(d.loss), p_text(d.p_holm), fixed(d.flops_ratio, 2), fixed(d.time_ratio, 2), d.verdict()});
    pairs.add(d.pairs);
    if (d.pairs < 2) continue;
    ++tests;
    bars.push_back({(study.sizes.size() > 1 ? d.size + " " : "") +
                        (study.budgets.size() > 1 ? shortest(d.budget) + " " : "") + d.variant,
                    d.loss.value, d.loss.low, d.loss.high});
  }
  report.csv("differences", csv);
  const std::string what =
      str("Validation loss (", loss_unit(study), ") less that of ") + study.baseline +
      ", paired by seed: mean and interval of 95 % of a single difference (paired t, n = " + pairs.text() + " pairs).";
  report.table("differences", table,
               what + str(" p is that of the paired t test, corrected by Holm's method for the ", tests,
                          " comparisons of the table; the verdict is at 0.05. FLOPs and time are ratios."));
  report.text(
      str("\np is that of the paired t test, corrected by Holm's method for the ", tests,
          " comparisons of this table; the verdict is at a corrected p of 0.05. The intervals are those of single "
          "differences. FLOPs and time are ratios to the baseline's; time was measured beside other work.\n"));
  if (!bars.empty())
    report.figure("differences",
                  interval_chart({study.name + ": loss less that of " + study.baseline, what},
                                 str("difference of validation loss (", loss_unit(study), ")"), bars),
                  what, csv.text());
}

}  // namespace braid::apps
