#include "apps/train/run_lock.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <optional>
#include <vector>

#include "apps/cli/text.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/file_system.h"

namespace braid::apps {
namespace fs = std::filesystem;

namespace {
std::optional<int64_t> holder_of(const fs::path& lock_file) {
  std::string pid;
  std::getline(std::ifstream(lock_file), pid);
  return parse_int(trim(pid));
}

// Temporary files of io::AtomicFile ("latest.tmp-PID-N") for the files that a run writes here. Only the holder of the
// lock writes these, so none is in use; files of other names may belong to other commands.
void remove_leftovers(const fs::path& run) {
  std::error_code ignored;
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(run, ignored)) {
    const std::string name = entry.path().filename().string();
    for (const std::string file : {"config.resolved.toml", "latest", "best", "status.json"}) {
      const std::string head = file + ".tmp-";
      const bool digits = name.find_first_not_of("0123456789-", head.size()) == std::string::npos;
      if (name.starts_with(head) && digits) found.push_back(entry.path());
    }
  }
  for (const fs::path& file : found) fs::remove(file, ignored);
}
}  // namespace

RunFolder::RunFolder(const fs::path& path) : path_(path) {
  check(!path.empty(), ErrorKind::setting,
        [] { return std::string("run.out is empty: expected the name of a folder"); });
  const fs::path file = path / ".lock";
  const auto cannot = [&](const std::string& why) {
    if (lock_ >= 0) ::close(lock_);
    fail(ErrorKind::output, "cannot lock run folder " + path.string() + ": " + why);
  };
  do {  // again when the folder was removed in between
    io::make_folder(path);
    lock_ = io::open_locked(file.string(), O_RDWR | O_CREAT | O_CLOEXEC);
  } while (lock_ < 0 && errno == ENOENT);
  if (lock_ < 0) {
    if (errno != EWOULDBLOCK) cannot(io::system_message());
    const auto number = holder_of(file);
    fail(ErrorKind::setting, "run folder " + path.string() + " is in use by " +
                                 (number ? "process " + std::to_string(*number) : "another process") +
                                 ": expected a free folder; wait for it, stop it or choose another run.out");
  }
  const std::string pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(lock_, 0) != 0 || ::pwrite(lock_, pid.data(), pid.size(), 0) < 0) cannot(io::system_message());
  remove_leftovers(path);
}

// The file stays: removing it would let two processes lock two files of the same name.
RunFolder::~RunFolder() {
  if (lock_ >= 0) ::close(lock_);
}

}  // namespace braid::apps
