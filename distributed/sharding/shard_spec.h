#pragma once
#include "braid/distributed/sharding/partition.h"

namespace braid::dist {

// How a whole parameter is dealt out over the tensor ranks: along one axis.
struct Shard {
  int axis = 0;
  Partition parts;
};

}  // namespace braid::dist
