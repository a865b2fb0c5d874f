// The graph of a result as boxes and arrows, for drawings of it.
#pragma once
#include <string>
#include <vector>

#include "braid/tensor/tensor.h"

namespace braid::detail {

struct GraphView {
  struct Box {
    std::string label;  // the op's name, or the leaf's
    bool leaf;
  };
  struct Arrow {
    size_t from, to;    // boxes: where the tensor is made, and where it is used
    std::string label;  // its shape
  };
  std::vector<Box>
      boxes;  // the first is the result's; in the order of a walk from there, so equal graphs give equal text
  std::vector<Arrow> arrows;
};

// Error(misuse), naming `op`, when y has no history.
GraphView view_graph(const char* op, const Tensor& y, const std::vector<NamedTensor>& names);

}  // namespace braid::detail
