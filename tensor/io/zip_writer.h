// Writing of zip archives, all or nothing. Equal entries give equal bytes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "braid/tensor/io/atomic_file.h"

namespace braid::io {

class ZipWriter {
 public:
  // wide_from: sizes and offsets from here on take 64 bits. Error(output) when the file cannot be written, here and
  // below.
  explicit ZipWriter(const std::string& path, int64_t wide_from = 0xFFFFFFFF);
  // An entry of these parts, one behind the other. The name is UTF-8, of 1 to 65,000 bytes, and new to the archive.
  void add(const std::string& name, const std::vector<std::span<const std::byte>>& parts, bool deflate);
  void commit();

 private:
  struct Entry {
    std::string name;
    bool deflated, wide;
    uint32_t crc;
    int64_t bytes, compressed, offset;
  };
  std::string head_of(const Entry& entry) const;
  std::string directory_entry(const Entry& entry) const;
  int64_t write_deflated(const std::vector<std::span<const std::byte>>& parts);

  int64_t wide_from_;
  AtomicFile file_;
  std::vector<Entry> entries_;
};

}  // namespace braid::io
