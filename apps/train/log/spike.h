// Finds losses that jump out of the recent past: z = (loss - mean) / deviation over the last losses.
#pragma once
#include <cstdint>
#include <deque>

namespace braid::apps {

class SpikeDetector {
 public:
  // threshold: z-score that counts as a spike, 0 = never; warmup: losses that are only watched; window: losses that
  // mean and deviation are taken over.
  SpikeDetector(double threshold, int64_t warmup, int64_t window = 128);

  struct Verdict {
    double z = 0;  // 0 while fewer than two losses are known; infinite for NaN and Inf
    bool spike = false;
  };
  // Losses in the order of steps. A spike (also NaN and Inf, which always are one) does not enter the window, so that
  // it cannot hide the next. The state is a function of the losses given so far: after a resume give it the log's
  // losses.
  Verdict add(double loss);

 private:
  double threshold_;
  int64_t warmup_, window_, seen_ = 0;
  std::deque<double> last_;
};

}  // namespace braid::apps
