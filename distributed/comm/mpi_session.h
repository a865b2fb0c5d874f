// The processes that mpirun or srun started, as a Communicator.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "braid/distributed/comm/communicator.h"

namespace braid::dist {

bool built_with_mpi();
// Whether a launcher started this process as one of several; from the environment, without calling MPI.
bool launched_by_mpi();
// Why a process that was launched as one of several finds itself alone, and what to do; "" when all is well.
std::string lost_launch(int world_size);
int launched_rank();      // the rank that the launcher gave this process, from the environment; 0 without a launcher
std::string host_name();  // of this machine

// Initialises MPI, and finalises it in the destructor. One per program, in main or below, never a static object: MPI
// must not be called from exit handlers. Error(setting) when the build has no MPI.
class MpiSession {
 public:
  MpiSession();
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;
  const Communicator& world() const { return world_; }
  // For an error that every rank meets by itself, such as a wrong setting. If all ranks call it within this time, rank
  // 0 gets the messages of all ranks (at most 4000 bytes each) and the others that of rank 0; the job may then end in
  // order. Otherwise nullopt.
  std::optional<std::vector<std::string>> gather_failures(const std::string& mine, double seconds) const;
  // Ends all processes of the job at once with this exit code: for an error that is not collective.
  [[noreturn]] static void abort(int exit_code);

 private:
  Communicator world_;
};

}  // namespace braid::dist
