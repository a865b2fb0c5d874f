// Who, where and when: version, commit, hosts with their ranks, devices, threads and the time of day. The head of a
// run, of its log.jsonl and of its config.resolved.toml; and the status file that braid status reads.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "braid/distributed/comm/communicator.h"

namespace braid::apps {

// The line of log.jsonl for a run whose steps are not captured as CUDA graphs from `step` on, with line end.
std::string capture_given_up_event(int64_t step, const std::string& reason);
// ... for a step that had to wait until the checkpoint of an earlier one was written (checkpoint.async).
std::string checkpoint_waited_event(int64_t step, int64_t earlier, double seconds);

class RunRecord {
 public:
  // Collective. `command`: as it was typed.
  RunRecord(const dist::Communicator& world, Device device, std::string command);

  std::vector<std::string> head() const;  // lines for the terminal
  std::string comments() const;           // the same as comment lines of a TOML file
  // The line of log.jsonl for a start after `step` steps, with line end.
  std::string start_event(int64_t step) const;

  // Runs work and gives its exit code; status.json says "running" meanwhile and then how it ended. Rank 0 writes it; a
  // rank that ends by an error of its own writes that, because rank 0 will not come to it.
  int run(const std::filesystem::path& folder, int64_t steps, const std::string& init_from,
          const std::function<int()>& work) const;

 private:
  struct RankPlace {  // of a rank
    std::string host, device;
    int64_t threads, pid;
  };
  struct Host {
    std::string name, ranks, devices, threads;  // "0-3", "cuda:0 cuda:1", "2"
  };
  std::vector<Host> hosts() const;

  int rank_;
  std::string who_;  // "rank 2 on host a: ", "" with one process
  std::string command_;
  double started_;
  std::vector<RankPlace> places_;
};

}  // namespace braid::apps
