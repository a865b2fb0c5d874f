// A file as a stream of bytes, decompressed on the way: plain, .gz (zlib) or .zst (zstd), by the end of its name.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

namespace braid::models::text {

class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Up to n bytes; 0 only at the end. Error(input) for damaged or truncated compressed data.
  virtual int64_t read(char* into, int64_t n) = 0;
  // Passes over n bytes, or as many as there are; returns how many.
  virtual int64_t skip(int64_t n);
  virtual int64_t file_position() const = 0;  // bytes of the file consumed so far, for progress
};

std::unique_ptr<ByteStream> open_stream(const std::string& path);

// The path without a .gz or .zst at its end.
std::string without_compression(const std::string& path);

}  // namespace braid::models::text
