// Decisions that all ranks take alike.
#pragma once
#include <functional>

#include "braid/distributed/comm/communicator.h"

namespace braid::dist {

// An error that every rank of the job throws at the same place: one of them may print it, all end in order.
class CollectiveError : public Error {
 public:
  using Error::Error;
};

// Runs f on every rank and waits for all. When it throws an Error anywhere, all ranks throw that of the lowest rank it
// happened on, as CollectiveError (with one process: the error itself). f must not call collectives of `comm`.
void run_on_all_ranks(const Communicator& comm, const std::function<void()>& f);

// All ranks must be the same in some respects before they begin. CollectiveError(process) names the first rank that
// differs from rank 0, and in what. Names and values without line ends.
struct RankProperty {
  std::string what, value;
};
void check_ranks_agree(const Communicator& comm, const std::vector<RankProperty>& features);

}  // namespace braid::dist
