// The child of a fork(), for tests of what it may use of its parent.
#pragma once
#include <sys/wait.h>
#include <unistd.h>

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

}  // namespace braid::test
