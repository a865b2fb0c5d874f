// Named arrays of NumPy in .npz archives: what numpy.load reads and numpy.savez and numpy.savez_compressed write.
//
//   io::save_npz("data.npz", {{"x", x}, {"y", y}}, {.compressed = true});
//   const io::NpzFile file("data.npz");
//   Tensor x = file.load("x");
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "braid/tensor/tensor.h"

namespace braid::io {

class ZipFile;

// An archive, opened once; its directory is checked completely, arrays are read on demand. Error(input) names the file
// and the byte.
class NpzFile {
 public:
  explicit NpzFile(const std::string& path);
  // The same on bytes in memory, which must outlive it; `name` stands in for the path in errors.
  NpzFile(std::span<const std::byte> memory, const std::string& name);

  const std::string& path() const;
  // The names of the arrays, without ".npy", in the order of the archive. What ends otherwise is left out.
  std::vector<std::string> names() const;
  bool contains(const std::string& name) const;
  // The array, contiguous, on the CPU; its checksum is checked. Errors and types are those of load_npy. Safe to call
  // from several threads at once.
  Tensor load(const std::string& name) const;

 private:
  std::shared_ptr<const ZipFile> zip_;
};

// All arrays of an archive, in its order.
std::vector<NamedTensor> load_npz(const std::string& path);

struct NpzOptions {
  bool compressed = false;  // deflated, as by numpy.savez_compressed
};
// Writes all or nothing; equal tensors in one order give equal bytes. Error(misuse) for an empty or repeated name, one
// with a zero byte, an empty handle, and bf16, which NumPy does not have; Error(output) when the file cannot be
// written.
void save_npz(const std::string& path, const std::vector<NamedTensor>& tensors, NpzOptions options = {});

}  // namespace braid::io
