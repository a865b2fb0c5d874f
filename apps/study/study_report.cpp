#include "apps/study/study_report.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <set>

#include "apps/chart/chart.h"
#include "apps/chart/csv.h"
#include "apps/cli/plan_report.h"
#include "apps/cli/text.h"
#include "apps/study/coordinates.h"
#include "apps/study/curves.h"
#include "apps/study/differences.h"
#include "apps/study/metric.h"
#include "apps/study/rates.h"
#include "apps/study/report_text.h"
#include "apps/study/report_writer.h"
#include "braid/models/study/compute_multiplier.h"
#include "braid/models/study/scaling_law.h"
#include "braid/tensor/error.h"

namespace braid::apps {

namespace fs = std::filesystem;
namespace {

class Reporter {
 public:
  Reporter(const Study& study, const std::vector<StudyResult>& search, const std::vector<StudyResult>& results,
           const Medium& medium)
      : study_(study), search_(search), results_(results), report_(fs::path(study.out) / "report", medium) {
    for (const Study::Section& variant : study.variants) variants_.push_back(variant.name);
  }

  std::string write(int64_t missing) {
    report_.text(str("# ", study_.name, "\n\n", results_.size(), " runs",
                     missing > 0 ? str(", ", missing, " not finished") : "", " in ", duration(total_seconds()),
                     " of training. Losses are of validation, in ", loss_unit(study_),
                     ". Intervals in brackets are of 95 %. The baseline is ", study_.baseline, ".\n"));
    if (const std::string warning = shared_rate_warning(study_); !warning.empty())
      report_.text("\n**Warning**: " + warning + ".\n");
    runs();
    if (study_.coordinates) {
      report_coordinates(study_, results_, report_);
      return report_.finish();
    }
    rates();
    losses();
    report_differences(study_, results_, report_);
    report_curves(study_, results_, report_);
    multipliers();
    law();
    families();
    return report_.finish();
  }

 private:
  // The results of a variant at a size and budget, by seed.
  std::map<int64_t, const StudyResult*> cell(const std::string& size, double budget, const std::string& variant) const {
    std::map<int64_t, const StudyResult*> found;
    for (const StudyResult& r : results_)
      if (r.run.size == size && r.run.budget == budget && r.run.variant == variant) found[r.run.seed] = &r;
    return found;
  }
  void each_cell(const std::function<void(const std::string& size, double budget)>& use) const {
    for (const Study::Section& size : study_.sizes)
      for (const double budget : study_.budgets) use(size.name, budget);
  }
  int hue(const std::string& variant) const {
    return static_cast<int>(std::ranges::find(variants_, variant) - variants_.begin());
  }
  double total_seconds() const {
    double sum = 0;
    for (const auto* list : {&search_, &results_})
      for (const StudyResult& r : *list) sum += r.seconds;
    return sum;
  }
  void runs() {
    Csv csv({"run", "search", "size", "variant", "budget", "seed", "learning_rate", "steps", "parameters",
             "non_embedding", "tokens", "flops", "validation_loss", "task_accuracy", "seconds"});
    for (const auto* list : {&search_, &results_})
      for (const StudyResult& r : *list)
        csv.row({r.run.name, static_cast<int64_t>(r.run.search), r.run.size, r.run.variant, r.run.budget, r.run.seed,
                 r.run.rate.value_or(std::nan("")), r.run.steps, r.parameters, r.non_embedding, r.tokens, r.flops,
                 r.loss, r.task_accuracy, r.seconds});
    report_.csv("runs", csv);
  }

  void rates() {
    if (study_.search && !search_.empty()) {
      best_rates(study_, search_);  // checks that not all diverged
      rates("Learning rate", "search", study_.name + ": search of the learning rate", search_curves(study_, search_));
    }
    if (const std::vector<RateCurve> curves = variant_curves(study_, results_); !curves.empty())
      rates("Loss by learning rate", "rates", study_.name + ": variants that differ in the learning rate alone",
            curves);
  }

  // The best rate of a curve is bold; at the edge of its range it has a mark, and a note says in which direction to go.
  void rates(const std::string& heading, const std::string& file, const std::string& chart_title,
             const std::vector<RateCurve>& curves) {
    report_.title(heading);
    std::set<double> all;
    for (const RateCurve& curve : curves)
      for (const auto& [rate, losses] : curve.losses) all.insert(rate);
    std::vector<std::string> names = {"variant"};
    for (const double rate : all) names.push_back(shortest(rate));
    Table table(names);
    Csv csv({"variant", "learning_rate", "validation_loss", "seeds"});
    LinePanel panel{.title = "Validation loss by learning rate", .x_name = "learning rate", .lines = {}, .log_x = true};
    std::string notes;
    Counts seeds;
    for (const RateCurve& curve : curves) {
      Line line{.name = curve.name, .x = {}, .y = {}, .hue = curve.hue, .low = {}, .high = {}};
      std::map<double, std::string> cells;
      for (size_t i = 0; i < curve.losses.size(); ++i) {
        const auto& [rate, losses] = curve.losses[i];
        const double mean = curve.mean(i);
        cells[rate] = std::isnan(mean) ? "-" : std::isinf(mean) ? "diverged" : fixed(mean);
        if (!std::isfinite(mean)) continue;
        seeds.add(std::ssize(losses));
        csv.row({curve.name, rate, mean, std::ssize(losses)});
        line.x.push_back(rate), line.y.push_back(mean);
        if (curve.best() == static_cast<int>(i))
          cells[rate] = "**" + cells[rate] + "**" + (curve.edge_note().empty() ? "" : " (edge)");
      }
      std::vector<std::string> row = {curve.name};
      for (const double rate : all) row.push_back(cells.contains(rate) ? cells[rate] : "-");
      table.row(row);
      panel.lines.push_back(line);
      if (!curve.edge_note().empty()) notes += "\n" + curve.edge_note() + "\n";
    }
    const std::string what =
        str("Mean validation loss (", loss_unit(study_), ") by learning rate, n = ", seeds.text(), " seeds.");
    report_.table(file, table, what + " Bold: the best rate; edge: it is the smallest or the largest that was tried.");
    report_.text(notes);
    report_.figure(file, line_chart({chart_title, what}, {panel}, 1), what, csv.text());
  }

  void losses() {
    report_.title("Losses");
    Counts seeds;
    std::vector<Bar> bars;
    Csv csv({"size", "budget", "variant", "seeds", "parameters", "tokens", "flops", "loss", "loss_low", "loss_high",
             "task_accuracy", "seconds"});
    Table table({"size", "budget", "variant", "parameters", "tokens", "FLOPs", "seeds", "loss", "interval", "tasks"});
    std::vector<LinePanel> panels = {{.title = "by parameters", .x_name = "parameters", .lines = {}, .log_x = true},
                                     {.title = "by FLOPs", .x_name = "FLOPs", .lines = {}, .log_x = true},
                                     {.title = "by time", .x_name = "seconds of training", .lines = {}, .log_x = true}};
    for (const std::string& variant : variants_)
      for (LinePanel& panel : panels)
        panel.lines.push_back({.name = variant,
                               .x = {},
                               .y = {},
                               .hue = hue(variant),
                               .dots = study_.budgets.size() > 1,
                               .low = {},
                               .high = {}});
    each_cell([&](const std::string& size, double budget) {
      for (const std::string& variant : variants_) {
        const auto runs = cell(size, budget, variant);
        if (runs.empty()) continue;
        std::vector<double> loss, tasks, seconds;
        for (const auto& [seed, r] : runs)
          loss.push_back(r->loss), tasks.push_back(r->task_accuracy), seconds.push_back(r->seconds);
        const Estimate mean = models::mean_with_interval(loss);
        const double accuracy = models::mean_with_interval(tasks).value,
                     time = models::mean_with_interval(seconds).value;
        const StudyResult& r = *runs.begin()->second;
        csv.row({size, budget, variant, std::ssize(loss), r.parameters, r.tokens, r.flops, mean.value, mean.low,
                 mean.high, accuracy, time});
        table.row({size, shortest(budget), variant, human(r.parameters, 3), human(r.tokens, 3), exponent(r.flops),
                   std::to_string(loss.size()), fixed(mean.value), interval(mean),
                   std::isfinite(accuracy) ? fixed(100 * accuracy, 1) + " %" : "-"});
        seeds.add(std::ssize(loss));
        const bool known = std::isfinite(mean.low);
        bars.push_back({variant, mean.value, known ? mean.low : mean.value, known ? mean.high : mean.value});
        const double xs[] = {r.parameters, r.flops, time};
        for (size_t k = 0; k < panels.size(); ++k) {
          Line& line = panels[k].lines[static_cast<size_t>(hue(variant))];
          line.x.push_back(xs[k]), line.y.push_back(mean.value);
          line.low.push_back(known ? mean.low : mean.value), line.high.push_back(known ? mean.high : mean.value);
        }
      }
    });
    if (bars.empty()) return;
    const std::string what = str("Validation loss (", loss_unit(study_), "): mean over n = ", seeds.text(),
                                 " seeds and its interval of 95 % (Student's t).");
    report_.table("losses", table, what);
    report_.figure("losses",
                   study_.sizes.size() * study_.budgets.size() > 1
                       ? line_chart({study_.name + ": validation loss", what}, panels, 3)
                       : interval_chart({study_.name + ": validation loss", what},
                                        str("validation loss (", loss_unit(study_), ")"), bars, false),
                   what, csv.text());
  }

  // A curve of the baseline goes through its sizes at one budget, or through the budgets of its only size.
  void multipliers() {
    const bool by_budget = study_.sizes.size() == 1;
    if ((by_budget && study_.budgets.size() < 2) || variants_.size() < 2) return;
    report_.title("Compute multiplier");
    const std::string what = str(
        "The baseline needs so many times the FLOPs for the loss that the variant has at this ",
        by_budget ? "budget" : "size",
        ", by pairs of equal seeds and a curve L = E + A C^-b through the losses of the baseline; intervals of 95 %.");
    report_.text(what + "\n\n");
    Csv csv({"budget", "variant", "size", "pairs", "flops", "multiplier", "low", "high"});
    Table table({"budget", "variant", "size", "pairs", "multiplier", "interval", "verdict"});
    std::vector<Bar> bars;
    Counts counts;
    std::vector<std::vector<double>> curves;
    if (by_budget)
      curves = {study_.budgets};
    else
      for (const double budget : study_.budgets) curves.push_back({budget});
    for (const std::vector<double>& budgets : curves)
      for (const std::string& variant : variants_) {
        if (variant == study_.baseline) continue;
        std::vector<models::ComputePairs> pairs;
        std::vector<std::pair<double, std::string>> points;  // budget, size
        for (const double budget : budgets)
          for (const Study::Section& size : study_.sizes) {
            models::ComputePairs p;
            const auto others = cell(size.name, budget, variant);
            for (const auto& [seed, base] : cell(size.name, budget, study_.baseline))
              if (const auto other = others.find(seed); other != others.end()) {
                p.baseline_compute = base->flops, p.variant_compute = other->second->flops;
                p.baseline.push_back(base->loss), p.variant.push_back(other->second->loss);
              }
            if (p.baseline.size() > 1) pairs.push_back(p), points.emplace_back(budget, size.name);
          }
        try {
          const std::vector<Estimate> found = models::compute_multipliers(pairs, {.seed = 1});
          for (size_t i = 0; i < found.size(); ++i) {
            const Estimate& m = found[i];
            const auto& [budget, size] = points[i];
            const int64_t n = std::ssize(pairs[i].baseline);
            csv.row({budget, variant, size, n, pairs[i].variant_compute, m.value, m.low, m.high});
            counts.add(n);
            table.row({shortest(budget), variant, size, std::to_string(n), fixed(m.value, 2), interval(m, 2),
                       m.low > 1    ? "above 1"
                       : m.high < 1 ? "below 1"
                                    : "not decided"});
            bars.push_back({str(study_.budgets.size() > 1 ? shortest(budget) + " " : "", variant, " ", size), m.value,
                            m.low, m.high});
          }
        } catch (const Error& e) {
          table.row({by_budget ? "-" : shortest(budgets.front()), variant, "-", "-", "-", "-", e.what()});
        }
      }
    report_.table("multipliers", table, what);
    if (bars.empty()) return;
    const std::string drawn = str("Compute multiplier over ", study_.baseline, by_budget ? " by budget" : " by size",
                                  " with intervals of 95 %, n = ", counts.text(), " pairs.");
    report_.figure("multipliers",
                   interval_chart({study_.name + ": compute multiplier over " + study_.baseline, drawn},
                                  "times the FLOPs of " + study_.baseline, bars),
                   drawn, csv.text());
  }

  void law() {
    if (study_.sizes.size() < 2) return;
    report_.title("Loss by parameters and tokens");
    const std::string what =
        "L(N, D) = E + A N^-alpha + B D^-beta (`models/study/scaling_law.h`), N without embeddings.";
    report_.text(what + "\n\n");
    Csv csv({"variant", "runs", "number", "value", "low", "high"});
    Table table({"variant", "runs", "E", "alpha", "beta", "exponent of N"});
    bool any = false;
    for (const std::string& variant : variants_) {
      std::vector<models::ScalingRun> runs;
      for (const StudyResult& r : results_)
        if (r.run.variant == variant) runs.push_back({r.non_embedding, r.tokens, r.loss});
      try {
        const models::ScalingFit fit = models::fit_scaling_law_with_intervals(runs, {.seed = 2});
        const std::string n = std::to_string(runs.size());
        for (const auto& [name, e] : {std::pair<const char*, Estimate>{"E", fit.e},
                                      {"A", fit.a},
                                      {"B", fit.b},
                                      {"alpha", fit.alpha},
                                      {"beta", fit.beta},
                                      {"n_exponent", fit.n_exponent}})
          csv.row({variant, std::ssize(runs), name, e.value, e.low, e.high});
        const auto shown = [](const Estimate& e) { return fixed(e.value, 3) + " " + interval(e, 3); };
        table.row({variant, n, shown(fit.e), shown(fit.alpha), shown(fit.beta), shown(fit.n_exponent)});
        any = true;
      } catch (const Error& e) {
        report_.text(variant + ": " + e.what() + ".\n\n");
      }
    }
    if (!any) return;
    report_.table("law", table, what + " Intervals of 95 % (bootstrap).");
    report_.csv("law", csv);
  }

  void families() {
    if (std::ranges::none_of(results_, [](const StudyResult& r) { return !r.families.empty(); })) return;
    report_.title("In-context accuracy by family, held-out words, at the last step");
    Csv csv({"size", "budget", "variant", "family", "step", "seeds", "accuracy", "low", "high"});
    Table table({"family", "size", "budget", "variant", "seeds", "accuracy", "interval"});
    Counts seeds;
    std::set<std::string> names;
    for (const StudyResult& r : results_)
      for (const FamilyAccuracy& f : r.families) names.insert(f.family);
    std::vector<LinePanel> panels;
    for (const std::string& family : names) {
      LinePanel panel{.title = family, .x_name = "step", .lines = {}, .from_zero = true, .whole_x = true};
      each_cell([&](const std::string& size, double budget) {
        for (const std::string& variant : variants_) {
          std::map<int64_t, std::vector<double>> by_step;
          for (const auto& [seed, r] : cell(size, budget, variant))
            for (const FamilyAccuracy& f : r->families)
              if (f.family == family) by_step[f.step].push_back(f.accuracy);
          Line line{.name = variant, .x = {}, .y = {}, .hue = hue(variant), .low = {}, .high = {}};
          for (const auto& [step, values] : by_step) {
            const Estimate mean = models::mean_with_interval(values);
            seeds.add(std::ssize(values));
            csv.row({size, budget, variant, family, step, std::ssize(values), mean.value, mean.low, mean.high});
            line.x.push_back(static_cast<double>(step)), line.y.push_back(100 * mean.value);
            if (step == by_step.rbegin()->first)
              table.row({family, size, shortest(budget), variant, std::to_string(values.size()),
                         fixed(100 * mean.value, 1) + " %",
                         std::isfinite(mean.low)
                             ? "[" + fixed(100 * mean.low, 1) + ", " + fixed(100 * mean.high, 1) + "]"
                             : "no interval"});
          }
          if (!line.x.empty()) panel.lines.push_back(line);
        }
      });
      panels.push_back(panel);
    }
    const std::string what =
        "In-context accuracy (%) by family, held-out words: mean over n = " + seeds.text() + " seeds.";
    report_.table("families", table, what + " Intervals of 95 % (Student's t).");
    report_.figure("families", line_chart({study_.name + ": in-context accuracy (%)", what}, panels, 3), what,
                   csv.text());
  }

  const Study& study_;
  const std::vector<StudyResult>& search_;
  const std::vector<StudyResult>& results_;
  ReportWriter report_;
  std::vector<std::string> variants_;
};

}  // namespace

std::string write_study_report(const Study& study, const std::vector<StudyResult>& search,
                               const std::vector<StudyResult>& results, int64_t missing, const Medium& medium) {
  return Reporter(study, search, results, medium).write(missing);
}

}  // namespace braid::apps
