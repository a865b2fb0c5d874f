// Decisions that all ranks take alike.
#pragma once
#include <functional>

#include "distributed/communicator.h"

namespace braid::dist {

// An error that every rank of the job throws at the same place: one of them may print it, all end in order.
class AgreedError : public Error {
 public:
  using Error::Error;
};

// Runs f on every rank and waits for all. When it throws an Error anywhere, all ranks throw that of the lowest rank it
// happened on, as AgreedError (with one process: the error itself). f must not call collectives of `comm`.
void agree(const Communicator& comm, const std::function<void()>& f);

// All ranks must be the same in some respects before they begin. AgreedError(process) names the first rank that differs
// from rank 0, and in what. Names and values without line ends.
struct Feature {
  std::string what, value;
};
void handshake(const Communicator& comm, const std::vector<Feature>& features);

}  // namespace braid::dist
