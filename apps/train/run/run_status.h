// status.json of a run folder: which process trains the run, and how the last one ended. The steps are in log.csv.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace braid::apps {

struct RunStatus {
  std::string state;      // "running", "finished", "stopped" or "failed", as the process wrote it
  std::string reason;     // of stopped and failed
  std::string host;       // of rank 0
  int64_t pid = 0;        // of rank 0
  int64_t steps = 0;      // train.steps
  std::string init_from;  // train.init_from
  int64_t processes = 0;  // 0: not known, of an earlier version
  double started = 0;     // seconds since 1970
  double written = 0;     // when the state began
};

// Error(output).
void write_status(const std::filesystem::path& run_folder, const RunStatus& status);
// None when the folder has no such file. Error(input) when it is damaged.
std::optional<RunStatus> read_status(const std::filesystem::path& run_folder);

}  // namespace braid::apps
