// Threads of parallel_for that stay where they are.
#pragma once

namespace braid {

// Whether each of the pool's threads stays on a processor of its own: with processors p0, p1, ... that this process may
// use, thread i on pi where there are as many. Off unless the environment has BRAID_PIN_THREADS=1: alone on a machine
// it saves moves from one processor to another, and beside other programs a thread cannot go where it would be served
// sooner. The calling thread, from which others may inherit where they run, stays free. Waits for running kernels;
// throws inside a body of parallel_for.
void pin_threads(bool on);

}  // namespace braid
