#include "apps/train/run/output_retry.h"

#include <thread>

#include "braid/distributed/job/run_on_all_ranks.h"

namespace braid::apps {

bool OutputRetry::attempt(const std::function<void()>& write, bool last) {
  using std::chrono::milliseconds;
  constexpr int max_failures = 3;
  for (;;) {
    try {
      write();
      failures_ = 0;
      return true;
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::output) throw;
      failed_at_ = std::chrono::steady_clock::now();
      const std::string text = e.what();
      if (++failures_ == max_failures)
        throw dist::CollectiveError(ErrorKind::output, text + " (the third failure in a row)");
      progress_.note(str("warning: ", text, " (failure ", failures_, " of ", max_failures, " in a row; ",
                         last
                             ? "trying again)"
                             : "the run continues and tries again at its next checkpoint, at the latest in a minute)"));
      if (!last) return false;
      std::this_thread::sleep_for(milliseconds(failures_ == 1 ? 200 : 1000));
    }
  }
}

bool OutputRetry::due() const {
  return failing() && std::chrono::steady_clock::now() - failed_at_ > std::chrono::minutes(1);
}

}  // namespace braid::apps
