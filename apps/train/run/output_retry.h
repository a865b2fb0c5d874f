// A disk that is full for a moment, or an error of one write, must not end a run of days: the run continues and tries
// again. The third failure in a row ends it.
#pragma once
#include <chrono>
#include <functional>

#include "apps/cli/progress.h"

namespace braid::apps {

class OutputRetry {
 public:
  explicit OutputRetry(Progress& progress) : progress_(progress) {}

  // Calls `write`, which all ranks call and which fails on all of them or on none. An Error(output) is printed, and the
  // result is false: try again later. last: there is no later, so it is tried again at once, after a short pause.
  // Throws the third Error(output) in a row, as an error of all ranks, and every other error.
  bool attempt(const std::function<void()>& write, bool last);
  // The last attempt failed, a minute ago or longer.
  bool due() const;
  bool failing() const { return failures_ > 0; }

 private:
  Progress& progress_;
  int failures_ = 0;  // in a row
  std::chrono::steady_clock::time_point failed_at_;
};

}  // namespace braid::apps
