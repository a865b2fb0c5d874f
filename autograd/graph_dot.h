// The graph of a recorded result, drawn by Graphviz: write_dot(loss, "graph.dot"), then dot -Tsvg graph.dot.
// graph_svg.h draws it without Graphviz.
#pragma once
#include <string>
#include <vector>

#include "braid/tensor/tensor.h"

namespace braid {

// A box for each op, an ellipse for each leaf with its name in `names` (an unnamed one is called "leaf"), and an arrow
// with the shape of the tensor from where it is made to where it is used. nn::parameters(model) serves as names. Inputs
// that collect no gradient are not part of the graph. Error(misuse) when y has no history.
std::string dot(const Tensor& y, const std::vector<NamedTensor>& names = {});

// Writes dot() to a file. Error(output) when it cannot be written.
void write_dot(const Tensor& y, const std::string& path, const std::vector<NamedTensor>& names = {});

}  // namespace braid
