// A file that grows at its end, such as a log.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace braid::io {

class AppendFile {
 public:
  // Opens or creates the file and cuts off what follows its first `keep` bytes. Error(output).
  explicit AppendFile(const std::string& path, int64_t keep = INT64_MAX);
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;
  ~AppendFile();

  void append(std::string_view text);  // Error(output) with path and cause, for example a full disk
  void sync();                         // to the disk

 private:
  std::string path_;
  int fd_ = -1;
};

}  // namespace braid::io
