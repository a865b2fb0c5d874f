// The child of a fork(), for tests of what it may use of its parent.
#pragma once
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>

namespace braid::test {

// Whether `work` returned true in a child. One that hangs is ended after half a minute.
template <class Work>
bool in_child(Work&& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(30);
    ::_exit(work() ? 0 : 1);
  }
  int status = -1;
  return ::waitpid(child, &status, 0) == child && status == 0;
}

// From now on the system gives this process, a child, no more addresses.
inline void leave_no_memory() {
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const auto size = static_cast<rlim_t>(pages * ::sysconf(_SC_PAGESIZE));
  const rlimit limit{size, size};
  ::setrlimit(RLIMIT_AS, &limit);
}

}  // namespace braid::test
