// A CUDA runtime and a cuBLASLt that log what is called and compute nothing, so that the host code that calls them
// (cuda/runtime/runtime.cpp, cuda/matmul/blas.cpp ...) runs without a GPU. Two GPUs, whose memory is the CPU's.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace stand_in {

struct Proposal {
  uint64_t algorithm;   // its first word
  int status;           // cublasStatus_t of this result
  double milliseconds;  // that a product takes with it
};

struct Product {
  uint64_t algorithm;
  const void *c, *d;
};

struct Trace {
  std::vector<std::string> calls;  // names of library functions, without setters and destructors
  std::vector<Product> products;
  int64_t count(const std::string& name) const;
};

extern Trace trace;
extern std::vector<Proposal> proposals;                                // of every product, in the library's order
extern int device;                                                     // the driver's current GPU
extern int status, driver;                                             // of cudaGetDeviceCount; the driver's version
extern int failing_allocations, failing_launches, failing_attributes;  // the next ones that find no memory
extern bool capturing;
// (function, attribute) -> value
extern std::map<std::pair<const void*, int>, int> attributes;

}  // namespace stand_in
