// CRC-32C (Castagnoli): the checksum of every block and header that Braid writes.
#pragma once
#include <cstdint>

namespace braid::io {

// The checksum of n bytes. To continue from earlier bytes, pass their checksum:
// crc32c(b, nb, crc32c(a, na)) == crc32c(a followed by b). Uses the processor's instruction where there is one.
uint32_t crc32c(const void* bytes, int64_t n, uint32_t crc = 0);

// The same by table lookup, on any processor.
uint32_t crc32c_by_table(const void* bytes, int64_t n, uint32_t crc = 0);

// The share of a piece with checksum `crc` in the checksum of a whole in which `after` bytes follow it: the exclusive
// or of the shares of all pieces is the checksum of the whole. So several can work one out, in any order.
uint32_t crc32c_share(uint32_t crc, int64_t after);

}  // namespace braid::io
