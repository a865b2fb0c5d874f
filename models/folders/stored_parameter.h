// Where the elements of a parameter are in the tensors of a file, for families whose files split or reorder parameters:
// queries, keys and values as three tensors, or their rows grouped by head.
#pragma once
#include <string>
#include <vector>

#include "braid/nn/module.h"

namespace braid::models {

struct StoredParameter {
  struct Stored {
    std::string name;
    Shape shape;
  };
  // Elements [first, first + count) of a stored tensor.
  struct Run {
    size_t tensor;  // of `tensors`
    int64_t first, count;
  };
  std::vector<Stored> tensors;
  std::vector<Run> runs;            // one after another they are the elements of the parameter
  std::vector<std::string> copies;  // further tensors that hold the same as the one in `tensors`

  // One tensor that holds the elements in the parameter's order, and nothing else.
  bool whole() const { return runs.size() == 1 && runs[0].count == numel(tensors[0].shape); }
};

// One tensor of this name and the parameter's shape.
StoredParameter stored_whole(const std::string& name, const Shape& shape);
// The parameter of this shape from its stored tensors, which have one type and are on the CPU.
Tensor join_stored(const StoredParameter& stored, const Shape& shape, const std::vector<Tensor>& tensors);
// Fills the elements of stored tensor `index`, which is on the CPU, that are the parameter's.
void copy_stored(const StoredParameter& stored, size_t index, const Tensor& value, Tensor& into);
// The stored tensors of a parameter, on the CPU.
std::vector<nn::NamedTensor> split_stored(const StoredParameter& stored, const Tensor& value);

}  // namespace braid::models
