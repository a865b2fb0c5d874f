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
  int64_t since = 0;      // process_start(pid); 0: not known
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
// When the process was started, in clock ticks since boot. 0: not known; -1: it has ended, which its parent has not
// seen.
int64_t process_start(int64_t pid);
// Whether this machine still has the process: one that was started later got its number again.
bool is_running(const RunStatus& status);

}  // namespace braid::apps
