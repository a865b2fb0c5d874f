#include "apps/cli/progress.h"

#include <fcntl.h>
#include <poll.h>
#include <boost/test/unit_test.hpp>

#include <cmath>
#include <cstdlib>

#include "tests/apps/support.h"

using namespace braid::apps;

BOOST_AUTO_TEST_SUITE(progress)

static const ProgressState half{
    .step = 500, .total = 1000, .loss = 2.34567, .val_loss = 2.5, .tok_per_s = 12345, .eta_s = 75};

BOOST_AUTO_TEST_CASE(bar_fits_every_width) {
  const std::string words = progress_words(half);
  BOOST_TEST(progress_bar(0.5, words, 100) ==
             " 50% [##############...............] step 500/1000  loss 2.3457  val 2.5000  12.3k tok/s  ETA 1m15s");
  BOOST_TEST(progress_bar(0.5, "abcdefgh", 20) == " 50%  abcdefgh");
  for (int width = 0; width < 200; ++width)
    BOOST_TEST(int(progress_bar(0.7, words, width).size()) <= std::max(0, width - 1));
  BOOST_TEST(progress_bar(2, "x", 120).starts_with("100% [####"));
  BOOST_TEST(progress_bar(-1, "x", 120).starts_with("  0% [...."));
}

BOOST_AUTO_TEST_CASE(words_leave_out_what_is_unknown) {
  BOOST_TEST(progress_words(half) == "step 500/1000  loss 2.3457  val 2.5000  12.3k tok/s  ETA 1m15s");
  const ProgressState first{.step = 1, .total = 9, .loss = 1, .val_loss = NAN, .tok_per_s = 0, .eta_s = -1};
  BOOST_TEST(progress_words(first) == "step 1/9  loss 1.0000");
}

// A validation loss stands where it was measured; the bar keeps it, and names its step.
BOOST_AUTO_TEST_CASE(an_old_validation_is_not_shown_as_a_new_one) {
  ProgressState state = half;
  state.val_step = 400;
  BOOST_TEST(progress_words(state) == "step 500/1000  loss 2.3457  val 2.5000 at 400  12.3k tok/s  ETA 1m15s");
  const braid::test::Scratch scratch;
  std::FILE* file = std::fopen((scratch / "out.txt").c_str(), "w");
  BOOST_REQUIRE(file != nullptr);
  {
    Progress progress(file, 250);
    for (int64_t step = 200; step <= 600; ++step) {
      state.step = step;
      if (step % 180 == 0) state.val_step = step;
      if (step >= 250) progress.update(state);
    }
  }
  std::fclose(file);
  BOOST_TEST(braid::test::slurp(scratch / "out.txt") ==
             "step 250/1000  loss 2.3457  12.3k tok/s  ETA 1m15s\n"
             "step 360/1000  loss 2.3457  val 2.5000  12.3k tok/s  ETA 1m15s\n"
             "step 500/1000  loss 2.3457  12.3k tok/s  ETA 1m15s\n"
             "step 540/1000  loss 2.3457  val 2.5000  12.3k tok/s  ETA 1m15s\n");
}

static int lines(int64_t total) {
  int count = 0;
  for (int64_t step = 1; step <= total; ++step) count += line_due(step, total);
  return count;
}

BOOST_AUTO_TEST_CASE(lines_grow_apart) {
  for (int64_t step = 1; step <= 9; ++step) BOOST_TEST(line_due(step, 100000));
  BOOST_TEST(line_due(20, 100000));
  BOOST_TEST(!line_due(21, 100000));
  BOOST_TEST(line_due(200, 100000));
  BOOST_TEST(!line_due(210, 100000));
  BOOST_TEST(line_due(12347, 12347));  // the last
  for (int64_t total : {1, 2, 10, 30, 99, 100, 101, 1000, 1234, 50000, 1000000}) {
    BOOST_TEST(lines(total) >= std::min<int64_t>(total, 20));
    BOOST_TEST(lines(total) <= 120);
  }
}

BOOST_AUTO_TEST_CASE(a_file_gets_plain_lines) {
  const braid::test::Scratch scratch;
  std::FILE* file = std::fopen((scratch / "out.txt").c_str(), "w");
  BOOST_REQUIRE(file != nullptr);
  {
    Progress progress(file, 250);
    for (int64_t step = 1; step <= 1000; ++step) {
      ProgressState state = half;
      state.step = step;
      if (step % 250 != 0) state.val_loss = NAN;
      progress.update(state);
      if (step == 600) progress.note("note");
    }
  }
  std::fclose(file);
  // The first update always prints; steps that take longer than half a minute would add lines.
  BOOST_TEST(braid::test::slurp(scratch / "out.txt") ==
             "step 1/1000  loss 2.3457  12.3k tok/s  ETA 1m15s\n"
             "step 250/1000  loss 2.3457  val 2.5000  12.3k tok/s  ETA 1m15s\n"
             "step 500/1000  loss 2.3457  val 2.5000  12.3k tok/s  ETA 1m15s\nnote\n"
             "step 750/1000  loss 2.3457  val 2.5000  12.3k tok/s  ETA 1m15s\n"
             "step 1000/1000  loss 2.3457  val 2.5000  12.3k tok/s  ETA 1m15s\n");
}

// A variable as a test requires it, independent of where the tests are started; "" is unset.
struct Variable {
  Variable(const char* of, const std::string& value) : name(of) {
    if (const char* old = std::getenv(name)) before = old;
    set(value);
  }
  ~Variable() { set(before); }
  void set(const std::string& value) const {
    if (value.empty()) {
      ::unsetenv(name);
    } else {
      ::setenv(name, value.c_str(), 1);
    }
  }
  const char* name;
  std::string before;
};

// The bytes sent to a pseudo-terminal of this kind; nothing when the system gives none (a bare root without /dev/pts).
static std::string shown_on(const char* kind, ProgressStyle style = ProgressStyle::automatic, const char* rank = "") {
  const Variable term("TERM", kind), ompi("OMPI_COMM_WORLD_RANK", rank);
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0) return "";
  BOOST_REQUIRE(::grantpt(terminal) == 0 && ::unlockpt(terminal) == 0);
  std::FILE* screen = std::fopen(::ptsname(terminal), "w");
  BOOST_REQUIRE(screen != nullptr);
  {
    Progress progress(screen, 0, style);
    progress.update(0.25, "quarter", true);
    progress.note("note");
    progress.update(1, "whole", true);  // too soon to draw, but finish() must show it
  }
  // The kernel hands the text over in parts, some later than the write.
  std::string text;
  pollfd ready{.fd = terminal, .events = POLLIN};
  while (!text.ends_with("whole\r\n") && ::poll(&ready, 1, 10000) == 1) {
    char part[256];
    const ssize_t count = ::read(terminal, part, sizeof part);
    if (count <= 0) break;
    text.append(part, size_t(count));
  }
  std::fclose(screen);
  ::close(terminal);
  return text;
}

BOOST_AUTO_TEST_CASE(a_terminal_gets_one_redrawn_line) {
  const std::string text = shown_on("xterm"), dumb = shown_on("dumb");
  if (text.empty()) {  // the warning is printed
    BOOST_WARN_MESSAGE(false, "skipped: this system gives no pseudo-terminal");
    return;
  }
  BOOST_TEST(text.find("\r\033[K 25% [##########") == 0u);
  BOOST_TEST(text.find("\r\033[Knote\r\n\r\033[K 25%") != std::string::npos);
  BOOST_TEST(text.ends_with("] whole\r\n"));
  const std::string plain = "quarter\r\nnote\r\nwhole\r\n";
  BOOST_TEST(dumb == plain);
  // mpirun gives its processes a terminal even when its own output goes to a file.
  BOOST_TEST(shown_on("xterm", ProgressStyle::automatic, "0") == plain);
  BOOST_TEST(shown_on("xterm", ProgressStyle::plain) == plain);
  BOOST_TEST(shown_on("dumb", ProgressStyle::bar, "0") == text);
  BOOST_TEST((progress_style("plain") == ProgressStyle::plain));
}

BOOST_AUTO_TEST_SUITE_END()
