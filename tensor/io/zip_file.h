// Reading of zip archives: files in one file, stored as they are or deflated, with a directory at the end. Archives of
// several parts, encrypted entries and other compressions are errors.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "braid/tensor/io/reader.h"

namespace braid::io {

struct ZipEntry {
  std::string name;
  bool deflated = false;
  uint32_t crc = 0;        // CRC-32 of the bytes
  int64_t bytes = 0;       // of the entry; at most what its compressed bytes can hold
  int64_t compressed = 0;  // in the archive
  int64_t offset = 0;      // of the compressed bytes
};

// An archive, opened once; directory and headers are checked completely, so that entries have different names and lie
// in the file without touching each other. Error(input) names the file and the byte.
class ZipFile {
 public:
  explicit ZipFile(const std::string& path);
  // The same on bytes in memory, which must outlive it.
  ZipFile(std::span<const std::byte> memory, const std::string& name);

  const std::string& path() const { return file_.path(); }
  const std::vector<ZipEntry>& entries() const { return entries_; }  // in the order of the directory
  // Calls use(read); read(into, n) gives the next n bytes of the entry, and use reads them all. Error(input) where they
  // are damaged or have another checksum than the directory says. Safe to call from several threads at once.
  using Read = std::function<void(void* into, int64_t n)>;
  void open(const ZipEntry& entry, const std::function<void(const Read& read)>& use) const;

 private:
  Reader file_;
  std::vector<ZipEntry> entries_;
};

}  // namespace braid::io
