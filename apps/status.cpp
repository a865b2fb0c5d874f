// braid status: the state of runs in one line each, while they run and after.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "apps/cli/commands.h"
#include "apps/cli/config_file.h"
#include "apps/cli/text.h"
#include "apps/cli/version.h"
#include "apps/train/log/log.h"
#include "apps/train/run/run_status.h"
#include "braid/distributed/comm/mpi_session.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/path_status.h"
#include "braid/tensor/io/reader.h"

namespace braid::apps {
namespace fs = std::filesystem;
namespace {

constexpr const char* kNoRun = "no run";

struct RunView {
  std::string name;
  std::string state;   // running, finished, stopped, failed, killed, silent, unknown, no run
  std::string reason;  // of the state, or ""
  RunStatus status;
  std::optional<LogRow> last;
  double silence = 0;  // seconds since the run's files last changed
};

// Unix time of the last change of the file; 0 when there is none.
double changed(const fs::path& file) {
  const auto found = io::path_status(file);
  return found ? static_cast<double>(found->st_mtim.tv_sec) + 1e-9 * static_cast<double>(found->st_mtim.tv_nsec) : 0;
}

// train.steps of a run that an earlier version made.
int64_t steps_of(const fs::path& run) {
  const fs::path file = run / "config.resolved.toml";
  if (!io::exists(file)) return 0;
  for (const ConfigEntry& entry : parse_config(io::read_text_file(file.string(), 1 << 20), file.string()))
    if (const auto* steps = std::get_if<int64_t>(&entry.value); steps && entry.key == "train.steps") return *steps;
  return 0;
}

// A process that is said to run. Of another machine only its files tell; it is silent when they have not changed for
// far longer than a step takes.
void judge_running(RunView& view) {
  const RunStatus& s = view.status;
  if (s.host == dist::host_name()) {
    if (is_running(s)) return;
    view.state = "killed";
    view.reason = str("process ", s.pid, " is gone and left no message");
    return;
  }
  double step_time = 0;
  if (view.last && view.last->step > 0 && std::isfinite((*view.last)["elapsed_s"]))
    step_time = (*view.last)["elapsed_s"] / static_cast<double>(view.last->step);
  if (view.silence <= 120 + 20 * step_time) return;
  view.state = "silent";
  view.reason = str("process ", s.pid, " on host ", s.host, " may be gone");
}

bool is_run(const fs::path& run) { return io::exists(run / "log.csv") || io::exists(run / "status.json"); }

RunView view_of(const std::string& name) {
  const fs::path run = name;
  RunView view{.name = name};
  if (io::exists(run / "log.csv")) view.last = last_row(run);
  double newest = 0;
  for (const char* file : {"log.csv", "log.jsonl", "status.json"}) newest = std::max(newest, changed(run / file));
  view.silence = std::max(0.0, unix_time() - newest);
  const std::optional<RunStatus> status = read_status(run);
  if (status) {
    view.status = *status;
    view.state = status->state;
    view.reason = status->reason;
    if (view.state == "running") judge_running(view);
  } else {
    view.status.steps = steps_of(run);
    view.state = view.last && view.last->step == view.status.steps ? "finished" : "unknown";
    if (view.state == "unknown")
      view.reason = "it has no status.json: it failed at its start, or an earlier version of braid wrote it";
  }
  return view;
}

std::string fixed(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.4f", value);
  return text;
}

// The words of one run, which stand in columns.
std::vector<std::string> words_of(const RunView& v) {
  if (v.state == kNoRun) return {preview(v.name, 100), v.state, "", "", "", "", "", "", v.reason};
  const int64_t step = v.last ? v.last->step : 0;
  std::string progress = str("step ", step, "/", v.status.steps ? std::to_string(v.status.steps) : "?");
  if (v.status.steps >= step && step >= 0 && v.status.steps > 0)
    progress += str(" (", 100 * step / v.status.steps, "%)");
  const auto shown = [&](const char* label, LogName member) {
    return v.last && std::isfinite((*v.last)[member]) ? label + fixed((*v.last)[member]) : std::string();
  };
  std::string speed, remaining;
  const LogRow last = v.last.value_or(LogRow());
  if (std::isfinite(last["tok_per_s"])) speed = human(last["tok_per_s"], 3) + " tok/s";
  if (std::isfinite(last["pictures_per_s"])) speed = human(last["pictures_per_s"], 3) + " images/s";
  if (v.state == "running" && std::isfinite(last["eta_s"]))
    remaining = "ETA " + duration(std::max(0.0, last["eta_s"] - v.silence));
  else if (std::isfinite(last["elapsed_s"]))
    remaining = "took " + duration(last["elapsed_s"]);
  return {preview(v.name, 100),      v.state, progress,  shown("loss ", "loss"),
          shown("val ", "val_loss"), speed,   remaining, duration(v.silence) + " ago",
          preview(v.reason, 100)};
}

std::string table(const std::vector<RunView>& views) {
  std::vector<std::vector<std::string>> rows;
  for (const RunView& v : views) rows.push_back(words_of(v));
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c) {
      size_t width = 0;
      for (const auto& other : rows) width = std::max(width, other[c].size());
      if (width == 0) continue;
      line += (line.empty() ? "" : "  ") + row[c];
      line.append(width - row[c].size(), ' ');
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string json(const RunView& v) {
  nlohmann::ordered_json j = {{"run", v.name},
                              {"state", v.state},
                              {"reason", v.reason},
                              {"step", v.last ? v.last->step : 0},
                              {"steps", v.status.steps}};
  const auto add = [&](std::initializer_list<LogName> names) {
    for (const LogName name : names) {
      const double value = v.last.value_or(LogRow())[name];
      j[name.text()] = std::isfinite(value) ? nlohmann::json(value) : nlohmann::json();
    }
  };
  add({"loss", "val_loss", "task_acc", "tok_per_s"});
  if (v.last && std::isfinite((*v.last)["pictures"])) add({"val_top1", "pictures_per_s"});
  if (v.last && std::isfinite((*v.last)["accuracy"])) add({"accuracy", "margin"});
  add({"elapsed_s", "eta_s"});
  if (v.state != "running") j["eta_s"] = nlohmann::json();
  j["silence_s"] = v.silence;
  j["host"] = v.status.host;
  j["pid"] = v.status.pid;
  if (!v.status.init_from.empty()) j["init_from"] = v.status.init_from;
  j["started"] = v.status.started > 0 ? nlohmann::json(time_text(v.status.started)) : nlohmann::json();
  return j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

// Looks at every run once. Of several, what is no run folder is left out with a note, once, and what cannot be read,
// each time; one that is missing has a line that says so.
std::vector<RunView> look(std::vector<std::string>& names, bool several) {
  std::vector<RunView> views;
  std::erase_if(names, [&](const std::string& name) {
    check(several || io::exists(name), ErrorKind::input,
          [&] { return "cannot find " + name + ": expected a run folder; name the folder that run.out named"; });
    if (!several) io::check_readable(name);
    const bool other = several && io::exists(name) && !is_run(name);
    if (other) std::fprintf(stderr, "note: %s is no run folder: left out\n", preview(name).c_str());
    return other;
  });
  for (const std::string& name : names) {
    if (several && !io::exists(name)) {
      views.push_back({.name = name, .state = kNoRun, .reason = "there is no such folder"});
      continue;
    }
    check(is_run(name), ErrorKind::input, [&] {
      return "no run in " + name +
             ": expected a folder with log.csv or status.json; name the folder that run.out named";
    });
    try {
      views.push_back(view_of(name));
    } catch (const Error& e) {
      if (!several) throw;
      std::fprintf(stderr, "note: %s left out: %s\n", preview(name).c_str(), e.what());
    }
  }
  check(!views.empty(), ErrorKind::input, "none of these is a run folder that can be read");
  return views;
}

int run_status(const Arguments& arguments) {
  std::vector<std::string> names = arguments.list("RUN");
  const bool watching = arguments.has("watch"), terminal = ::isatty(STDOUT_FILENO) == 1, several = names.size() > 1;
  while (true) {
    const std::vector<RunView> views = look(names, several);
    std::string text;
    if (arguments.has("json"))
      for (const RunView& v : views) text += json(v);
    else
      text = table(views);
    if (watching && terminal && !arguments.has("json")) text = "\033[H\033[J" + time_text(unix_time()) + "\n" + text;
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
    const bool any = std::any_of(views.begin(), views.end(), [](const RunView& v) { return v.state == "running"; });
    if (!watching || !any) {
      std::string missing;
      for (const RunView& v : views)
        if (v.state == kNoRun) missing += (missing.empty() ? "" : ", ") + preview(v.name);
      if (missing.empty()) return 0;
      return report_error(static_cast<int>(ErrorKind::input),
                          "cannot find " + missing + ": expected run folders; name the folders that run.out named");
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(arguments.get_float("watch")));
  }
}

}  // namespace

Command status_command() {
  return {
      .name = "status",
      .summary = "show how far runs are, and how they ended",
      .positionals = {{.name = "RUN", .help = "run folder", .repeated = true}},
      .flags = {{.name = "json", .help = "one JSON object a run"},
                number_flag("watch", "SECONDS", "show it again after so many seconds, until no run is running", "", 0.1,
                            1e6)},
      .details =
          "The state is one of running, finished, stopped (by a signal; the same command resumes it), failed (with "
          "the\n"
          "beginning of the error; --json has all of it), killed (the process is gone without a message), silent (a\n"
          "process on another host whose files have not changed for long), unknown and no run (of several, one that "
          "is\n"
          "missing: code 3 at the end). \"3s ago\": when the files of "
          "the\n"
          "run last changed. Nothing is written or locked, so a run may be looked at at any time.",
      .examples = {"braid status out/demo", "braid status out/* --watch 10", "braid status out/demo --json"},
      .run = run_status,
  };
}

}  // namespace braid::apps
