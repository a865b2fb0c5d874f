#include <cstdlib>
#include <string>

#include "braid/distributed/comm/mpi_session.h"

namespace braid::dist {

// Open MPI's mpirun, MPICH's and Intel's hydra, and srun set the number of processes in the environment.
bool launched_by_mpi() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"}) {
    const char* value = std::getenv(name);
    if (!value) continue;
    // Slurm sets its variable for the batch script too, which is one process.
    if (std::string(name) == "SLURM_NTASKS" && !std::getenv("SLURM_STEP_ID")) continue;
    return std::atoi(value) > 1;
  }
  return false;
}

}  // namespace braid::dist
