// braid plot: the logs of one or several runs as one chart. Loss on top, what explains it below.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <set>

#include "apps/chart/chart_files.h"
#include "apps/chart/group.h"
#include "apps/chart/legend.h"
#include "apps/chart/pdf.h"
#include "apps/chart/rasterize.h"
#include "apps/chart/run_chart.h"
#include "apps/chart/svg.h"
#include "apps/chart/trace_chart.h"
#include "apps/cli/commands.h"
#include "apps/cli/text.h"
#include "apps/train/plan/run_flops.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/io/path_status.h"

namespace braid::apps {
namespace fs = std::filesystem;
namespace {

RunAxis choose_x(const std::string& column, std::vector<Run>& runs) {
  RunAxis axis{.name = "step"};
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

// "demo" for out/demo and out/demo/log.csv; with names of parents where several folders would be called the same.
std::vector<std::string> run_names(const std::vector<std::string>& sources) {
  std::vector<fs::path> folders;
  for (const std::string& source : sources) {
    std::error_code ignored;
    fs::path path = fs::absolute(source, ignored).lexically_normal();
    if (!path.has_filename()) path = path.parent_path();
    folders.push_back(path.filename() == "log.csv" ? path.parent_path() : path);
  }
  const auto end_of = [](const fs::path& folder, int64_t parts) {
    fs::path end;
    for (auto at = std::prev(folder.end(), std::min(parts, std::distance(folder.begin(), folder.end())));
         at != folder.end(); ++at)
      end /= *at;
    return end;
  };
  std::vector<std::string> names;
  for (const fs::path& folder : folders) {
    int64_t parts = 1;
    const auto same = [&](const fs::path& other) {
      return other != folder && end_of(other, parts) == end_of(folder, parts);
    };
    while (std::ranges::any_of(folders, same)) ++parts;
    names.push_back(end_of(folder, parts).string());
  }
  return names;
}

// The chart and its numbers tell runs apart by their names.
void number_equal_names(std::vector<Run>& runs) {
  std::set<std::string> names;
  for (Run& run : runs) {
    const std::string name = run.name;
    for (int n = 2; !names.insert(run.name).second; ++n) run.name = str(name, " (", n, ")");
  }
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
  number_equal_names(runs);
  return runs;
}

int plot_trace(const Arguments& arguments) {
  const std::vector<std::string> runs = arguments.list("RUN");
  check(runs.size() == 1 && io::is_folder(runs[0]), ErrorKind::setting,
        "--trace draws a step of one run: expected one run folder");
  for (const char* flag : {"x", "group", "from", "y-max", "log-y", "smooth", "name"})
    check(!arguments.has(flag), ErrorKind::setting, [&] { return str("--", flag, " is for curves: leave it out"); });
  fs::path out = arguments.get("out");
  if (out.empty()) out = fs::path(runs[0]) / "plots" / "trace.svg";
  check(out.extension() == ".svg", ErrorKind::setting, [&] {
    return "bad value for --out: with --trace expected a file name ending in .svg, found '" + preview(out.string()) +
           "'";
  });
  if (out.has_parent_path()) io::make_folder(out.parent_path());
  write_chart(out.parent_path() / out.stem(), trace_chart(runs[0], arguments.line()), "", medium_of(arguments));
  std::printf("wrote %s\n", out.c_str());
  return 0;
}

int run_plot(const Arguments& arguments) {
  if (arguments.has("trace")) return plot_trace(arguments);
  const std::vector<std::string> sources = arguments.list("RUN");
  std::vector<std::string> names = arguments.list("name");
  check(names.empty() || names.size() == sources.size(), ErrorKind::setting,
        [&] { return str("--name must be given once per run: expected ", sources.size(), ", found ", names.size()); });
  for (const std::string& name : names)
    check(valid_utf8(name), ErrorKind::setting, [&] { return "bad --name '" + preview(name) + "': expected UTF-8"; });
  const bool given = !names.empty();
  if (!given) names = run_names(sources);
  std::vector<Run> runs = read_runs(sources, names, given, arguments.get("x") == "flops");
  int64_t window = arguments.get_int("smooth");
  if (window == 0) window = usual_window(runs);

  fs::path out = arguments.get("out");
  if (out.empty()) {
    const bool folder = sources.size() == 1 && io::is_folder(sources[0]);
    out = folder ? fs::path(sources[0]) / "plots" / "run.svg" : fs::path("plot.svg");
  }
  const Medium medium = medium_of(arguments);
  const std::string kind = out.extension().string();
  check(kind == ".svg" || kind == ".pdf" || kind == ".png", ErrorKind::setting, [&] {
    return "bad value for --out: expected a file name ending in .svg, .pdf or .png, found '" + preview(out.string()) +
           "'";
  });
  const fs::path data = fs::path(out).replace_extension(".csv");
  for (const std::string& source : sources) {
    const fs::path log = log_file(source);
    check(!io::is_same(log, data), ErrorKind::setting, [&] {
      return "--out " + out.string() + " would write its numbers over the log " + log.string() +
             "; choose another name";
    });
  }
  RunLook look{.x = choose_x(arguments.get("x"), runs), .window = window, .command = arguments.line()};
  look.log = arguments.has("log-y");
  if (arguments.has("from")) look.from = arguments.get_float("from");
  if (arguments.has("y-max")) look.y_max = arguments.get_float("y-max");
  runs = group_runs(std::move(runs), arguments.list("group"));
  const Drawing drawing = run_chart(runs, look)(medium);
  std::vector<std::string> written, charts;
  for (const std::string format : {".svg", ".pdf", ".png"}) {
    if (format != kind && !(medium.paper() && format != ".png")) continue;
    written.push_back(fs::path(out).replace_extension(format).string());
    charts.push_back(format == ".pdf" ? pdf_of(drawing) : format == ".png" ? png_of(svg_of(drawing)) : svg_of(drawing));
  }
  if (out.has_parent_path()) io::make_folder(out.parent_path());
  io::write_file(data.string(), data_csv(runs, window));
  for (size_t i = 0; i < written.size(); ++i) io::write_file(written[i], charts[i]);

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
  std::printf("wrote %s (chart) and %s (its numbers)\n", join(written, ", ").c_str(), data.c_str());
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
            .help = "the chart, .svg, .pdf or .png; its numbers go to a .csv beside it [RUN/plots/run.svg, or plot.svg "
                    "for several runs]"},
           medium_flag(),
           {.name = "trace", .help = "draw the timeline of a step over its ranks, which log.trace=true has written"},
           value_flag("x", "WHAT", "horizontal axis", "step", models::one_of({"step", "tokens", "flops", "time"})),
           {.name = "group",
            .value = "PATTERN",
            .help = "draw the runs with such names (* is any text) as one line, their mean, in a band of their spread",
            .repeated = true},
           number_flag("from", "X", "where the horizontal axis begins, in its unit", "", 0, 1e18),
           value_flag("y-max", "Y", "top of the loss axis (default: what each run has behind its first twentieth)", "",
                      models::above(0)),
           {.name = "log-y", .help = "logarithmic loss axis"},
           integer_flag("smooth", "STEPS", "memory of the moving average; 1 = none, 0 = by length", "0", 0, 1e6),
           {.name = "name", .value = "NAME", .help = "name of a run in the legend, one per run", .repeated = true}},
      .details =
          "The table has the loss of the last step, as braid train prints it, and the smoothed loss that the line "
          "shows.\n"
          "Of several runs, those without a step yet are left out. A chart for paper has the names of the runs\n"
          "instead of the table, and no learning rate, gradient norm and throughput.",
      .examples = {"braid plot out/run", "braid plot out/dcformer out/transformer -o compare.svg --x time",
                   "braid plot out/dc-* out/tf-* --group 'dc-*' --group 'tf-*' --from 100 -o seeds.png",
                   "braid plot out/dcformer out/transformer --for paper -o figure-2.pdf", "braid plot out/run --trace"},
      .run = run_plot,
  };
}

}  // namespace braid::apps
