// Query rows whose keys lie in blocks of one array, each with the table of its sequence.
#pragma once
#include <cstdint>
#include <span>

namespace braid {

// A query row that attends to the positions [first, end) of a sequence, of which those of [i block, (i + 1) block) are
// the key rows [blocks[i] block, (blocks[i] + 1) block). Entries of `blocks` that hold none of these positions are not
// read.
struct PagedRow {
  std::span<const int32_t> blocks;
  int64_t first = 0, end = 0;
};

struct PagedRows {
  int64_t block = 0;  // positions of a block
  std::span<const PagedRow> rows;
};

}  // namespace braid
