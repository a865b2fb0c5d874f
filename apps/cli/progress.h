// Progress of a long job: one redrawn line on a terminal, plain lines at growing intervals elsewhere.
#pragma once
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace braid::apps {

struct ProgressState {
  int64_t step = 0;
  int64_t total = 0;
  double loss = 0;
  double val_loss = 0;      // NaN: not known yet
  int64_t val_step = -1;    // that val_loss was measured at; -1: this one
  double tok_per_s = 0;     // 0: none
  double images_per_s = 0;  // 0: none
  double eta_s = 0;         // negative: unknown
};

// "step 420/1000  loss 2.3456  val 2.4100  12.3k tok/s  ETA 1m15s"; a validation of an earlier step: "val 2.4100 at
// 400"
std::string progress_words(const ProgressState& state);
// " 42% [########............] words", at most `width` - 1 columns; without the bar where there is no room for it.
std::string progress_bar(double share, const std::string& words, int width);
// Whether a plain line is due at this step: every step at first, then every 2, 5, 10, 20, ...: some seventeen lines for
// each tenfold of steps, at least twenty over the run (or all of a shorter one), and the last step.
bool line_due(int64_t step, int64_t total);

// automatic: a bar on a terminal, and plain lines elsewhere and in processes that a launcher of jobs started, because
// mpirun gives them a terminal even when its own output goes to a file.
enum class ProgressStyle { automatic, plain, bar };
inline constexpr const char* progress_styles[] = {"auto", "plain", "bar"};
ProgressStyle progress_style(const std::string& name);  // one of progress_styles

class Progress {
 public:
  // interval: training steps between plain lines, 0 = growing. A step with a validation always has one, and only such a
  // line has the validation loss; the bar keeps it.
  explicit Progress(std::FILE* out, int64_t interval = 0, ProgressStyle style = ProgressStyle::automatic);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { finish(); }

  void update(const ProgressState& state);
  // For other jobs: how much is done (0..1) and words about it. due: worth a plain line; after half a minute of silence
  // every update is.
  void update(double share, const std::string& words, bool due);
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
  double share_ = 0;
  std::string words_;
  Clock::time_point last_;
};

}  // namespace braid::apps
