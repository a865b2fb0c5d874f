#include "braid/autograd/graph_dot.h"

#include <map>

#include "braid/autograd/detail/node.h"
#include "braid/tensor/io/atomic_file.h"

namespace braid {

namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

// Ids in the order of a walk from the result, so that equal expressions give equal text.
struct Walk {
  std::map<const Node*, size_t> ids;
  std::vector<const Node*> nodes;

  std::string id(const Node* node) const { return "n" + std::to_string(ids.at(node)); }
  void add(const Node* node) {
    if (ids.try_emplace(node, nodes.size()).second) nodes.push_back(node);
  }
};

}  // namespace

std::string dot(const Tensor& y, const std::vector<NamedTensor>& names) {
  check(requires_grad(y), "dot",
        [] { return std::string("the tensor has no history: nothing it depends on collects a gradient"); });
  std::map<const Node*, std::string> leaves;
  for (const NamedTensor& leaf : names) {
    if (requires_grad(leaf.value)) leaves[leaf.value.node().get()] = leaf.name;
  }
  Walk walk;
  walk.add(y.node().get());
  std::string boxes, arrows;
  for (size_t i = 0; i < walk.nodes.size(); ++i) {
    const Node* node = walk.nodes[i];
    auto name = leaves.find(node);
    const std::string label = name != leaves.end() ? name->second : node->op;
    boxes += "  " + walk.id(node) + " [label=" + quoted(label) + (node->is_leaf() ? ", shape=ellipse" : "") + "];\n";
    for (const Node::Input& input : node->inputs) {
      if (!input.node) continue;
      walk.add(input.node.get());
      arrows +=
          "  " + walk.id(input.node.get()) + " -> " + walk.id(node) + " [label=" + quoted(str(input.shape)) + "];\n";
    }
  }
  return "digraph {\n  rankdir=LR;\n  node [shape=box];\n" + boxes + arrows + "}\n";
}

void write_dot(const Tensor& y, const std::string& path, const std::vector<NamedTensor>& names) {
  io::write_file(path, dot(y, names));
}

}  // namespace braid
