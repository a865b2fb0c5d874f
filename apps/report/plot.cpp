// braid plot: the logs of one or several runs as one picture. Loss on top, what explains it below.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "apps/cli/commands.h"
#include "apps/cli/text.h"
#include "apps/report/panel.h"
#include "braid/tensor/detail/integers.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/io/file_system.h"

namespace braid::apps {
namespace fs = std::filesystem;
namespace {

constexpr double page_width = 960, left = 64, right = 24, loss_height = 300, small_height = 120;

struct XAxis {
  std::string name;  // "step", "tokens", "time (min)"
  double scale = 1;
  double LogRow::*member = nullptr;  // null: the step
};

double last_of(const std::vector<double>& values) {
  for (size_t i = values.size(); i-- > 0;)
    if (std::isfinite(values[i])) return values[i];
  return not_measured;
}

std::string shown(double value, int decimals, const std::string& unit = "") {
  if (std::isnan(value)) return "-";
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.*f", decimals, value);
  return buffer + unit;
}

// Words of the legend: one row per run, first the header.
std::vector<std::vector<std::string>> legend(const std::vector<Run>& runs, int64_t window) {
  const bool tasks = measured(runs, &LogRow::task_acc), validated = measured(runs, &LogRow::val_loss);
  std::vector<std::vector<std::string>> rows = {{"run", "steps", "loss"}};
  if (window > 1) rows[0].push_back("smoothed loss");
  if (validated) rows[0].insert(rows[0].end(), {"validation", "best validation"});
  if (tasks) rows[0].push_back("task accuracy");
  if (measured(runs, &LogRow::tok_per_s)) rows[0].push_back("tokens/s");
  for (const Run& run : runs) {
    const std::vector<double> losses = column(run, &LogRow::loss, 1);
    std::vector<std::string> row = {run.name, std::to_string(run.rows.back().step), shown(last_of(losses), 4)};
    if (window > 1) row.push_back(shown(last_of(moving_average(losses, window)), 4));
    if (validated) {
      double best = not_measured;
      int64_t at = 0;
      for (const LogRow& r : run.rows)
        if (std::isfinite(r.val_loss) && !(r.val_loss >= best)) best = r.val_loss, at = r.step;
      row.push_back(shown(last_of(column(run, &LogRow::val_loss, 1)), 4));
      row.push_back(std::isnan(best) ? "-" : shown(best, 4) + " at " + std::to_string(at));
    }
    if (tasks) row.push_back(shown(last_of(column(run, &LogRow::task_acc, 100)), 1, " %"));
    if (rows[0].back() == "tokens/s") {
      std::vector<double> speeds;
      for (double v : column(run, &LogRow::tok_per_s, 1))
        if (std::isfinite(v)) speeds.push_back(v);
      std::sort(speeds.begin(), speeds.end());
      row.push_back(speeds.empty() ? "-" : human(speeds[speeds.size() / 2], 3));
    }
    rows.push_back(row);
  }
  return rows;
}

// The columns stand at the right, as wide as their longest words; the runs' names take the rest.
void draw_legend(Svg& svg, double y, const std::vector<std::vector<std::string>>& rows, bool validated) {
  constexpr double letter = 7.3, gap = 20, swatch = 42;
  const size_t columns = rows[0].size();
  std::vector<double> ends(columns, page_width - right);
  double name_end = page_width - right;
  for (size_t c = columns; c-- > 1;) {
    size_t longest = 0;
    for (const auto& row : rows) longest = std::max(longest, row[c].size());
    ends[c] = name_end;
    name_end -= letter * static_cast<double>(longest) + gap;
  }
  const auto name_letters = static_cast<size_t>(std::max(8.0, (name_end - left - swatch) / letter));
  for (size_t r = 0; r < rows.size(); ++r, y += 19) {
    const char* look = r == 0 ? "small" : "";
    svg.text(left + swatch, y, preview(rows[r][0], name_letters), look);
    for (size_t c = 1; c < columns; ++c) svg.text(ends[c], y, rows[r][c], look, "end");
    if (r == 0) continue;
    const int series = static_cast<int>(r) - 1;
    svg.path({{left, y - 4}, {left + 32, y - 4}}, series_class("line", series), series_dash(series));
    if (validated) svg.circle(left + 16, y - 4, 3.6, series_class("dot", series));
  }
}

XAxis choose_x(const std::string& column, std::vector<Run>& runs) {
  XAxis axis{.name = "step"};
  if (column != "step") axis.member = column == "tokens" ? &LogRow::tokens : &LogRow::elapsed_s;
  double largest = 0;
  for (Run& run : runs) {
    for (const LogRow& row : run.rows) {
      const double x = axis.member ? row.*axis.member : static_cast<double>(row.step);
      check(std::isfinite(x), ErrorKind::input, [&] {
        return "cannot plot " + run.name + " over " + column + ": expected the column " +
               (column == "tokens" ? "tokens" : "elapsed_s") + " in every row of its log, found none at step " +
               std::to_string(row.step) + "; use --x step";
      });
      run.x.push_back(x);
      largest = std::max(largest, x);
    }
  }
  if (column == "tokens") axis.name = "tokens";
  if (column == "time") {
    const bool hours = largest > 2 * 3600, minutes = largest > 120;
    axis.name = hours ? "time (h)" : minutes ? "time (min)" : "time (s)";
    axis.scale = hours ? 1.0 / 3600 : minutes ? 1.0 / 60 : 1;
  }
  for (Run& run : runs)
    for (double& x : run.x) x *= axis.scale;
  return axis;
}

std::string picture(std::vector<Run>& runs, const std::string& x_kind, bool log, int64_t window,
                    const std::string& command) {
  const XAxis x = choose_x(x_kind, runs);
  double x_max = 0;
  for (const Run& run : runs) x_max = std::max(x_max, run.x.back());
  const Axis xs{.min = 0, .max = x_max > 0 ? x_max : 1, .whole = x_kind == "step"};

  const Panel loss{"Loss (nats per token)", &LogRow::loss, true, false, 1, &LogRow::val_loss};
  std::vector<Panel> small;
  for (const Panel& panel : {Panel{"Task accuracy (%)", &LogRow::task_acc, false, true, 100, &LogRow::task_acc},
                             Panel{"Learning rate", &LogRow::lr, false, true},
                             Panel{"Gradient norm before clipping", &LogRow::grad_norm, true, true},
                             Panel{"Throughput (tokens/s)", &LogRow::tok_per_s, true, true}})
    if (measured(runs, panel.member)) small.push_back(panel);
  const size_t per_row = small.size() == 4 ? 2 : std::max<size_t>(1, small.size());
  const size_t small_rows = detail::ceil_div(small.size(), per_row);

  const auto rows = legend(runs, window);
  const double legend_top = 80, loss_top = legend_top + 19 * static_cast<double>(rows.size()) + 30;
  const double small_top = loss_top + loss_height + 78, row_height = small_height + 78;
  const double height = small_top - 34 + static_cast<double>(small_rows) * row_height - (small_rows ? 4 : 0);

  std::vector<std::string> names;
  for (const Run& run : runs) names.push_back(run.name);
  const std::string title =
      runs.size() == 1 ? "Training run " + names[0] : "Comparison of " + std::to_string(runs.size()) + " training runs";
  Svg svg(page_width, height, title, "Runs: " + join(names, ", ") + ". Made by: " + command);
  svg.text(left, 34, preview(title, 80), "title");
  const bool validated = measured(runs, &LogRow::val_loss);
  svg.text(left, 54,
           std::string(window > 1 ? "lines: moving average over up to " + std::to_string(window) + " steps" +
                                        (runs.size() > 5 ? "" : "; faint: every step")
                                  : "lines: every step") +
               (validated ? "; circles: validation" : ""),
           "small");
  draw_legend(svg, legend_top, rows, validated);
  draw_panel(svg, {left, loss_top, page_width - left - right, loss_height}, runs, loss, xs, x.name, log, window);
  const double gap = 62, width = (page_width - left - right - gap * double(per_row - 1)) / double(per_row);
  for (size_t i = 0; i < small.size(); ++i)
    draw_panel(
        svg,
        {left + double(i % per_row) * (width + gap), small_top + double(i / per_row) * row_height, width, small_height},
        runs, small[i], xs, x.name, false, window);
  return svg.finish();
}

// The numbers of the picture, one row per run and step.
std::string data_csv(const std::vector<Run>& runs, int64_t window) {
  std::string text = "run,loss_average," + csv_header();
  for (const Run& run : runs) {
    std::string name = "\"";
    for (const char c : run.name) name.append(c == '"' ? 2 : 1, c);
    const std::vector<double> average = moving_average(column(run, &LogRow::loss, 1), window);
    for (size_t i = 0; i < run.rows.size(); ++i)
      text += name + "\"," + (std::isnan(average[i]) ? "" : shortest(average[i])) + "," + csv_line(run.rows[i]);
  }
  return text;
}

// "demo" for out/demo and out/demo/log.csv; with the parent's name where several runs would be called the same.
std::vector<std::string> run_names(const std::vector<std::string>& sources) {
  std::vector<fs::path> folders;
  for (const std::string& source : sources) {
    std::error_code ignored;
    fs::path path = fs::absolute(source, ignored).lexically_normal();
    if (!path.has_filename()) path = path.parent_path();
    folders.push_back(path.filename() == "log.csv" ? path.parent_path() : path);
  }
  std::vector<std::string> names;
  for (const fs::path& folder : folders) {
    const auto same = std::count_if(folders.begin(), folders.end(),
                                    [&](const fs::path& other) { return other.filename() == folder.filename(); });
    names.push_back(same > 1 ? (folder.parent_path().filename() / folder.filename()).string()
                             : folder.filename().string());
  }
  return names;
}

bool has_loss(const std::vector<LogRow>& rows) {
  return std::any_of(rows.begin(), rows.end(), [](const LogRow& row) { return std::isfinite(row.loss); });
}

// The runs of the sources. Of several, those that have no loss yet are left out with a note, and so are folders of
// other things, which a pattern such as out/* finds. A file that plot wrote has several runs, with their names.
// given: the names are those of --name.
std::vector<Run> read_runs(const std::vector<std::string>& sources, const std::vector<std::string>& names, bool given) {
  std::vector<Run> runs;
  const auto name_of = [&](size_t i, const std::string& run, size_t of) {
    if (run.empty() || (given && of == 1)) return names[i];
    return given || sources.size() > 1 ? names[i] + "/" + run : run;
  };
  const auto leave_out = [&](const std::string& what, const std::string& why) {
    check(sources.size() > 1, ErrorKind::input,
          [&] { return "nothing to plot in " + what + ": expected at least one finite loss, found none"; });
    std::fprintf(stderr, "note: %s %s: left out\n", preview(what).c_str(), why.c_str());
  };
  for (size_t i = 0; i < sources.size(); ++i) {
    std::error_code ignored;
    if (sources.size() > 1 && fs::is_directory(sources[i], ignored) && !fs::exists(log_file(sources[i]), ignored)) {
      leave_out(sources[i], "has no log.csv");
      continue;
    }
    std::vector<NamedLog> logs = read_logs(sources[i]);
    if (logs.empty()) leave_out(sources[i], "has no step yet");
    for (NamedLog& log : logs) {
      const std::string name = name_of(i, log.run, logs.size());
      if (has_loss(log.rows))
        runs.push_back({braid::detail::replace_invalid_utf8(preview(name, 200)), std::move(log.rows), {}});
      else
        leave_out(log.run.empty() ? sources[i] : name, "has no finite loss");
    }
  }
  check(!runs.empty(), ErrorKind::input, [&] {
    return "nothing to plot: expected a run with at least one finite loss, found none in " +
           std::to_string(sources.size()) + " runs";
  });
  return runs;
}

int run_plot(const Arguments& arguments) {
  const std::vector<std::string> sources = arguments.list("RUN");
  std::vector<std::string> names = arguments.list("name");
  check(names.empty() || names.size() == sources.size(), ErrorKind::setting, [&] {
    return "--name must be given once per run: expected " + std::to_string(sources.size()) + ", found " +
           std::to_string(names.size());
  });
  for (const std::string& name : names)
    check(valid_utf8(name), ErrorKind::setting, [&] { return "bad --name '" + preview(name) + "': expected UTF-8"; });
  const bool given = !names.empty();
  if (!given) names = run_names(sources);
  std::vector<Run> runs = read_runs(sources, names, given);
  size_t longest = 0;
  for (const Run& run : runs) longest = std::max(longest, run.rows.size());
  int64_t window = arguments.get_int("smooth");
  if (window == 0) window = std::clamp<int64_t>(static_cast<int64_t>(longest) / 50, 1, 200);

  fs::path out = arguments.get("out");
  if (out.empty()) {
    const bool folder = sources.size() == 1 && fs::is_directory(sources[0]);
    out = folder ? fs::path(sources[0]) / "plots" / "run.svg" : fs::path("plot.svg");
  }
  check(out.extension() == ".svg", ErrorKind::setting, [&] {
    return "bad value for --out: expected a file name ending in .svg, found '" + preview(out.string()) + "'";
  });
  const fs::path data = fs::path(out).replace_extension(".csv");
  for (const std::string& source : sources) {
    std::error_code ignored;
    const fs::path log = log_file(source);
    check(!fs::equivalent(log, data, ignored), ErrorKind::setting, [&] {
      return "--out " + out.string() + " would write its numbers over the log " + log.string() +
             "; choose another name";
    });
  }
  const std::string svg = picture(runs, arguments.get("x"), arguments.has("log-y"), window, arguments.line());
  if (out.has_parent_path()) io::make_folder(out.parent_path());
  io::write_file(data.string(), data_csv(runs, window));
  io::write_file(out.string(), svg);

  const auto rows = legend(runs, window);
  for (const auto& row : rows) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c) {
      size_t widest = 0;
      for (const auto& other : rows) widest = std::max(widest, other[c].size());
      line += c ? "  " + std::string(widest - row[c].size(), ' ') + row[c]
                : row[c] + std::string(widest - row[c].size(), ' ');
    }
    std::printf("%s\n", line.c_str());
  }
  std::printf("wrote %s (picture) and %s (its numbers)\n", out.c_str(), data.c_str());
  return 0;
}

}  // namespace

Command plot_command() {
  return {
      .name = "plot",
      .summary = "draw the loss and its companions of one or several runs",
      .positionals = {{.name = "RUN",
                       .help = "run folder, or a CSV file with the columns step, loss and, for several runs, run",
                       .repeated = true}},
      .flags =
          {{.name = "out",
            .alias = 'o',
            .value = "FILE.svg",
            .help = "the picture; its numbers go to FILE.csv [RUN/plots/run.svg, or plot.svg for several runs]"},
           {.name = "x",
            .value = "WHAT",
            .help = "horizontal axis",
            .fallback = "step",
            .rule = models::one_of({"step", "tokens", "time"})},
           {.name = "log-y", .help = "logarithmic loss axis"},
           integer_flag("smooth", "STEPS", "memory of the moving average; 1 = none, 0 = by length", "0", 0, 1e6),
           {.name = "name", .value = "NAME", .help = "name of a run in the legend, one per run", .repeated = true}},
      .details =
          "The table has the loss of the last step, as braid train prints it, and the smoothed loss that the line "
          "shows.\n"
          "Of several runs, those without a step yet are left out.",
      .examples = {"braid plot out/run", "braid plot out/dcformer out/transformer -o compare.svg --x time"},
      .run = run_plot,
  };
}

}  // namespace braid::apps
