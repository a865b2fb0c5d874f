#include "braid/tensor/io/checksum.h"

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

// Checksums are polynomials over {0, 1} modulo that polynomial, the highest power in the lowest bit.
constexpr uint32_t times_x(uint32_t a) { return (a >> 1) ^ (a & 1 ? 0x82F63B78u : 0u); }
constexpr uint32_t product(uint32_t a, uint32_t b) {
  uint32_t sum = 0;
  for (int power = 0; power < 32; ++power) {
    if (a & (0x80000000u >> power)) sum ^= b;
    b = times_x(b);
  }
  return sum;
}

// x^8, x^16, x^32, ...: what 1, 2, 4, ... bytes behind a piece multiply its checksum by.
constexpr std::array<uint32_t, 63> make_powers() {
  std::array<uint32_t, 63> powers{};
  powers[0] = 0x80000000u >> 8;
  for (size_t i = 1; i < powers.size(); ++i) powers[i] = product(powers[i - 1], powers[i - 1]);
  return powers;
}
constexpr std::array<uint32_t, 63> powers_of_bytes = make_powers();

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

uint32_t crc32c_share(uint32_t crc, int64_t after) {
  for (size_t i = 0; after > 0; ++i, after >>= 1) {
    if (after & 1) crc = product(crc, powers_of_bytes[i]);
  }
  return crc;
}

uint32_t crc32c(const void* bytes, int64_t n, uint32_t crc) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2");
  if (has_instruction) return crc32c_by_instruction(bytes, n, crc);
#endif
  return crc32c_by_table(bytes, n, crc);
}

}  // namespace braid::io
