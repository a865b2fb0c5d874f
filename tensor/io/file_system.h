// Shared by all code that writes files: complete writes, folders, messages of the operating system.
#pragma once
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <string>

#include "braid/tensor/error.h"

namespace braid::io {

// An error of the operating system that says nothing about what a file holds: too many open files, no memory, a disk
// that does not answer. The same call may succeed later, so nothing else is taken in the place of such a file.
class SystemError : public Error {
 public:
  using Error::Error;
};

// "No space left on device", for the current errno.
std::string system_message();

// Writes n bytes at `offset`, or at the end of a file opened for appending when it is negative. Returns how many bytes
// were written: n, or fewer and the cause in errno.
int64_t write_fully(int descriptor, const void* bytes, int64_t n, int64_t offset);

// Creates the folder and its parents, each synced into the one above it, so that a power cut does not lose the folder
// with all that is written into it later. Error(setting) when something else has the name, Error(output) otherwise.
void make_folder(const std::filesystem::path& folder);

// Error(input) when this is a folder whose files this process may not see: they would look as if they were not there.
void check_readable(const std::filesystem::path& folder);

// Makes creations, renames and removals inside the folder survive a power cut. One that may be written but not read
// cannot be synced, and is left to the system. Error(output) on other failures.
void sync_folder(const std::filesystem::path& folder);

// std::rename(). Error(output) on failure.
void rename_path(const std::filesystem::path& from, const std::filesystem::path& to);

// Removes a file, or a folder with all that is in it, if there is one; tries twice. Error(output) on failure.
void remove_path(const std::filesystem::path& path);

// The result of a system call that is made again when a signal interrupts it.
template <class Call>
int uninterrupted(const Call& call) {
  int result = 0;
  do result = call();
  while (result < 0 && errno == EINTR);
  return result;
}

// ::open(), uninterrupted.
int open_file(const std::string& path, int flags);

// Opens a file or folder and locks it (flock, exclusive) without waiting. The lock is on what bears the name at the
// end: a file that was removed or renamed before it could be locked is opened anew. Returns the descriptor, whose end
// is the end of the lock, or -1 and the cause in errno: EWOULDBLOCK when another process holds the lock.
int open_locked(const std::string& path, int flags);
// Creates the folder and locks it: another process that works in it meanwhile makes the result -1, as above. A link is
// not followed.
int make_locked_folder(const std::filesystem::path& folder);

}  // namespace braid::io
