// Threads that a rank starts, its mutexes and condition variables: functions of the C library that this program has
// itself, as in system_calls.cpp. std::thread, std::mutex and std::condition_variable come here. What waits, waits in
// the scheduler, so the seed gives the processor to each of these threads as to the ranks.
#include <dlfcn.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <ctime>
#include <functional>
#include <future>
#include <memory>
#include <utility>

#include "tests/simulation/system_calls.h"

namespace braid::simulation {

namespace {

// The function of the C library that one of this file hides.
template <class Function>
Function* real(const char* name, Function*) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

void* call(void* body) {
  (*std::unique_ptr<std::function<void()>>(static_cast<std::function<void()>*>(body)))();
  return nullptr;
}

int wait(pthread_cond_t* condition, pthread_mutex_t* mutex, double until) {
  Scheduler& scheduler = entered()->scheduler;
  ::pthread_mutex_unlock(mutex);
  scheduler.wait_on(condition, until);
  ::pthread_mutex_lock(mutex);
  return scheduler.now() < until ? 0 : ETIMEDOUT;
}

double simulated(clockid_t clock, const timespec* time) {
  return static_cast<double>(time->tv_sec - first_second(clock)) + static_cast<double>(time->tv_nsec) * 1e-9;
}

}  // namespace

}  // namespace braid::simulation

using namespace braid::simulation;

// What std::future waits with.
namespace std {
bool __atomic_futex_unsigned_base::_M_futex_wait_until(unsigned* address, unsigned value, bool, chrono::seconds,
                                                       chrono::nanoseconds) {
  World* w = entered();
  if (!w || !w->threads)
    ::syscall(SYS_futex, address, FUTEX_WAIT, value, nullptr, nullptr, 0);
  else if (*address == value)
    w->scheduler.wait_on(address, kNever);
  return true;
}
void __atomic_futex_unsigned_base::_M_futex_notify_all(unsigned* address) {
  if (World* w = entered()) w->scheduler.notify(address);
  ::syscall(SYS_futex, address, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}
}  // namespace std

extern "C" {

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*), void* argument) {
  static auto* const create = real("pthread_create", &pthread_create);
  World* w = entered();
  if (!w || !w->threads) return create(thread, attributes, body, argument);
  int error = 0;
  w->scheduler.add_thread([body, argument] { body(argument); },
                          [&](std::function<void()> run) {
                            error = create(thread, attributes, call, new std::function<void()>(std::move(run)));
                            return *thread;
                          });
  return error;
}

int pthread_join(pthread_t thread, void** result) {
  static auto* const join = real("pthread_join", &pthread_join);
  World* w = entered();
  return w && w->scheduler.join(thread) ? 0 : join(thread, result);
}

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  static auto* const lock = real("pthread_mutex_lock", &pthread_mutex_lock);
  World* w = entered();
  if (!w) return lock(mutex);
  int error = 0;
  while ((error = ::pthread_mutex_trylock(mutex)) == EBUSY) w->scheduler.wait_on(mutex, w->scheduler.now() + 1e-3);
  return error;
}

int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  static auto* const unlock = real("pthread_mutex_unlock", &pthread_mutex_unlock);
  if (World* w = entered()) w->scheduler.notify(mutex);
  return unlock(mutex);
}

int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  static auto* const real_wait = real("pthread_cond_wait", &pthread_cond_wait);
  return entered() ? wait(condition, mutex, kNever) : real_wait(condition, mutex);
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* until) {
  static auto* const real_wait = real("pthread_cond_timedwait", &pthread_cond_timedwait);
  return entered() ? wait(condition, mutex, simulated(CLOCK_REALTIME, until)) : real_wait(condition, mutex, until);
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const timespec* until) {
  static auto* const real_wait = real("pthread_cond_clockwait", &pthread_cond_clockwait);
  return entered() ? wait(condition, mutex, simulated(clock, until)) : real_wait(condition, mutex, clock, until);
}

int pthread_cond_signal(pthread_cond_t* condition) noexcept {  // of several all, which may wake without a reason
  static auto* const signal = real("pthread_cond_signal", &pthread_cond_signal);
  if (World* w = entered()) return w->scheduler.notify(condition), 0;
  return signal(condition);
}

int pthread_cond_broadcast(pthread_cond_t* condition) noexcept {
  static auto* const broadcast = real("pthread_cond_broadcast", &pthread_cond_broadcast);
  if (World* w = entered()) return w->scheduler.notify(condition), 0;
  return broadcast(condition);
}

}  // extern "C"
