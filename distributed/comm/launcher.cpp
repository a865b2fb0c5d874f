#include <unistd.h>

#include <array>
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

int launched_rank() {
  if (!launched_by_mpi()) return 0;
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"}) {
    if (const char* value = std::getenv(name)) return std::atoi(value);
  }
  return 0;
}

std::string lost_launch(int world_size) {
  if (world_size > 1) return "";
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"}) {
    const char* value = std::getenv(name);
    if (!value) continue;
    if (std::atoi(value) <= 1) return "";
    const bool slurm = std::string(name) == "SLURM_NTASKS";
    const bool step = !slurm || std::getenv("SLURM_STEP_ID");
    return str(name, "=", value, ", but this process is alone",
               step ? ": every process of the job would do all of the work by itself. " : ". ",
               !built_with_mpi() ? "This build has no MPI: install libopenmpi-dev and openmpi-bin and configure again"
               : slurm           ? "Start the processes with srun --mpi=pmix (srun --mpi=list shows what there is)"
                                 : "Start them with the mpirun of the MPI that Braid was built with",
               slurm ? ", or ask for one task (--ntasks=1)" : "");
  }
  return "";
}

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name[0] ? name.data() : "unknown";
}

}  // namespace braid::dist
