// Algorithms of products, measured once and kept in a file, so that every later run uses the same ones.
//
//   { "gpu": "NVIDIA H100 80GB HBM3", "cublaslt": 130000,
//     "products": [ {"key": [19 integers], "algorithm": ["0x1f", ... 8 words], "microseconds": 41.5}, ... ] }
//
// A file that is absent is made: its products are measured as they appear, and it is replaced after each of them. A
// file that exists is only read; products that it lacks use the library's first proposal, as without a file, and so do
// those for which it has no room. So two runs with one file have the same bits.
#pragma once
#include <map>
#include <mutex>

#include "braid/cuda/matmul/matmul.h"

namespace braid::cuda {

using Algorithm = std::array<uint64_t, 8>;  // opaque: a cublasLtMatmulAlgo_t

class AlgorithmFile {  // for any thread
 public:
  static constexpr size_t kMaxProducts = 20000;
  // Reads the file, if there is one. Error(input) with file and field when it is damaged; Error(setting) when it was
  // measured on another kind of GPU or by another version of the library: its algorithms mean nothing here.
  AlgorithmFile(std::string path, std::string gpu, int64_t library_version, size_t max_products = kMaxProducts);

  const Algorithm* find(const ProductKey& key) const;  // nullptr: not in the file
  bool measures() const;                               // there was no file, and its successor is not full
  // Adds a product and replaces the file, completely or not at all; Error(output) when it cannot be written. false:
  // there are `max_products` others, so a later run will not find it.
  bool add(const ProductKey& key, const Algorithm& algorithm, double microseconds);
  const std::string& path() const { return path_; }

 private:
  struct Measured {
    Algorithm algorithm;
    double microseconds;
  };
  void read();
  void write() const;

  std::string path_, gpu_;
  int64_t library_version_;
  size_t max_products_;
  bool measures_ = false;
  mutable std::mutex mutex_;  // of the products: the GPUs of a process share the file
  std::map<ProductKey, Measured> products_;
};

// The file that the environment variable BRAID_MATMUL_ALGORITHMS names; nullptr without it. Read at the first call.
// Every GPU of the process must be of the kind that the file was opened for: Error(setting) otherwise.
AlgorithmFile* algorithm_file(const std::string& gpu, int64_t library_version);

}  // namespace braid::cuda
