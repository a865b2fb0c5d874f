// A file that appears complete or not at all: written to a temporary beside the target, synchronised to the disk, then
// renamed over the target. When anything fails before commit() returns, the old file is intact and the temporary is
// gone. A pipe, a device, and a file that is open already (/dev/stdout, /dev/fd/N), are never replaced: bytes go there
// as they are written.
//
// The temporary is "NAME.tmp-PID-RANDOM", made anew and locked, with the rights of the file that it replaces; until it
// is complete its owner may write it in any case. One without a lock is of a process that was killed: the next
// AtomicFile of that name removes it, where it may write it or, once complete, read it.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace braid::io {

class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);  // Error(output) when the folder is missing or not writable
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();  // without commit(): removes the temporary

  void write(const void* bytes, int64_t n);  // appends; Error(output) with path and cause, for example a full disk
  void write(std::string_view text) { write(text.data(), static_cast<int64_t>(text.size())); }
  // Overwrites bytes already written, for headers that are known only at the end.
  void write_at(int64_t offset, const void* bytes, int64_t n);
  int64_t size() const { return size_; }  // bytes written so far
  void commit();  // flush, fsync, rename, fsync of the folder; nothing may be written afterwards

 private:
  void open_through();
  void open_temporary();
  [[noreturn]] void cannot_open();
  void flush();
  void write_out(int64_t offset, const char* bytes, int64_t n);
  [[noreturn]] void give_up(const char* doing, int64_t after);  // after: bytes written

  std::string path_;              // the target, symbolic links resolved
  bool through_ = false;          // a pipe, a device or an open file
  int descriptor_ = -1;           // of the open file
  std::string temporary_;         // beside it; empty once committed or removed
  std::optional<mode_t> rights_;  // of the file that is replaced
  bool closed_ = false;
  int fd_ = -1;
  int64_t size_ = 0;
  std::string buffer_;  // the last bytes of size_, not yet written out
};

// Replaces the file at `path` by `bytes`, completely or not at all.
void write_file(const std::string& path, std::string_view bytes);

// Removes the temporaries of `path` that killed processes have left; best effort.
void remove_leftovers(const std::string& path);

}  // namespace braid::io
