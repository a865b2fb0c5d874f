#include "braid/tensor/base/lock_at_fork.h"

#include <pthread.h>

#include <vector>

namespace braid::detail {
namespace {

struct Locks {
  std::mutex mutex;  // of the list
  std::vector<std::mutex*> list;
};
// Never destroyed: tensors with static lifetime use the mutexes to the end.
Locks& locks() {
  static Locks* instance = new Locks;
  return *instance;
}

void before_fork() {
  locks().mutex.lock();
  for (std::mutex* mutex : locks().list) mutex->lock();
}
void after_fork() {
  for (std::mutex* mutex : locks().list) mutex->unlock();
  locks().mutex.unlock();
}

}  // namespace

void lock_at_fork(std::mutex& mutex) {
  std::lock_guard lock(locks().mutex);
  if (locks().list.empty()) pthread_atfork(before_fork, after_fork, after_fork);
  locks().list.push_back(&mutex);
}

}  // namespace braid::detail
