#pragma once
#include "braid/distributed/sharding/partition.h"

namespace braid::dist {

// How a parameter is sharded over the tensor ranks: along one axis.
struct Shard {
  int axis = 0;
  Partition partition;  // of the axis
};

}  // namespace braid::dist
