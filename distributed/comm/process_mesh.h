// The processes of a job as a mesh of data x context x tensor ranks; tensor ranks are adjacent.
//
//   data     different samples of a batch
//   context  different positions of the same samples
//   tensor   different heads, hidden units and vocabulary rows; between such layers different positions
//
//   world rank = (data rank * context size + context rank) * tensor size + tensor rank
#pragma once
#include "braid/distributed/comm/communicator.h"

namespace braid::dist {

struct ProcessMesh {
  Communicator world, data, context, tensor;
  Communicator replica_group;  // all ranks with this tensor rank: they hold the same shards of the parameters
};

// At most one size may be 0: it becomes the number of processes divided by the other two. Error(setting) when the
// product is not the number of processes.
void complete_mesh_sizes(int64_t processes, int64_t& data, int64_t& context, int64_t& tensor);
// A mesh of these sizes, completed. Collective.
ProcessMesh make_mesh(const Communicator& world, int64_t data, int64_t context, int64_t tensor);

}  // namespace braid::dist
