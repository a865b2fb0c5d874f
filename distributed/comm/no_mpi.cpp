// The build without MPI: one process.
#include <cstdlib>

#include "braid/distributed/comm/mpi_session.h"

namespace braid::dist {

bool built_with_mpi() { return false; }

MpiSession::MpiSession() {
  fail(ErrorKind::setting,
       "this build has no MPI: install libopenmpi-dev and openmpi-bin and configure again, or run one process");
}
MpiSession::~MpiSession() = default;
std::optional<std::vector<std::string>> MpiSession::gather_failures(const std::string&, double) const { return {}; }
void MpiSession::abort(int exit_code) { std::_Exit(exit_code); }

}  // namespace braid::dist
