// Locks and fork(): the child has the calling thread alone, so a lock that another thread held would stay locked there,
// and what it guards could be half changed.
#pragma once
#include <mutex>

namespace braid::detail {

// Mutexes of the first level are taken first: a thread that holds one may wait for one of the second, and for no other.
enum class ForkLevel { first, second };

// From now on fork() waits until the mutex is free. It must live until the program ends.
void lock_at_fork(std::mutex& mutex, ForkLevel level = ForkLevel::second);

}  // namespace braid::detail
