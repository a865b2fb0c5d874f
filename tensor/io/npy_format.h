// The format of .npy: a magic number, a version, the length of a header, the header (a dictionary of Python in text),
// raw data. For files (npy.h) and for the entries of archives (npz.h).
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "braid/tensor/tensor.h"

namespace braid::io {

struct NpyHeader {
  DType dtype = DType::u8;
  bool is_bool = false;     // bytes of which every one but 0 is true
  bool big_endian = false;  // of elements of several bytes
  bool fortran_order = false;
  Shape shape;
  int64_t bytes = 0;  // of the data
};

// The text of a header, which begins at byte `first` of the file. Error(input) names `path` and the byte.
NpyHeader parse_npy_header(std::string_view text, const std::string& path, int64_t first);

// The bytes of an array, one after another.
struct NpySource {
  std::string path;  // for errors
  int64_t bytes;     // of header and data
  std::function<void(void* into, int64_t n)> read;
};
Tensor read_npy(const NpySource& source);

// What stands before the data of such a tensor. Error(misuse), naming `op`, for bf16.
std::string npy_head(DType dtype, const Shape& shape, const char* op);

}  // namespace braid::io
