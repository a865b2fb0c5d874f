// Pins the threads of parallel_for to processors.
#pragma once

namespace braid {

// Pins worker i of the pool to pi of the processors p0, p1, ... that this process may use, if there are enough of them.
// Off unless the environment has BRAID_PIN_THREADS=1: alone on a machine, pinning saves migrations; beside other
// programs, it keeps a thread from moving to an idle processor. The calling thread is not pinned, since threads that it
// starts would inherit that, but it leaves the workers' processors. Give each of several processes processors of its
// own (taskset, mpirun --bind-to). Waits for running kernels; throws inside a body of parallel_for.
void pin_threads(bool on);

}  // namespace braid
