#include "apps/train/run/run_record.h"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/cli/command.h"
#include "apps/cli/signals.h"
#include "apps/cli/text.h"
#include "apps/cli/version.h"
#include "apps/train/run/run_status.h"
#include "braid/distributed/comm/mpi_session.h"
#include "braid/distributed/job/run_on_all_ranks.h"
#include "braid/tensor/parallel.h"

namespace braid::apps {
namespace {

std::string counted(size_t count, const std::string& noun) {
  return str(count, " ", noun, count == 1 ? "" : noun.ends_with("s") ? "es" : "s");
}

// 0 1 2 5 as "0-2, 5".
std::string ranges(const std::vector<size_t>& ranks) {
  std::string text;
  for (size_t i = 0; i < ranks.size();) {
    size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    text += str(text.empty() ? "" : ", ", ranks[i]);
    if (end > i + 1) text += str("-", ranks[end - 1]);
    i = end;
  }
  return text;
}

// The values in their order, each once.
std::string distinct(const std::vector<std::string>& values) {
  std::vector<std::string> found;
  for (const std::string& v : values)
    if (std::find(found.begin(), found.end(), v) == found.end()) found.push_back(v);
  return join(found, " ");
}

// Whether another rank of this job has written why it fails: what the later ones run into follows from that.
bool failed_already(const std::filesystem::path& folder, const RunStatus& mine) {
  try {
    const std::optional<RunStatus> now = read_status(folder);
    return now && now->state == "failed" && now->host == mine.host && now->pid == mine.pid;
  } catch (const Error&) {  // damaged: written anew
    return false;
  }
}

}  // namespace

RunRecord::RunRecord(const dist::Communicator& world, Device device, std::string command)
    : rank_(world.rank()),
      who_(world.size() > 1 ? world.rank_name(world.rank()) + ": " : ""),
      command_(std::move(command)),
      started_(unix_time()) {
  const std::string mine = str(dist::host_name(), "\n", device, "\n", threads(), "\n", ::getpid());
  for (const std::string& text : world.gather_text(mine)) {
    const std::vector<std::string> parts = split(text, '\n');
    places_.push_back(
        {parts.at(0), parts.at(1), parse_int(parts.at(2)).value_or(0), parse_int(parts.at(3)).value_or(0)});
  }
}

std::vector<RunRecord::Host> RunRecord::hosts() const {
  std::vector<std::string> names;
  for (const RankPlace& p : places_)
    if (std::find(names.begin(), names.end(), p.host) == names.end()) names.push_back(p.host);
  std::vector<Host> result;
  for (const std::string& name : names) {
    std::vector<size_t> ranks;
    std::vector<std::string> devices, threads;
    for (size_t r = 0; r < places_.size(); ++r) {
      if (places_[r].host != name) continue;
      ranks.push_back(r);
      devices.push_back(places_[r].device);
      threads.push_back(std::to_string(places_[r].threads));
    }
    result.push_back({name, ranges(ranks), distinct(devices), distinct(threads)});
  }
  return result;
}

std::vector<std::string> RunRecord::head() const {
  const std::vector<Host> all = hosts();
  std::vector<std::string> lines = {version_line()};
  const auto place = [](const Host& h) { return h.devices + ", threads " + h.threads; };
  if (places_.size() == 1) {
    lines.push_back(str("started ", time_text(started_), " on host ", all[0].name, ", process ", places_[0].pid, ", ",
                        place(all[0])));
    return lines;
  }
  lines.push_back("started " + time_text(started_) + " as " + counted(places_.size(), "process") + " on " +
                  counted(all.size(), "host") + ":");
  for (const Host& h : all) lines.push_back("  " + h.name + ": ranks " + h.ranks + ", " + place(h));
  return lines;
}

std::string RunRecord::comments() const {
  std::string text;
  for (const std::string& line : head()) text += "# " + line + "\n";
  return text + "# " + preview(command_, 2000) + "\n";
}

std::string RunRecord::start_event(int64_t step) const {
  nlohmann::ordered_json j = {{"step", step},           {"event", "start"},         {"time", time_text(started_)},
                              {"version", version()},   {"commit", build_commit()}, {"backends", backends()},
                              {"compiler", compiler()}, {"kernels", kernels()},     {"command", command_}};
  for (const Host& h : hosts())
    j["hosts"].push_back({{"host", h.name}, {"ranks", h.ranks}, {"devices", h.devices}, {"threads", h.threads}});
  return j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string capture_given_up_event(int64_t step, const std::string& reason) {
  const nlohmann::ordered_json j = {{"step", step}, {"event", "capture_given_up"}, {"reason", reason}};
  return j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string checkpoint_waited_event(int64_t step, int64_t earlier, double seconds) {
  const nlohmann::ordered_json j = {
      {"step", step}, {"event", "checkpoint_waited"}, {"checkpoint", earlier}, {"seconds", seconds}};
  return j.dump() + "\n";
}

int RunRecord::run(const std::filesystem::path& folder, int64_t steps, const std::string& init_from,
                   const std::function<int()>& work) const {
  RunStatus status{
      .state = "running", .host = places_[0].host, .pid = places_[0].pid, .steps = steps, .init_from = init_from};
  status.processes = std::ssize(places_);
  status.started = status.written = started_;
  if (rank_ == 0) status.since = process_start(status.pid), write_status(folder, status);
  const auto end = [&](const std::string& state, const std::string& reason) {
    status.state = state;
    status.reason = reason;
    status.written = unix_time();
    try {
      const std::optional<RunStatus> there = read_status(folder);  // of another run, if the folder was removed
      if (!there || (there->pid == status.pid && there->host == status.host)) write_status(folder, status);
    } catch (const Error&) {  // how the run ended is what counts, and it is printed
    }
  };
  try {
    const int code = work();
    if (rank_ != 0) return code;
    code == exit_stopped ? end("stopped", str("by ", StopSignals::cause())) : end("finished", "");
    return code;
  } catch (const dist::CollectiveError& e) {
    if (rank_ == 0) end("failed", e.what());
    throw;
  } catch (const std::exception& e) {
    if (!failed_already(folder, status)) end("failed", who_ + e.what());
    throw;
  }
}

}  // namespace braid::apps
