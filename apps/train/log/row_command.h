// log.command: a process of the user that gets the lines of log.jsonl on its standard input, one JSON object each, as
// they are written. It can neither stop nor delay training: lines wait in a queue of bounded length while it does not
// read, and those that find the queue full are dropped and counted.
#pragma once
#include <sys/types.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace braid::apps {

class RowCommand {
 public:
  static constexpr size_t max_lines = 1024;  // that wait
  static constexpr double grace_s = 10;      // for the process to read the rest and to end, when the run is over

  // Starts `command` in a shell and a process group of its own, so that Ctrl-C leaves it the last rows. `note`: for the
  // user, called by the thread of send() and of the destructor. Error(setting) when it cannot be started.
  RowCommand(const std::string& command, std::function<void(const std::string&)> note);
  RowCommand(const RowCommand&) = delete;
  RowCommand& operator=(const RowCommand&) = delete;
  // Closes its input and waits for it to end; after the grace it is ended by SIGTERM, then by SIGKILL.
  ~RowCommand();

  void send(const std::string& line);  // with line end; does not wait

 private:
  void write_lines();  // the thread's work
  bool write_line(std::string_view line);
  bool reap(double seconds);  // true: it has ended, and is noted where its code was not 0
  void end_process();

  std::function<void(const std::string&)> note_;
  pid_t process_ = -1;  // -1: it has ended
  int input_ = -1;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> lines_;
  int64_t dropped_ = 0;
  bool closing_ = false, abandoned_ = false, reader_gone_ = false, written_ = false, told_ = false;
  std::thread writer_;
};

}  // namespace braid::apps
