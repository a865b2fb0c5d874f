// The sequence lengths of a run that has changed its own: part of its state, and of the order of its data.
#pragma once
#include <cstdint>

namespace braid::models {

// A length that the run had earlier, and the number of sequences that it read at that length.
struct EarlierLength {
  int64_t seq_len = 0, sequences = 0;
};

}  // namespace braid::models
