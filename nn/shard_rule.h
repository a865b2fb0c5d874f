#pragma once
#include <cstdint>

namespace braid::nn {

// How a parameter is sharded over the ranks that share its layer (tensor parallelism): the axis holds `repeats` blocks
// one after the other (queries | keys | values), each of `units` units of equal size. Ranks get complete units. Blocks
// after the first may have fewer units, `grouped_units` (key/value heads that several query heads share), of which a
// rank may get none, and smaller ones (`joined`: a unit of queries is then all that make one head).
struct ShardRule {
  int axis = -1;          // -1: every rank holds the complete parameter
  const char* unit = "";  // in messages: "head", "hidden unit"
  int64_t units = 0;      // 0: it cannot be sharded, an error over several ranks
  int repeats = 1;
  int64_t grouped_units = 0;  // 0: as many as `units`
  int64_t joined = 1;         // a unit of the first block is this many times as large as one of the others
  bool if_divisible = false;  // where the number of ranks does not divide `units`, as axis = -1
  int scores = 0;             // so many of the first blocks make scores, unit by unit: queries and keys
};

}  // namespace braid::nn
