#include "braid/tensor/cpu/attention/kept.h"

#include <algorithm>

#include "braid/tensor/parallel.h"

namespace braid::cpu::attention {

static std::optional<int64_t> limit;

void limit_kept_bytes(std::optional<int64_t> bytes) { limit = bytes; }

int64_t max_kept_bytes() { return limit.value_or(std::min(kMaxKeptBytes, kMaxKeptBytesOfAll / threads())); }

int64_t max_kept_bytes_of_rows() { return limit.value_or(kMaxKeptBytes); }

}  // namespace braid::cpu::attention
