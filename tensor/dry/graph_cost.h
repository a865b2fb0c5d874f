// The cost of captured graphs (tensor/graph.h) in this process so far, beside that of their kernels.
#pragma once
#include <cstdint>

namespace braid {

struct GraphCost {
  int64_t graphs = 0;
  int64_t nodes = 0;   // kernels, copies and fills
  double seconds = 0;  // to make them executable and to bring them to the GPU
  int64_t bytes = 0;   // of GPU memory that they take, which no allocator counts
};
GraphCost graph_cost();

namespace detail {
void add_graph_cost(const GraphCost& cost);
}

}  // namespace braid
