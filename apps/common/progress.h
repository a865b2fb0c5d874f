// Progress of a long job: one redrawn line on a terminal, plain lines at growing intervals elsewhere.
#pragma once
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace braid::app {

struct ProgressState {
  int64_t step = 0;
  int64_t total = 0;
  double loss = 0;
  double val_loss = 0;  // NaN: not known yet
  double tok_per_s = 0;
  double eta_s = 0;  // negative: unknown
};

// " 42%|########        | 420/1000  loss 2.3456  val 2.41  12.3k tok/s  ETA 1m15s", at most `width` columns.
std::string progress_bar(const ProgressState& state, int width);
// "step 420/1000  loss 2.3456  val 2.4100  12.3k tok/s  ETA 1m15s"
std::string progress_line(const ProgressState& state);
// Whether a plain line is due at this step: every step at first, then every 2, 5, 10, 20, ...: some seventeen lines for
// each tenfold of steps, at least twenty over the run (or all of a shorter one), and the last step.
bool line_due(int64_t step, int64_t total);

class Progress {
 public:
  // interval: steps between plain lines, 0 = growing.
  explicit Progress(std::FILE* out, int64_t interval = 0);
  ~Progress() { finish(); }

  void update(const ProgressState& state);
  // A line of text above the bar. The bar is redrawn.
  void note(const std::string& text);
  // Leaves the last state of the bar on the screen and ends its line.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  void draw();
  std::FILE* out_;
  int64_t interval_;
  bool terminal_;
  bool drawn_ = false;  // a bar stands on the current line
  ProgressState state_;
  Clock::time_point last_;
};

}  // namespace braid::app
