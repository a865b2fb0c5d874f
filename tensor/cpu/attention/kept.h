// How much a thread may keep of a block between two passes over the keys: e in forward, S and dP in backward.
#pragma once
#include <cstdint>
#include <optional>

namespace braid::cpu::attention {

// Bytes of a thread, and of all threads. Forward and backward together take 1.06 to 1.3 times as long where backward
// has to compute S and dP again (tests/bench/attention.md).
inline constexpr int64_t kMaxKeptBytes = 80 << 20, kMaxKeptBytesOfAll = int64_t{2560} << 20;

// The limit of a thread, with as many threads as there are now. No bit of a result depends on it.
int64_t max_kept_bytes();
// The limit by which backward chooses the rows of a block: the same at any number of threads, as bits depend on it.
int64_t max_kept_bytes_of_rows();
// For tests: another limit in place of both, so that small problems reach it; {}: the usual ones.
void limit_kept_bytes(std::optional<int64_t> bytes);

}  // namespace braid::cpu::attention
