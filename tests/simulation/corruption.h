// Bit rot, enumerated: each bit of headers and small files, and random bits of the rest, of a checkpoint and of a data
// folder.
#pragma once
#include "tests/simulation/judge.h"

namespace braid::simulation {

// Flips one bit after the other and asks whether it is detected before use: of the newest of two checkpoints, that the
// older one is taken; of data, that reading it fails. random_bits: beyond headers and small files, in all. Prints a row
// per file and returns how many went unnoticed.
uint64_t corrupt_each_bit(const Folders& folders, Judge& judge, uint64_t random_bits);

}  // namespace braid::simulation
