// A file that grows at its end, such as a log. Text that could not be written, for example because the disk was full
// for a moment, is kept in memory and written before the text of the next call.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace braid::io {

class AppendFile {
 public:
  // Opens or creates the file and cuts off what follows its first `keep` bytes. Error(output).
  explicit AppendFile(const std::string& path, int64_t keep = INT64_MAX);
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;
  ~AppendFile();  // tries once more to write what is kept

  // From now on each append() goes to the file that bears the name then: one that was moved away, as logs are rotated,
  // is made anew. An empty file begins with `head`.
  void follow(std::string head);
  void append(std::string_view text);  // Error(output) with path and cause; the text, or the rest of it, is kept
  void sync() { sync_later()(); }      // everything to the disk; Error(output)
  // sync() in two parts. Now: what is kept is written. The result brings what the file has by then to the disk; it may
  // be called by another thread, and after the end of this object. Error(output), both.
  std::function<void()> sync_later();

 private:
  void reopen_if_moved();
  void flush();

  std::string path_, kept_, head_;
  std::string begun_;  // of the line that kept_ goes on with, what the file has; another file gets the whole line
  bool follows_ = false;
  int fd_ = -1;
};

}  // namespace braid::io
