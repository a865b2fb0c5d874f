#include "apps/train/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "apps/cli/text.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/file_system.h"

namespace braid::apps {
namespace fs = std::filesystem;

RunFolder::RunFolder(const fs::path& path) : path_(path) {
  check(!path.empty(), ErrorKind::setting,
        [] { return std::string("run.out is empty: expected the name of a folder"); });
  io::make_folder(path);
  const fs::path file = path / ".lock";
  const auto cannot = [&](const std::string& why) {
    if (lock_ >= 0) ::close(lock_);
    fail(ErrorKind::output, "cannot lock run folder " + path.string() + ": " + why);
  };
  lock_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock_ < 0) cannot(io::system_message());
  if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) cannot(io::system_message());
    char pid[32] = {};
    const ssize_t count = ::pread(lock_, pid, sizeof pid - 1, 0);
    ::close(lock_);
    const auto number = parse_int(trim(std::string_view(pid, count > 0 ? static_cast<size_t>(count) : 0)));
    fail(ErrorKind::setting, "run folder " + path.string() + " is in use by " +
                                 (number ? "process " + std::to_string(*number) : "another process") +
                                 ": expected a free folder; wait for it, stop it or choose another run.out");
  }
  const std::string pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(lock_, 0) != 0 || ::pwrite(lock_, pid.data(), pid.size(), 0) < 0) cannot(io::system_message());
}

// The file stays: removing it would let two processes lock two files of the same name.
RunFolder::~RunFolder() {
  if (lock_ >= 0) ::close(lock_);
}

}  // namespace braid::apps
