#include "braid/tensor/base/lock_at_fork.h"

#include <pthread.h>

#include <map>
#include <vector>

namespace braid::detail {
namespace {

struct Locks {
  std::mutex mutex;                                    // of the list
  std::map<ForkLevel, std::vector<std::mutex*>> list;  // in the order in which threads may take them
};
// Never destroyed: tensors with static lifetime use the mutexes to the end.
Locks& locks() {
  static Locks* instance = new Locks;
  return *instance;
}

void before_fork() {
  locks().mutex.lock();
  for (auto& [level, list] : locks().list)
    for (std::mutex* mutex : list) mutex->lock();
}
void after_fork() {
  for (auto& [level, list] : locks().list)
    for (std::mutex* mutex : list) mutex->unlock();
  locks().mutex.unlock();
}

}  // namespace

void lock_at_fork(std::mutex& mutex, ForkLevel level) {
  std::lock_guard lock(locks().mutex);
  if (locks().list.empty()) pthread_atfork(before_fork, after_fork, after_fork);
  locks().list[level].push_back(&mutex);
}

}  // namespace braid::detail
