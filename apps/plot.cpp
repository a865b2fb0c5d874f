// braid plot: the logs of one or several runs as one chart. Loss on top, what explains it below.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "apps/chart/group.h"
#include "apps/chart/legend.h"
#include "apps/chart/panel.h"
#include "apps/chart/rasterize.h"
#include "apps/cli/commands.h"
#include "apps/cli/text.h"
#include "apps/train/plan/run_flops.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/io/path_status.h"

namespace braid::apps {
namespace fs = std::filesystem;
namespace {

constexpr double page_width = 960, left = 64, right = 24, loss_height = 300, small_height = 120;

struct XAxis {
  std::string name;  // "step", "tokens", "time (min)"
  double scale = 1;
  std::optional<LogName> member;  // none: the step
};

XAxis choose_x(const std::string& column, std::vector<Run>& runs) {
  XAxis axis{.name = "step"};
  if (column != "step") axis.member = column == "time" ? LogName("elapsed_s") : LogName("tokens");
  double largest = 0;
  for (Run& run : runs) {
    const double scale = column == "flops" ? run.flops_per_token : 1;
    check(std::isfinite(scale), ErrorKind::input, [&] {
      return "cannot plot " + run.name +
             " over flops: expected a run folder, whose config.resolved.toml says what a "
             "token costs, found a log alone; use --x tokens";
    });
    for (const LogRow& row : run.rows) {
      const double x = scale * (axis.member ? row[*axis.member] : static_cast<double>(row.step));
      check(std::isfinite(x), ErrorKind::input, [&] {
        return str("cannot plot ", run.name, " over ", column, ": expected the column ",
                   column == "time" ? "elapsed_s" : "tokens", " in every row of its log, found none at step ", row.step,
                   "; use --x step");
      });
      run.x.push_back(x);
      largest = std::max(largest, x);
    }
  }
  if (column == "tokens") axis.name = "tokens";
  if (column == "flops") axis.name = "FLOPs of training";
  if (column == "time") {
    const bool hours = largest > 2 * 3600, minutes = largest > 120;
    axis.name = hours ? "time (h)" : minutes ? "time (min)" : "time (s)";
    axis.scale = hours ? 1.0 / 3600 : minutes ? 1.0 / 60 : 1;
  }
  for (Run& run : runs)
    for (double& x : run.x) x *= axis.scale;
  return axis;
}

struct Look {
  XAxis x;
  double from = 0;  // of the horizontal axis, in its unit
  double y_max = not_measured;
  bool log = false;
  int64_t window = 1;
};

// The columns of sources that any run has, in the order of the logs.
std::vector<std::string> source_columns(const std::vector<Run>& runs) {
  std::vector<std::string> columns;
  for (const Run& run : runs)
    for (const auto& [column, value] : run.rows.front().sources)
      if (std::ranges::find(columns, column) == columns.end()) columns.push_back(column);
  return columns;
}

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

std::string chart(const std::vector<Run>& runs, const Look& look, const std::string& command) {
  const XAxis& x = look.x;
  const int64_t window = look.window;
  double x_max = 0;
  for (const Run& run : runs) x_max = std::max(x_max, run.x.back());
  check(look.from < x_max || look.from == 0, ErrorKind::setting, [&] {
    return "bad value for --from: expected less than " + shown(x_max, 2) + ", where the longest run ends, found " +
           shown(look.from, 2);
  });
  const Axis xs{.min = look.from, .max = x_max > 0 ? x_max : 1, .whole = x.name == "step"};

  const bool images = measured(runs, "pictures");
  Panel loss{images ? "Loss (nats per image)" : "Loss (nats per token)", "loss", true, false, 1, LogName("val_loss")};
  loss.skips_beginning = true;
  loss.max = look.y_max;
  std::vector<Panel> small;
  for (const Panel& panel :
       {Panel{"Task accuracy (%)", "task_acc", false, true, 100, LogName("task_acc")},
        Panel{"Validation accuracy (%)", "val_top1", false, false, 100, LogName("val_top1")},
        Panel{"Learning rate", "lr", false, true}, Panel{"Gradient norm before clipping", "grad_norm", true, true},
        Panel{"Throughput (tokens/s)", "tok_per_s", true, true},
        Panel{"Throughput (images/s)", "pictures_per_s", true, true}})
    if (measured(runs, panel.member)) small.push_back(panel);
  std::vector<PanelRow> small_rows;
  const std::vector<Panel> of_sources = panels_of_sources(runs);
  add_rows(small_rows, of_sources, std::clamp<size_t>(of_sources.size(), 1, 3));
  add_rows(small_rows, small, small.size() == 4 ? 2 : std::max<size_t>(1, small.size()));

  const auto rows = legend(runs, window);
  const double legend_top = 80, loss_top = legend_top + 19 * static_cast<double>(rows.size()) + 30;
  const double small_top = loss_top + loss_height + 78, row_height = small_height + 78;
  const double height =
      small_top - 34 + static_cast<double>(small_rows.size()) * row_height - (small_rows.empty() ? 0 : 4);

  std::vector<std::string> names;
  for (const Run& run : runs) names.push_back(run.name);
  size_t drawn = 0;
  for (const Run& run : runs) drawn += std::max<size_t>(1, run.members.size());
  const bool grouped = drawn > runs.size();
  const std::string title = drawn == 1 ? "Training run " + names[0] : str("Comparison of ", drawn, " training runs");
  Svg svg(page_width, height, title, "Runs: " + join(names, ", ") + ". Made by: " + command);
  svg.text(left, 34, preview(title, 80), "title");
  const bool validated = measured(runs, "val_loss");
  svg.text(left, 54,
           str(window > 1 ? str("lines: moving average over up to ", window, " steps",
                                runs.size() > 5 ? "" : "; faint: every step")
                          : "lines: every step",
               grouped ? "; of several runs the mean, in a band of one standard deviation" : "",
               validated ? "; circles: validation" : ""),
           "small");
  draw_legend(svg, {left, legend_top, page_width - left - right, 19}, rows, validated);
  draw_panel(svg, {left, loss_top, page_width - left - right, loss_height}, runs, loss, xs, x.name, look.log, window);
  const double gap = 62;
  double top = small_top;
  for (const auto& [panels, per_row] : small_rows) {
    const double width = (page_width - left - right - gap * double(per_row - 1)) / double(per_row);
    for (size_t i = 0; i < panels.size(); ++i)
      draw_panel(svg, {left + double(i) * (width + gap), top, width, small_height}, runs, panels[i], xs, x.name, false,
                 window);
    top += row_height;
  }
  return svg.finish();
}

// The numbers of the chart, one row per run and step; of a group those of its runs, then the means.
std::string data_csv(const std::vector<Run>& runs, int64_t window) {
  const auto kind_of_run = [](const Run& run) { return kind_of(run.rows.front()); };
  const bool mixed = std::ranges::adjacent_find(runs, std::not_equal_to(), kind_of_run) != runs.end();
  const std::string_view kind = mixed ? "" : kind_of_run(runs.front());
  const std::vector<std::string> sources = source_columns(runs);
  std::string text = "run,loss_average," + csv_header(kind, sources);
  const auto add = [&](const Run& run) {
    std::string name = "\"";
    for (const char c : run.name) name.append(c == '"' ? 2 : 1, c);
    const std::vector<double> average = moving_average(column(run, "loss", 1), window);
    for (size_t i = 0; i < run.rows.size(); ++i)
      text += name + "\"," + (std::isnan(average[i]) ? "" : shortest(average[i])) + "," +
              csv_line(run.rows[i], kind, sources);
  };
  for (const Run& run : runs) {
    for (const Run& member : run.members) add(member);
    add(run);
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
  return std::any_of(rows.begin(), rows.end(), [](const LogRow& row) { return std::isfinite(row["loss"]); });
}

// The runs of the sources. Of several, those that have no loss yet are left out with a note, and so are folders of
// other things, which a pattern such as out/* finds. A file that plot wrote has several runs, with their names.
// given: the names are those of --name.
std::vector<Run> read_runs(const std::vector<std::string>& sources, const std::vector<std::string>& names, bool given,
                           bool flops) {
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
    if (sources.size() > 1 && io::is_folder(sources[i]) && !io::exists(log_file(sources[i]))) {
      leave_out(sources[i], "has no log.csv");
      continue;
    }
    std::vector<NamedLog> logs = read_logs(sources[i]);
    if (logs.empty()) leave_out(sources[i], "has no step yet");
    for (NamedLog& log : logs) {
      const std::string name = name_of(i, log.run, logs.size());
      if (has_loss(log.rows))
        runs.push_back(
            {.name = braid::detail::replace_invalid_utf8(preview(name, 200)),
             .rows = std::move(log.rows),
             .x = {},
             .members = {},
             .flops_per_token = flops && log.run.empty() ? training_flops_per_token(sources[i]) : not_measured});
      else
        leave_out(log.run.empty() ? sources[i] : name, "has no finite loss");
    }
  }
  check(!runs.empty(), ErrorKind::input, [&] {
    return str("nothing to plot: expected a run with at least one finite loss, found none in ", sources.size(),
               " runs");
  });
  return runs;
}

int run_plot(const Arguments& arguments) {
  const std::vector<std::string> sources = arguments.list("RUN");
  std::vector<std::string> names = arguments.list("name");
  check(names.empty() || names.size() == sources.size(), ErrorKind::setting,
        [&] { return str("--name must be given once per run: expected ", sources.size(), ", found ", names.size()); });
  for (const std::string& name : names)
    check(valid_utf8(name), ErrorKind::setting, [&] { return "bad --name '" + preview(name) + "': expected UTF-8"; });
  const bool given = !names.empty();
  if (!given) names = run_names(sources);
  std::vector<Run> runs = read_runs(sources, names, given, arguments.get("x") == "flops");
  size_t longest = 0;
  for (const Run& run : runs) longest = std::max(longest, run.rows.size());
  int64_t window = arguments.get_int("smooth");
  if (window == 0) window = std::clamp<int64_t>(static_cast<int64_t>(longest) / 50, 1, 200);

  fs::path out = arguments.get("out");
  if (out.empty()) {
    const bool folder = sources.size() == 1 && io::is_folder(sources[0]);
    out = folder ? fs::path(sources[0]) / "plots" / "run.svg" : fs::path("plot.svg");
  }
  const bool png = out.extension() == ".png";
  check(out.extension() == ".svg" || png, ErrorKind::setting, [&] {
    return "bad value for --out: expected a file name ending in .svg or .png, found '" + preview(out.string()) + "'";
  });
  const fs::path data = fs::path(out).replace_extension(".csv");
  for (const std::string& source : sources) {
    const fs::path log = log_file(source);
    check(!io::is_same(log, data), ErrorKind::setting, [&] {
      return "--out " + out.string() + " would write its numbers over the log " + log.string() +
             "; choose another name";
    });
  }
  Look look{.x = choose_x(arguments.get("x"), runs), .log = arguments.has("log-y"), .window = window};
  if (arguments.has("from")) look.from = arguments.get_float("from");
  if (arguments.has("y-max")) look.y_max = arguments.get_float("y-max");
  runs = group_runs(std::move(runs), arguments.list("group"));
  const std::string svg = chart(runs, look, arguments.line());
  if (out.has_parent_path()) io::make_folder(out.parent_path());
  io::write_file(data.string(), data_csv(runs, window));
  io::write_file(out.string(), png ? png_of(svg) : svg);

  const auto rows = legend(runs, window);
  for (const auto& row : rows) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c) {
      size_t widest = 0;
      for (const auto& other : rows) widest = std::max(widest, letters(other[c]));
      line += c ? "  " + std::string(widest - letters(row[c]), ' ') + row[c]
                : row[c] + std::string(widest - letters(row[c]), ' ');
    }
    std::printf("%s\n", line.c_str());
  }
  std::printf("wrote %s (chart) and %s (its numbers)\n", out.c_str(), data.c_str());
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
            .value = "FILE",
            .help = "the chart, .svg or .png; its numbers go to a .csv beside it [RUN/plots/run.svg, or plot.svg for "
                    "several runs]"},
           {.name = "x",
            .value = "WHAT",
            .help = "horizontal axis",
            .fallback = "step",
            .rule = models::one_of({"step", "tokens", "flops", "time"})},
           {.name = "group",
            .value = "PATTERN",
            .help = "draw the runs with such names (* is any text) as one line, their mean, in a band of their spread",
            .repeated = true},
           number_flag("from", "X", "where the horizontal axis begins, in its unit", "", 0, 1e18),
           {.name = "y-max",
            .value = "Y",
            .help = "top of the loss axis (default: what each run has behind its first twentieth)",
            .rule = models::above(0)},
           {.name = "log-y", .help = "logarithmic loss axis"},
           integer_flag("smooth", "STEPS", "memory of the moving average; 1 = none, 0 = by length", "0", 0, 1e6),
           {.name = "name", .value = "NAME", .help = "name of a run in the legend, one per run", .repeated = true}},
      .details =
          "The table has the loss of the last step, as braid train prints it, and the smoothed loss that the line "
          "shows.\n"
          "Of several runs, those without a step yet are left out.",
      .examples = {"braid plot out/run", "braid plot out/dcformer out/transformer -o compare.svg --x time",
                   "braid plot out/dc-* out/tf-* --group 'dc-*' --group 'tf-*' --from 100 -o seeds.png"},
      .run = run_plot,
  };
}

}  // namespace braid::apps
