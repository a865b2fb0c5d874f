// modeling_dcformer.py as a text in the library: the code with which the package transformers computes a DCFormer.
#pragma once
#include <string>

namespace braid::models {

std::string modeling_code();  // its definition is made by models/CMakeLists.txt

}  // namespace braid::models
