// The elements that a rank owns, in the tensors of the file that stores them (stored_parameter.h).
#pragma once
#include <functional>
#include <vector>

#include "braid/models/folders/stored_parameter.h"
#include "braid/models/training/local_state.h"

namespace braid::models {

// For each stored tensor the elements of `spans`, which are spans of the flattened parameter in increasing order.
std::vector<std::vector<dist::Span>> spans_in_stored(const StoredParameter& stored,
                                                     const std::vector<dist::Span>& spans);
// Parameters as the tensors that store them, which `stored` gives for a name and a complete shape; the values are
// shared, nothing is copied.
std::vector<LocalTensor> as_stored(const std::vector<LocalTensor>& parameters,
                                   const std::function<StoredParameter(const std::string&, const Shape&)>& stored);

}  // namespace braid::models
