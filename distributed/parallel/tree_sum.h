// The sum of tensors over the samples of a step as one tree over their positions, whichever ranks and micro-batches
// hold which of them (tensor/strict.h). A node of level l adds two neighbours of level l - 1; where the samples end,
// the tree is cut off:
//
//   level 2    (0 1 2 3) ----------+
//   level 1    (0 1)     (2 3)     +  (4 5)        six samples:  ((0+1) + (2+3)) + (4+5)
//   level 0     0   1     2   3        4   5
#pragma once
#include <cstdint>
#include <vector>

#include "braid/distributed/sharding/partition.h"

namespace braid::dist {

// The samples [index 2^level, (index + 1) 2^level).
struct TreeNode {
  int level;
  int64_t index;
};

// The nodes of the tree that lie within these samples and in no larger such node, ascending.
std::vector<TreeNode> tree_nodes(const Range& samples);

class TreeSum {
 public:
  using Terms = std::vector<Tensor>;  // an empty handle: zero

  // In ascending order, without a gap. The terms are written to: they belong to the sum from here on.
  void add(TreeNode at, Terms terms);
  // The sums of tree_nodes() of what was added.
  const std::vector<Terms>& sums() const { return sums_; }
  // The sum over all samples of the step, which were all added. It uses the terms up.
  Terms total();

 private:
  void join_last_two();

  std::vector<TreeNode> nodes_;
  std::vector<Terms> sums_;  // of the nodes
};

}  // namespace braid::dist
