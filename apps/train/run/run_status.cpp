#include "apps/train/run/run_status.h"

#include <cerrno>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>

#include "braid/tensor/base/strings.h"
#include "braid/tensor/base/utf8.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/io/json.h"
#include "braid/tensor/io/path_status.h"

namespace braid::apps {
namespace fs = std::filesystem;

static std::string status_file(const fs::path& run_folder) { return (run_folder / "status.json").string(); }

void write_status(const fs::path& run_folder, const RunStatus& s) {
  const nlohmann::ordered_json j = {{"state", s.state},         {"reason", detail::replace_invalid_utf8(s.reason)},
                                    {"host", s.host},           {"pid", s.pid},
                                    {"steps", s.steps},         {"processes", s.processes},
                                    {"started", s.started},     {"written", s.written},
                                    {"init_from", s.init_from}, {"since", s.since}};
  io::write_file(status_file(run_folder), j.dump(2) + "\n");
}

std::optional<RunStatus> read_status(const fs::path& run_folder) {
  const std::string path = status_file(run_folder);
  if (!io::exists(path)) return {};
  const nlohmann::json j = io::read_json_file(path, 1 << 20);
  try {
    return RunStatus{.state = j.at("state").get<std::string>(),
                     .reason = j.at("reason").get<std::string>(),
                     .host = j.at("host").get<std::string>(),
                     .pid = j.at("pid").get<int64_t>(),
                     .since = j.value("since", int64_t{0}),
                     .steps = j.at("steps").get<int64_t>(),
                     .init_from = j.value("init_from", ""),
                     .processes = j.value("processes", int64_t{0}),
                     .started = j.at("started").get<double>(),
                     .written = j.at("written").get<double>()};
  } catch (const nlohmann::json::exception& e) {
    fail(ErrorKind::input, "cannot read " + path + ": " + e.what() + "; remove the file, the next run writes it again");
  }
}

int64_t process_start(int64_t pid) {
  std::ifstream file(str("/proc/", pid, "/stat"));
  std::string text((std::istreambuf_iterator<char>(file)), {});
  text.erase(0, text.rfind(')') + 1);                                // number and name, which may have spaces
  const std::vector<std::string> fields = detail::split(text, ' ');  // "", the third one, ...
  if (fields.size() <= 20) return 0;
  return fields[1] == "Z" ? -1 : detail::parse_int(fields[20]).value_or(0);
}

bool is_running(const RunStatus& status) {
  if (::kill(static_cast<pid_t>(status.pid), 0) != 0 && errno != EPERM) return false;
  const int64_t since = process_start(status.pid);
  return since == 0 || since == status.since || (since > 0 && status.since == 0);
}

}  // namespace braid::apps
