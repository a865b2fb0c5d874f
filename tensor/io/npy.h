// Arrays of NumPy in .npy files: what numpy.load reads and numpy.save writes.
//
// Read: format versions 1.0 to 3.0, both byte orders, both orders of axes, of f8, f4, f2, i8, i4, u1 and b1, which
// becomes u8 of 0 and 1. Every other type (int16, complex, strings, structures, Python objects) is an error that names
// it; nothing in a file is ever executed. Written: version 1.0, little-endian, rows first; equal tensors give equal
// bytes, which are those of numpy.save.
#pragma once
#include <cstddef>
#include <span>
#include <string>

#include "braid/tensor/tensor.h"

namespace braid::io {

// The array of a file, contiguous, on the CPU. Error(input) names the file and the byte: a file that is damaged, longer
// or shorter than its header says, or of a type or rank that tensors lack.
Tensor load_npy(const std::string& path);
// The same from bytes in memory; `name` stands in for the path in errors.
Tensor load_npy(std::span<const std::byte> memory, const std::string& name);

// Writes the values of x, all or nothing; a strided or device tensor is copied first. Error(misuse) for bf16, which
// NumPy does not have; Error(output) when the file cannot be written.
void save_npy(const std::string& path, const Tensor& x);

}  // namespace braid::io
