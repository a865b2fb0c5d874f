// The processes that mpirun or srun started, as a Communicator.
#pragma once
#include <memory>

#include "braid/distributed/comm/communicator.h"

namespace braid::dist {

bool built_with_mpi();
// Whether a launcher started this process as one of several; from the environment, without calling MPI.
bool launched_by_mpi();

// Initialises MPI, and finalises it in the destructor. One per program, in main or below, never a static object: MPI
// must not be called from exit handlers. Error(setting) when the build has no MPI.
class MpiSession {
 public:
  MpiSession();
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;
  const Communicator& world() const { return world_; }
  // Ends all processes of the job at once with this exit code: for an error that is not collective.
  [[noreturn]] static void abort(int exit_code);

 private:
  Communicator world_;
};

}  // namespace braid::dist
