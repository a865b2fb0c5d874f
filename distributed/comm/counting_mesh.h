// One rank of a mesh whose other ranks do not exist: collectives count what they would send, and send nothing. For the
// cost of a step on any number of processes (models/cost/trace.h).
#pragma once
#include "braid/distributed/comm/process_mesh.h"

namespace braid::dist {

// Sizes of a mesh, and the place of a rank in it.
struct MeshShape {
  int64_t data = 1, context = 1, tensor = 1;
  int64_t ranks() const { return data * context * tensor; }
};
struct MeshCoord {
  int64_t data = 0, context = 0, tensor = 0;
};

// A few bytes that arrive from a rank are those that were last sent to it, as if all ranks held the same values; more
// are not written.
ProcessMesh counting_mesh(const MeshShape& shape, const MeshCoord& rank);

}  // namespace braid::dist
