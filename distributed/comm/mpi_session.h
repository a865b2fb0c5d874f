// MPI, when the library was built with it: the processes that mpirun or srun started, as a Communicator.
#pragma once
#include <memory>

#include "braid/distributed/comm/communicator.h"

namespace braid::dist {

bool built_with_mpi();
// Whether a launcher started this process as one of several (from its environment; asks nothing of MPI).
bool launched_as_one_of_many();

// Starts MPI and ends it in the destructor; one in a program, in main or below, never a static object: MPI is not
// called from exit handlers. Error(setting) when the build has no MPI.
class MpiSession {
 public:
  MpiSession();
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;
  const Communicator& world() const { return world_; }
  // Ends all processes of the job, now, with this exit code: for an error that other ranks do not know of.
  [[noreturn]] static void abort(int exit_code);

 private:
  Communicator world_;
};

}  // namespace braid::dist
