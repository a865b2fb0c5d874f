// Threads of parallel_for that stay where they are.
#pragma once

namespace braid {

// Whether each worker of the pool stays on a processor of its own: with processors p0, p1, ... that this process may
// use, worker i on pi, where there are as many. Off unless the environment has BRAID_PIN_THREADS=1: alone on a machine
// it saves moves from one processor to another; beside other programs a thread cannot go where it would be served
// sooner. The calling thread stays free, since others may inherit where it runs, but leaves the workers' processors.
// Give each of several processes processors of its own (taskset, mpirun --bind-to). Waits for running kernels; throws
// inside a body of parallel_for.
void pin_threads(bool on);

}  // namespace braid
