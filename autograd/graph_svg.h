// The graph of a recorded result as a diagram for a browser: write_svg(loss, "graph.svg", nn::parameters(model)).
#pragma once
#include <string>
#include <vector>

#include "braid/tensor/tensor.h"

namespace braid {

// The graph that dot() of graph_dot.h writes, laid out: leaves and ops from left to right, the result at the right end,
// each arrow with the shape of its tensor. Meant for the graph of a layer or of a block, a few hundred ops.
// Error(misuse) when y has no history.
std::string svg(const Tensor& y, const std::vector<NamedTensor>& names = {});

// Writes svg() to a file. Error(output) when it cannot be written.
void write_svg(const Tensor& y, const std::string& path, const std::vector<NamedTensor>& names = {});

}  // namespace braid
