#include "braid/distributed/parallel/tree_sum.h"

#include "braid/tensor/error.h"
#include "braid/tensor/kernels/backend.h"
#include "braid/tensor/kernels/pointwise_ops.h"

namespace braid::dist {

namespace {
// Whether the last two are the halves of one node.
bool last_are_siblings(const std::vector<TreeNode>& nodes) {
  if (nodes.size() < 2) return false;
  const TreeNode &left = nodes[nodes.size() - 2], &right = nodes.back();
  return left.level == right.level && left.index % 2 == 0 && right.index == left.index + 1;
}
void join(std::vector<TreeNode>& nodes) {
  nodes.pop_back();
  nodes.back() = {nodes.back().level + 1, nodes.back().index / 2};
}
}  // namespace

std::vector<TreeNode> tree_nodes(const Range& samples) {
  std::vector<TreeNode> nodes;
  for (int64_t i = samples.begin; i < samples.end; ++i) {
    nodes.push_back({0, i});
    while (last_are_siblings(nodes)) join(nodes);
  }
  return nodes;
}

void TreeSum::add(TreeNode at, Terms terms) {
  check(nodes_.empty() || (nodes_.back().index + 1) << nodes_.back().level == at.index << at.level, "tree_sum",
        "the terms of a step come in the order of its samples");
  nodes_.push_back(at);
  sums_.push_back(std::move(terms));
  while (last_are_siblings(nodes_)) {
    join_last_two();
    join(nodes_);
  }
}

void TreeSum::join_last_two() {
  Terms right = std::move(sums_.back());
  sums_.pop_back();
  Terms& left = sums_.back();
  for (size_t i = 0; i < left.size(); ++i) {
    if (left[i] && right[i])
      backend(left[i].device()).pointwise.binary(BinaryOp::add, left[i], right[i], left[i]);
    else if (right[i])
      left[i] = std::move(right[i]);
  }
}

TreeSum::Terms TreeSum::total() {
  while (sums_.size() > 1) join_last_two();
  nodes_.clear();
  Terms total = sums_.empty() ? Terms() : std::move(sums_[0]);
  sums_.clear();
  return total;
}

}  // namespace braid::dist
