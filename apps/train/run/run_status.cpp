#include "apps/train/run/run_status.h"

#include <nlohmann/json.hpp>

#include "braid/tensor/base/utf8.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/io/json.h"
#include "braid/tensor/io/path_status.h"

namespace braid::apps {
namespace fs = std::filesystem;

static std::string status_file(const fs::path& run_folder) { return (run_folder / "status.json").string(); }

void write_status(const fs::path& run_folder, const RunStatus& s) {
  const nlohmann::ordered_json j = {{"state", s.state},        {"reason", detail::replace_invalid_utf8(s.reason)},
                                    {"host", s.host},          {"pid", s.pid},
                                    {"steps", s.steps},        {"processes", s.processes},
                                    {"started", s.started},    {"written", s.written},
                                    {"init_from", s.init_from}};
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
                     .steps = j.at("steps").get<int64_t>(),
                     .init_from = j.value("init_from", ""),
                     .processes = j.value("processes", int64_t{0}),
                     .started = j.at("started").get<double>(),
                     .written = j.at("written").get<double>()};
  } catch (const nlohmann::json::exception& e) {
    fail(ErrorKind::input, "cannot read " + path + ": " + e.what() + "; remove the file, the next run writes it again");
  }
}

}  // namespace braid::apps
