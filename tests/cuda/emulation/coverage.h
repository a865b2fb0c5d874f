// Which kernels of this program were launched.
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace braid::emulated {

// The names of all __global__ functions in the .cu files of a folder.
std::set<std::string> kernels_in(const std::string& folder);

// Every instantiation of these functions in the running program, from its symbol table.
struct CompiledKernel {
  std::string name;       // "softmax_rows"
  std::string signature;  // "void braid::cuda::(anonymous namespace)::softmax_rows<float>(...)"
  uint64_t launches;
};
std::vector<CompiledKernel> compiled_kernels(const std::set<std::string>& names);

}  // namespace braid::emulated
