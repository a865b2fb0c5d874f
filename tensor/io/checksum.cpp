#include "tensor/io/checksum.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace braid::io {
namespace {

// One division step per bit of the polynomial 0x1EDC6F41, bits reversed: 0x82F63B78.
constexpr std::array<uint32_t, 256> make_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0x82F63B78u : 0u);
    table[i] = crc;
  }
  return table;
}
constexpr std::array<uint32_t, 256> table = make_table();

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t crc32c_by_instruction(const void* bytes, int64_t n, uint32_t crc) {
  const auto* p = static_cast<const unsigned char*>(bytes);
  uint64_t state = ~crc;
  for (; n >= 8; n -= 8, p += 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    state = _mm_crc32_u64(state, word);
  }
  auto low = static_cast<uint32_t>(state);
  for (; n > 0; --n, ++p) low = _mm_crc32_u8(low, *p);
  return ~low;
}
#endif

}  // namespace

uint32_t crc32c_by_table(const void* bytes, int64_t n, uint32_t crc) {
  const auto* p = static_cast<const unsigned char*>(bytes);
  crc = ~crc;
  for (; n > 0; --n, ++p) crc = (crc >> 8) ^ table[(crc ^ *p) & 0xff];
  return ~crc;
}

uint32_t crc32c(const void* bytes, int64_t n, uint32_t crc) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2");
  if (has_instruction) return crc32c_by_instruction(bytes, n, crc);
#endif
  return crc32c_by_table(bytes, n, crc);
}

}  // namespace braid::io
