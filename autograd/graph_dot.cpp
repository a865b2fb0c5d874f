#include "braid/autograd/graph_dot.h"

#include "braid/autograd/detail/graph_view.h"
#include "braid/tensor/base/utf8.h"
#include "braid/tensor/io/atomic_file.h"

namespace braid {

namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : detail::show_bidi_controls(text)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string id(size_t box) { return str("n", box); }

}  // namespace

std::string dot(const Tensor& y, const std::vector<NamedTensor>& names) {
  const detail::GraphView view = detail::view_graph("dot", y, names);
  std::string out = "digraph {\n  rankdir=LR;\n  node [shape=box];\n";
  for (size_t i = 0; i < view.boxes.size(); ++i) {
    const auto& [label, leaf] = view.boxes[i];
    out += "  " + id(i) + " [label=" + quoted(label) + (leaf ? ", shape=ellipse" : "") + "];\n";
  }
  for (const auto& [from, to, label] : view.arrows)
    out += "  " + id(from) + " -> " + id(to) + " [label=" + quoted(label) + "];\n";
  return out + "}\n";
}

void write_dot(const Tensor& y, const std::string& path, const std::vector<NamedTensor>& names) {
  io::write_file(path, dot(y, names));
}

}  // namespace braid
