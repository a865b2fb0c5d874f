#include "apps/chart/run_chart.h"

#include <algorithm>

#include "apps/chart/legend.h"
#include "apps/cli/text.h"
#include "braid/tensor/error.h"

namespace braid::apps {
namespace {

constexpr double kScreenWidth = 960, kBelowPanel = 78;  // kBelowPanel: ticks and name of an axis, and the next title

// Small panels, `per_row` of one width beside one another.
struct PanelRow {
  std::vector<Panel> panels;
  size_t per_row;
};

void add_rows(std::vector<PanelRow>& rows, const std::vector<Panel>& panels, size_t per_row) {
  for (size_t i = 0; i < panels.size(); i += per_row)
    rows.push_back(
        {{panels.begin() + std::ptrdiff_t(i), panels.begin() + std::ptrdiff_t(std::min(panels.size(), i + per_row))},
         per_row});
}

std::vector<Panel> panels_of_sources(const std::vector<Run>& runs) {
  std::vector<Panel> panels;
  for (const std::string& column : source_columns(runs)) {
    if (!column.starts_with("loss.")) continue;
    const std::string name = column.substr(5);
    panels.push_back({.title = "Loss of " + preview(name, 30),
                      .member = "loss",
                      .smooth = true,
                      .from_zero = false,
                      .points = LogName("val_loss"),
                      .skips_beginning = true,
                      .source = name});
  }
  return panels;
}

// The small panels: those of sources, then those of other measures.
std::vector<PanelRow> small_rows(const std::vector<Run>& runs, const Medium& medium) {
  const bool paper = medium.paper();
  std::vector<Panel> small = {
      Panel{"Task accuracy (%)", "task_acc", false, true, 100, LogName("task_acc")},
      Panel{"Validation accuracy (%)", "val_top1", false, false, 100, LogName("val_top1")},
      Panel{"Preferred as labelled (%)", "accuracy", true, false, 100, LogName("val_accuracy")},
      Panel{"Margin of the rewards", "margin", true, true, 1, LogName("val_margin")},
      Panel{"Reward, chosen", "reward_chosen", true, true, 1, LogName("val_reward_chosen")},
      Panel{"Reward, rejected", "reward_rejected", true, true, 1, LogName("val_reward_rejected")},
      Panel{"Log-probability, chosen", "logp_chosen", true, false, 1, LogName("val_logp_chosen")},
      Panel{"Log-probability, rejected", "logp_rejected", true, false, 1, LogName("val_logp_rejected")}};
  if (!paper)
    small.insert(small.end(), {Panel{"Learning rate", "lr", false, true},
                               Panel{"Gradient norm before clipping", "grad_norm", true, true},
                               Panel{"Throughput (tokens/s)", "tok_per_s", true, true},
                               Panel{"Throughput (images/s)", "pictures_per_s", true, true}});
  std::erase_if(small, [&](const Panel& panel) { return !measured(runs, panel.member); });
  std::vector<PanelRow> rows;
  const std::vector<Panel> of_sources = panels_of_sources(runs);
  const int across = paper ? panels_across(3, 170, medium) : 4;
  const auto at_most = [&](size_t count) { return std::clamp<size_t>(count, 1, static_cast<size_t>(across)); };
  add_rows(rows, of_sources, at_most(std::min<size_t>(of_sources.size(), 3)));
  add_rows(rows, small, small.size() == 4 ? 2 : at_most(std::min<size_t>(small.size(), 3)));
  return rows;
}

Panel loss_panel(const std::vector<Run>& runs, const RunLook& look) {
  Panel loss{measured(runs, "pictures")   ? "Loss (nats per image)"
             : measured(runs, "accuracy") ? "Loss (nats per pair)"
                                          : "Loss (nats per token)",
             "loss",
             true,
             false,
             1,
             LogName("val_loss")};
  loss.skips_beginning = true;
  loss.max = look.y_max;
  return loss;
}

// How to read the lines.
std::string key_of(const std::vector<Run>& runs, const RunLook& look) {
  const bool grouped = std::ranges::any_of(runs, [](const Run& run) { return !run.members.empty(); });
  return str(look.window > 1 ? str("lines: moving average over up to ", look.window, " steps",
                                   runs.size() > 5 ? "" : "; faint: every step")
                             : "lines: every step",
             grouped ? "; of several runs the mean, in a band of one standard deviation" : "",
             measured(runs, "val_loss") ? "; circles: validation" : "");
}

struct Layout {
  double left, right, loss_height, small_height, loss_top;
};

Drawing begin_screen(const std::vector<Run>& runs, const RunLook& look, const Medium& medium, Layout& layout,
                     size_t rows_of_panels) {
  std::vector<std::string> names;
  size_t drawn = 0;
  for (const Run& run : runs) names.push_back(run.name), drawn += std::max<size_t>(1, run.members.size());
  const auto rows = legend(runs, look.window);
  const double legend_top = 80, width = medium.width(kScreenWidth);
  layout.loss_top = legend_top + 19 * static_cast<double>(rows.size()) + 30;
  const double height = layout.loss_top + layout.loss_height + kBelowPanel - 34 +
                        static_cast<double>(rows_of_panels) * (layout.small_height + kBelowPanel) -
                        (rows_of_panels == 0 ? 0 : 4);
  const std::string title = drawn == 1 ? "Training run " + names[0] : str("Comparison of ", drawn, " training runs");
  Drawing drawing(medium, width, height, title, "Runs: " + join(names, ", ") + ". Made by: " + look.command);
  drawing.text(layout.left, 34, preview(title, 80), "title");
  drawing.text(layout.left, 54, key_of(runs, look), "small");
  draw_legend(drawing, {layout.left, legend_top, width - layout.left - layout.right, 19}, rows,
              measured(runs, "val_loss"));
  return drawing;
}

Drawing begin_paper(const std::vector<Run>& runs, const RunLook& look, const Medium& medium, Layout& layout,
                    size_t rows_of_panels) {
  SeriesNames names;
  for (size_t i = 0; i < runs.size(); ++i) names.emplace_back(preview(runs[i].name, 50), static_cast<int>(i));
  const double legend = series_height(names, medium);
  layout.loss_top = 24;
  const double height = layout.loss_top + layout.loss_height + kBelowPanel - 34 +
                        static_cast<double>(rows_of_panels) * (layout.small_height + kBelowPanel) -
                        (rows_of_panels == 0 ? 0 : 4) + legend;
  Drawing drawing(medium, medium.width(), height, "Training runs", key_of(runs, look) + ". Made by: " + look.command);
  draw_series(drawing, names, height - legend - 2);
  return drawing;
}

Drawing draw_runs(const std::vector<Run>& runs, const RunLook& look, const Axis& xs, const Medium& medium) {
  const std::vector<PanelRow> rows = small_rows(runs, medium);
  Layout layout = medium.paper() ? Layout{46, 18, 170, 100, 0} : Layout{64, 24, 300, 120, 0};
  Drawing drawing = medium.paper() ? begin_paper(runs, look, medium, layout, rows.size())
                                   : begin_screen(runs, look, medium, layout, rows.size());
  const double inside = drawing.width - layout.left - layout.right;
  const double title = medium.paper() ? -34 : 0;  // from the left of a panel
  draw_panel(drawing, {layout.left, layout.loss_top, inside, layout.loss_height}, runs, loss_panel(runs, look), xs,
             look.x.name, look.log, look.window, layout.left + title);
  const double gap = medium.paper() ? 52 : 62;
  double top = layout.loss_top + layout.loss_height + kBelowPanel;
  for (const auto& [panels, per_row] : rows) {
    const double width = (inside - gap * double(per_row - 1)) / double(per_row);
    for (size_t i = 0; i < panels.size(); ++i) {
      const double x = layout.left + double(i) * (width + gap);
      draw_panel(drawing, {x, top, width, layout.small_height}, runs, panels[i], xs, look.x.name, false, look.window,
                 x + title);
    }
    top += layout.small_height + kBelowPanel;
  }
  return drawing;
}

}  // namespace

std::vector<std::string> source_columns(const std::vector<Run>& runs) {
  std::vector<std::string> columns;
  for (const Run& run : runs)
    for (const auto& [column, value] : run.rows.front().sources)
      if (std::ranges::find(columns, column) == columns.end()) columns.push_back(column);
  return columns;
}

Chart run_chart(std::vector<Run> runs, RunLook look) {
  double x_max = 0;
  for (const Run& run : runs) x_max = std::max(x_max, run.x.back());
  check(look.from < x_max || look.from == 0, ErrorKind::setting, [&] {
    return "bad value for --from: expected less than " + shown(x_max, 2) + ", where the longest run ends, found " +
           shown(look.from, 2);
  });
  const Axis xs{.min = look.from, .max = x_max > 0 ? x_max : 1, .whole = look.x.name == "step"};
  return [runs = std::move(runs), look = std::move(look), xs](const Medium& medium) {
    return draw_runs(runs, look, xs, medium);
  };
}

}  // namespace braid::apps
