#include "apps/cli/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>

#include "apps/cli/text.h"
#include "braid/tensor/error.h"

namespace braid::apps {
namespace {

std::string fixed(double value, int digits) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.*f", digits, value);
  return buffer;
}

int terminal_width(std::FILE* out) {
  winsize size{};
  if (::ioctl(::fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

}  // namespace

std::string progress_words(const ProgressState& s) {
  std::string text = str("step ", s.step, "/", s.total, "  loss ", fixed(s.loss, 4));
  if (!std::isnan(s.val_loss)) {
    text += "  val " + fixed(s.val_loss, 4);
    if (s.val_step >= 0 && s.val_step != s.step) text += str(" at ", s.val_step);
  }
  if (s.tok_per_s > 0) text += "  " + human(s.tok_per_s, 3) + " tok/s";
  if (s.images_per_s > 0) text += "  " + human(s.images_per_s, 3) + " images/s";
  if (s.eta_s >= 0) text += "  ETA " + duration(s.eta_s);
  return text;
}

std::string progress_bar(double share, const std::string& words, int width) {
  share = std::clamp(share, 0.0, 1.0);
  char percent[8];
  std::snprintf(percent, sizeof percent, "%3d%%", static_cast<int>(share * 100));
  const int columns = std::min(40, width - 9 - static_cast<int>(words.size()));
  std::string text = percent;
  if (columns >= 5) {
    const auto full = static_cast<size_t>(share * columns);
    text += " [" + std::string(full, '#') + std::string(static_cast<size_t>(columns) - full, '.') + "] ";
  } else {
    text += "  ";
  }
  text += words;
  // The last column stays free: some terminals wrap when it is written.
  if (static_cast<int>(text.size()) >= width) text.resize(static_cast<size_t>(std::max(0, width - 1)));
  return text;
}

bool line_due(int64_t step, int64_t total) {
  if (step <= 1 || step == total) return true;
  const int64_t largest = std::max<int64_t>(1, std::min(step / 5, total / 20));
  int64_t power = 1;
  while (power * 10 <= largest) power *= 10;
  const int64_t interval = largest >= 5 * power ? 5 * power : largest >= 2 * power ? 2 * power : power;
  return step % interval == 0;
}

ProgressStyle progress_style(const std::string& name) {
  const auto found = std::find(std::begin(progress_styles), std::end(progress_styles), name);
  check(found != std::end(progress_styles), "progress", [&] { return "there is no style '" + name + "'"; });
  return static_cast<ProgressStyle>(found - std::begin(progress_styles));
}

static bool shows_a_bar(std::FILE* out) {
  for (const char* launched : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_STEP_ID"})
    if (std::getenv(launched)) return false;
  const char* kind = std::getenv("TERM");
  return ::isatty(::fileno(out)) == 1 && !(kind && std::string(kind) == "dumb");
}

Progress::Progress(std::FILE* out, int64_t interval, ProgressStyle style)
    : out_(out),
      interval_(interval),
      terminal_(style == ProgressStyle::automatic ? shows_a_bar(out) : style == ProgressStyle::bar) {}

void Progress::draw() {
  std::fprintf(out_, "\r\033[K%s", progress_bar(share_, words_, terminal_width(out_)).c_str());
  std::fflush(out_);
  drawn_ = true;
}

void Progress::update(const ProgressState& now) {
  ProgressState state = now;
  const bool old = state.val_step >= 0 && state.val_step != state.step;
  if (old && !terminal_) state.val_loss = NAN;
  const bool end = state.step == state.total || !(old || std::isnan(state.val_loss));
  const bool due = interval_ > 0 ? state.step % interval_ == 0 || end : end || line_due(state.step, state.total);
  const double share = state.total > 0 ? static_cast<double>(state.step) / static_cast<double>(state.total) : 0;
  update(share, progress_words(state), due);
}

void Progress::update(double share, const std::string& words, bool due) {
  share_ = share, words_ = words;
  const auto now = Clock::now();
  const auto passed = last_ == Clock::time_point() ? Clock::duration::max() : now - last_;
  if (terminal_) {
    if (passed < std::chrono::milliseconds(100)) {
      drawn_ = true;  // finish() draws the state that this update leaves out
      return;
    }
    draw();
  } else {
    // Half a minute of silence looks like a hang, however slow the steps are.
    if (!due && passed < std::chrono::seconds(30)) return;
    std::fprintf(out_, "%s\n", words.c_str());
    std::fflush(out_);
  }
  last_ = now;
}

void Progress::note(const std::string& text) {
  if (drawn_) std::fprintf(out_, "\r\033[K");
  std::fprintf(out_, "%s\n", text.c_str());
  std::fflush(out_);
  if (drawn_) draw();
}

void Progress::finish() {
  if (!drawn_) return;
  draw();
  std::fprintf(out_, "\n");
  std::fflush(out_);
  drawn_ = false;
}

}  // namespace braid::apps
