// Documents seen before, by a hash of 128 bits.
#pragma once
#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "braid/tensor/io/append_file.h"

namespace braid::models::text {

struct Hash128 {
  uint64_t low = 0, high = 0;
  auto operator<=>(const Hash128&) const = default;
};

// SipHash-2-4 with 128 bits and the key 00 01 ... 0f, of bytes that come in pieces.
class DocumentHasher {
 public:
  void add(std::string_view bytes);
  Hash128 finish();  // nothing may be added afterwards

 private:
  void absorb(uint64_t word);
  void round();

  std::array<uint64_t, 4> v_{0x736f6d6570736575u ^ 0x0706050403020100u,
                             0x646f72616e646f6du ^ 0x0f0e0d0c0b0a0908u ^ 0xee,
                             0x6c7967656e657261u ^ 0x0706050403020100u, 0x7465646279746573u ^ 0x0f0e0d0c0b0a0908u};
  uint64_t length_ = 0;
  std::array<unsigned char, 8> rest_{};  // the last length_ % 8 bytes
};

// The hashes of all documents so far: 22 to 43 bytes of memory a document. They are also appended to a file, from which
// another process resumes.
class SeenDocuments {
 public:
  // `known`: how many hashes of the file count; 0 begins anew. Error(input) when the file has fewer.
  SeenDocuments(const std::string& path, int64_t known);
  bool insert(Hash128 hash);  // false: it was there
  void sync();                // everything to the disk
  int64_t count() const { return count_; }

 private:
  struct Part {  // of the hashes, by their first bits: only one of 256 grows at a time
    std::vector<Hash128> slots;
    size_t used = 0;
  };
  bool place(Hash128 hash);
  void write();  // what is not yet in the file

  std::array<Part, 256> parts_;
  std::unique_ptr<io::AppendFile> file_;
  std::string unwritten_;
  int64_t count_ = 0;
};

}  // namespace braid::models::text
