// The processes of a command: one, or those that mpirun or srun started.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "apps/train/config/train_config.h"
#include "braid/distributed/comm/mpi_session.h"
#include "braid/distributed/comm/process_mesh.h"

namespace braid::apps {

class Job {
 public:
  // Starts MPI when a launcher started this process as one of many. Then only rank 0 keeps its standard output. Warns
  // where the launcher's environment speaks of several processes and MPI finds one.
  Job();
  explicit Job(dist::Communicator world) : world_(std::move(world)) {}  // for train(): run() ends jobs of MPI
  const dist::Communicator& world() const { return world_; }

  // Runs body and gives its exit code. With one process errors pass through. With many: rank 0 prints an error of all
  // ranks (CollectiveError, or a wrong setting or input that each finds by itself) and all end in order with its code;
  // an error of one rank is printed by that rank, with its host, and ends the job.
  int run(const std::function<int()>& body);

 private:
  std::optional<int> end_together(int code, const std::string& message);

  std::unique_ptr<dist::MpiSession> session_;
  dist::Communicator world_;
};

// Work of rank 0 alone. When it fails there, all ranks end with its error.
void at_root(const dist::Communicator& world, const std::function<void()>& work);

// The ranks on the machine of this one. Collective.
int64_t processes_here(const dist::Communicator& world);

// The mesh of the settings parallel.*. Collective. Error(setting) that names the command where there are too few
// processes.
dist::ProcessMesh mesh_from_config(const TrainConfig::Parallel& parallel, const dist::Communicator& world,
                                   const std::string& command);

// The checksum of the program file that this process runs.
std::string program_fingerprint();

}  // namespace braid::apps
