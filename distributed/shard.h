#pragma once
#include "distributed/parts.h"

namespace braid::dist {

// How a whole parameter is dealt out over the tensor ranks: along one axis.
struct Shard {
  int axis = 0;
  Parts parts;
};

}  // namespace braid::dist
