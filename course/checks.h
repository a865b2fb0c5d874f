// The checks of an exercise: each runs in a process of its own, so that a crash or a deadlock is a result like any
// other, and says in words what it expected. The first that fails ends the run; with COURSE_ALL=1 all of them run.
#pragma once
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "braid/tensor.h"

namespace course {

// What a stub throws until the student has written it.
struct NotWritten : std::logic_error {
  explicit NotWritten(const std::string& function) : std::logic_error(function + " is not written yet") {}
};

// A value as it stands in messages.
template <class T>
decltype(auto) shown(const T& value) {
  if constexpr (std::is_floating_point_v<T>) {
    std::ostringstream out;
    out << value;
    return std::isnan(value) ? std::string("NaN") : out.str();
  } else {
    return (value);
  }
}

template <class... Parts>
std::string words(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << shown(parts));
  return out.str();
}

// Ends a check with what was expected and what was found.
template <class... Parts>
void expect(bool right, const Parts&... parts) {
  if (!right) throw std::runtime_error(words(parts...));
}

// Every element of `found` within `tolerance` of `expected`; the message names the first that is not.
inline void expect_close(const std::string& name, const braid::Tensor& found, const braid::Tensor& expected,
                         double tolerance) {
  expect(bool(found), name, ": expected a tensor of shape ", expected.shape(), ", found an empty handle");
  expect(found.shape() == expected.shape(), name, ": expected the shape ", expected.shape(), ", found ", found.shape());
  const std::vector<double> a = found.detach().to_vector<double>(), b = expected.detach().to_vector<double>();
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::abs(a[i] - b[i]) <= tolerance) continue;
    const bool alike = words(a[i]) == words(b[i]);  // in the digits that are shown
    expect(false, name, ", element ", i, " in row-major order: expected ", b[i], ", found ", a[i],
           alike ? words(", which differs by ", a[i] - b[i]) : "");
  }
}

// The hint of the case that runs, in memory that the process of a check shares with the one that prints it.
inline const char*& hint_of_case() {
  static void* const shared = ::mmap(nullptr, sizeof(char*), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) throw std::runtime_error("cannot map a page of memory");
  return *static_cast<const char**>(shared);
}
// In a check of several cases: what to try where it fails from here on, a literal; nullptr: the hint of the check.
inline void hint(const char* literal) { hint_of_case() = literal; }

class Checks {
 public:
  // A check, what to try where it fails, and the seconds after which it counts as stuck.
  void operator()(const char* name, const char* hint, const std::function<void()>& body, unsigned seconds = 20) {
    ++count_;
    if (failed_ && !all_) return;
    course::hint(nullptr);
    const std::string fault = in_child(body, seconds);
    if (fault.empty()) {
      ++passed_;
      std::printf("  ok    %s\n", name);
    } else {
      failed_ = true;
      std::printf("  next  %s\n        %s\n%s        hint: %s\n", name, fault.c_str(), remark(fault),
                  hint_of_case() ? hint_of_case() : hint);
    }
  }
  // The exit code of the program: 0 where all checks passed.
  int result() const {
    std::printf("%d of %d checks pass\n", passed_, count_);
    return passed_ == count_ && count_ > 0 ? 0 : 1;
  }

 private:
  // What the process of a check says at its end: no message of an exception is this one byte.
  static inline const std::string kRight{'\0'};
  // What such faults have in common, whatever the check.
  static const char* remark(const std::string& fault) {
    if (fault.starts_with("["))
      return "        (an op of the library refused its inputs: look at their types and shapes first)\n";
    if (fault.ends_with("found NaN"))
      return "        (NaN comes from 0 / 0, inf / inf, inf - inf, or a root or logarithm of a negative number)\n";
    return "";
  }
  // What went wrong, or "".
  static std::string in_child(const std::function<void()>& body, unsigned seconds) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("cannot open a pipe");
    std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child < 0) throw std::runtime_error("cannot start a process");
    if (child == 0) {
      ::close(ends[0]);
      ::alarm(seconds);
      std::string said;
      try {
        body();
        said = kRight;
      } catch (const std::exception& e) {
        said = e.what();
        if (said.empty()) said = "failed without a message";
      }
      for (size_t done = 0; done < said.size();) {
        const ssize_t n = ::write(ends[1], said.data() + done, said.size() - done);
        if (n <= 0) break;
        done += static_cast<size_t>(n);
      }
      std::fflush(nullptr);
      ::_exit(0);
    }
    ::close(ends[1]);
    std::string said;
    char part[512];
    for (ssize_t n; (n = ::read(ends[0], part, sizeof part)) > 0;) said.append(part, static_cast<size_t>(n));
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) {
      if (WTERMSIG(status) == SIGALRM)
        return words("did not end within ", seconds,
                     " seconds: a loop without end, or threads that wait for each other");
      return words("crashed: ", ::strsignal(WTERMSIG(status)),
                   "; an index outside of its array, a null pointer, or a function that calls itself too deep?");
    }
    if (said.empty()) return words("ended with exit code ", WEXITSTATUS(status), " before the check did");
    return said == kRight ? "" : said;
  }

  int count_ = 0, passed_ = 0;
  bool failed_ = false, all_ = std::getenv("COURSE_ALL") != nullptr;
};

}  // namespace course
