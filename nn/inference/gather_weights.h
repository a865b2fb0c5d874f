// The weights of a model one after the other in memory, for inference on the CPU.
#pragma once
#include "braid/nn/module.h"

namespace braid::nn {

// Moves the parameters of m, in visiting order, into a few large buffers. The system backs those by huge pages, which
// it does not do for a buffer of a megabyte: a pass that reads every weight once then goes at the memory's own speed.
// All are frozen, since parameters of one buffer cannot be told apart when one of them is written in place: m is for
// inference. Needs the memory of one buffer, 64 MiB or the largest parameter, beside them. Elsewhere than on the CPU
// the parameters stay where they are.
void gather_weights(Module& m);

}  // namespace braid::nn
