// How the processes of a job share the work: a box of data x context x tensor ranks, tensor ranks next to each other.
//
//   data     different samples of a batch
//   context  different positions of the same samples
//   tensor   different heads, FFN columns and words of the vocabulary, and the rows between such layers
//
//   world rank = (data rank * context size + context rank) * tensor size + tensor rank
#pragma once
#include "braid/distributed/comm/communicator.h"

namespace braid::dist {

struct ProcessMesh {
  Communicator world, data, context, tensor;
  Communicator replicas;  // all ranks with our tensor rank: they hold the same pieces of weights
};

// Sizes may be 0: what the others leave over (at most one of them). Error(setting) when their product is not the number
// of processes. Collective.
ProcessMesh make_mesh(const Communicator& world, int64_t data, int64_t context, int64_t tensor);

}  // namespace braid::dist
