// Locks and fork(): the child has the calling thread alone, so a lock that another thread held would stay locked there,
// and what it guards could be half changed.
#pragma once
#include <mutex>

namespace braid::detail {

// From now on fork() waits until the mutex is free. It must live until the program ends, and no thread may wait for
// another such mutex while it holds it.
void lock_at_fork(std::mutex& mutex);

}  // namespace braid::detail
