#include "braid/models/data/text/shard.h"

#include <cstring>
#include <vector>

#include "braid/tensor/io/checksum.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Checksums would stop nearly every mutation at the door, so the header's is put right first.
  std::vector<uint8_t> file(data, data + size);
  if (size >= 64) {
    const uint32_t crc = braid::io::crc32c(file.data(), 60);
    std::memcpy(file.data() + 60, &crc, 4);
  }
  const auto whole = std::as_bytes(std::span(file));
  return fuzz([&] {
    const braid::models::text::ShardReader shard(whole, "fuzz");
    shard.verify();
  });
}
