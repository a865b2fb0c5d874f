#include "braid/autograd/detail/graph_view.h"

#include <map>

#include "braid/autograd/detail/node.h"

namespace braid::detail {

GraphView view_graph(const char* op, const Tensor& y, const std::vector<NamedTensor>& names) {
  check(requires_grad(y), op, "the tensor has no history: nothing it depends on collects a gradient");
  std::map<const Node*, std::string> leaves;
  for (const NamedTensor& leaf : names) {
    if (requires_grad(leaf.value)) leaves[leaf.value.node().get()] = leaf.name;
  }
  GraphView view;
  std::map<const Node*, size_t> places;
  std::vector<const Node*> nodes;
  const auto place_of = [&](const Node* node) {
    const auto [at, added] = places.try_emplace(node, nodes.size());
    if (added) {
      const auto name = leaves.find(node);
      nodes.push_back(node);
      view.boxes.push_back({name != leaves.end() ? name->second : node->op, node->is_leaf()});
    }
    return at->second;
  };
  place_of(y.node().get());
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const Node::Input& input : nodes[i]->inputs) {
      if (input.node) view.arrows.push_back({place_of(input.node.get()), i, str(input.shape)});
    }
  }
  return view;
}

}  // namespace braid::detail
