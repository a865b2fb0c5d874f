// A file as a stream of bytes, decompressed on the way: gzip (zlib) and zstd, told by their first bytes; plain
// otherwise.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

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

// Error(input) as of read() when the name ends in .gz or .zst and the bytes are something else.
std::unique_ptr<ByteStream> open_stream(const std::string& path);

bool is_gzip(std::string_view begin);  // of the first bytes of a file
bool is_zstd(std::string_view begin);

// The path without a .gz or .zst at its end; the letters in any case, as everywhere below.
std::string without_compression(const std::string& path);
// Does the name end in this, a text in small letters?
bool ends_in(std::string_view path, std::string_view ending);

}  // namespace braid::models::text
