// Errors and decisions that all ranks of a job share.
#pragma once
#include <functional>

#include "braid/distributed/comm/communicator.h"

namespace braid::dist {

// An error that every rank of the job throws at the same place, so that one of them can print it and all can end.
class CollectiveError : public Error {
 public:
  using Error::Error;
};

// Runs f on every rank and waits for all. When f throws on some ranks, all ranks throw the Error of the lowest of them
// as CollectiveError (with one process: the error itself). f must not call collectives of `comm`.
void run_on_all_ranks(const Communicator& comm, const std::function<void()>& f);

// A property that must be the same on all ranks before they begin; name and value without line breaks.
struct RankProperty {
  std::string name, value;
};
// Collective. CollectiveError(process) names the first rank that differs from rank 0, and the property.
void check_ranks_agree(const Communicator& comm, const std::vector<RankProperty>& properties);

}  // namespace braid::dist
