#include "apps/train/log/row_command.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string_view>

#include "apps/cli/signals.h"
#include "apps/cli/text.h"
#include "braid/tensor/error.h"

extern char** environ;

namespace braid::apps {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

RowCommand::RowCommand(const std::string& command, std::function<void(const std::string&)> note)
    : note_(std::move(note)) {
  int ends[2] = {-1, -1};
  check(::pipe2(ends, O_CLOEXEC) == 0, ErrorKind::setting,
        [] { return str("cannot make a pipe for log.command: ", std::strerror(errno)); });
  input_ = ends[1];
  ::fcntl(input_, F_SETFL, O_NONBLOCK);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, ends[0], 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  unblock_signals(attributes);
  sigset_t pipe_signal;  // ignored here, which its programs would inherit
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &pipe_signal);
  short flags = 0;
  posix_spawnattr_getflags(&attributes, &flags);
  posix_spawnattr_setflags(&attributes, static_cast<short>(flags | POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF));
  std::string shell = "/bin/sh", option = "-c", text = command;
  char* arguments[] = {shell.data(), option.data(), text.data(), nullptr};
  const int failed = ::posix_spawn(&process_, shell.c_str(), &files, &attributes, arguments, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  ::close(ends[0]);
  if (failed != 0) {
    ::close(input_);
    fail(ErrorKind::setting, str("cannot start a shell for log.command: ", std::strerror(failed)));
  }
  writer_ = std::thread([this] { write_lines(); });
}

void RowCommand::send(const std::string& line) {
  bool gone = false;
  {
    const std::lock_guard lock(mutex_);
    gone = reader_gone_;
    if (!gone && lines_.size() < max_lines)
      lines_.push_back(line);
    else if (!gone)
      ++dropped_;
  }
  changed_.notify_all();
  if (!gone || told_) return;
  told_ = true;
  reap(0.1);
  note_("note: log.command reads no more rows; the run continues without it");
}

void RowCommand::write_lines() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return closing_ || !lines_.empty(); });
    if (lines_.empty()) break;
    const std::string line = std::move(lines_.front());
    lines_.pop_front();
    lock.unlock();
    const bool written = write_line(line);
    lock.lock();
    if (written) continue;
    reader_gone_ = !abandoned_;
    dropped_ += abandoned_ ? std::ssize(lines_) + 1 : 0;
    lines_.clear();
    break;
  }
  written_ = true;
  changed_.notify_all();
}

// False: the reader is gone, or the wait was abandoned.
bool RowCommand::write_line(std::string_view line) {
  while (!line.empty()) {
    const ssize_t n = ::write(input_, line.data(), line.size());
    if (n > 0) {
      line.remove_prefix(static_cast<size_t>(n));
      continue;
    }
    if (n < 0 && errno != EAGAIN && errno != EINTR) return false;
    pollfd file{.fd = input_, .events = POLLOUT, .revents = 0};
    ::poll(&file, 1, 50);
    const std::lock_guard lock(mutex_);
    if (abandoned_) return false;
  }
  return true;
}

bool RowCommand::reap(double seconds) {
  const Clock::time_point until = Clock::now() + std::chrono::duration_cast<Clock::duration>(Seconds(seconds));
  while (process_ > 0) {
    int status = 0;
    const pid_t found = ::waitpid(process_, &status, WNOHANG);
    if (found == process_ || (found < 0 && errno != EINTR)) {
      process_ = -1;
      if (found > 0 && WIFEXITED(status) && WEXITSTATUS(status) != 0)
        note_(str("note: log.command ended with code ", WEXITSTATUS(status)));
      if (found > 0 && WIFSIGNALED(status)) note_(str("note: log.command was ended by signal ", WTERMSIG(status)));
    } else if (Clock::now() >= until) {
      return false;
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  return true;
}

void RowCommand::end_process() {
  const pid_t group = process_;
  for (const int signal : {SIGTERM, SIGKILL}) {
    ::kill(-group, signal);
    if (reap(2)) return;
  }
}

RowCommand::~RowCommand() {
  const Clock::time_point begin = Clock::now();
  {
    std::unique_lock lock(mutex_);
    closing_ = true;
    changed_.notify_all();
    abandoned_ = !changed_.wait_for(lock, Seconds(grace_s), [&] { return written_; });
  }
  writer_.join();
  ::close(input_);
  const double left = grace_s - Seconds(Clock::now() - begin).count();
  if (!reap(left > 0 ? left : 0)) {
    note_(str("note: log.command did not end within ", shortest(grace_s), " s after its last row and is stopped"));
    end_process();
  }
  if (dropped_ > 0) note_(str("note: log.command was too slow: ", dropped_, " rows were not sent to it"));
}

}  // namespace braid::apps
