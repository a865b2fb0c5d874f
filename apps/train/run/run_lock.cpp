#include "apps/train/run/run_lock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <vector>

#include "apps/cli/text.h"
#include "braid/distributed/comm/mpi_session.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/file_system.h"

namespace braid::apps {
namespace fs = std::filesystem;

namespace {
// "process 123", with its host when that is another one: a run folder may lie where many machines see it.
std::string holder_of(const fs::path& lock_file) {
  std::ifstream file(lock_file);
  std::string pid, host;
  std::getline(file, pid);
  std::getline(file, host);
  const auto number = parse_int(trim(pid));
  if (!number) return "another process";
  return str("process ", *number, host.empty() || host == dist::host_name() ? "" : " on host " + preview(host));
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
  check(!path.empty(), ErrorKind::setting, "run.out is empty: expected the name of a folder");
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
    fail(ErrorKind::setting, "run folder " + path.string() + " is in use by " + holder_of(file) +
                                 ": expected a free folder; wait for it, stop it or choose another folder");
  }
  const std::string holder = str(::getpid(), "\n", dist::host_name(), "\n");
  if (::ftruncate(lock_, 0) != 0 || ::pwrite(lock_, holder.data(), holder.size(), 0) < 0) cannot(io::system_message());
  remove_leftovers(path);
}

void RunFolder::check_held() const {
  struct stat mine = {}, there = {};
  const bool same = ::fstat(lock_, &mine) == 0 && ::stat((path_ / ".lock").c_str(), &there) == 0 &&
                    mine.st_dev == there.st_dev && mine.st_ino == there.st_ino;
  check(same, ErrorKind::output, [&] {
    return "the folder " + path_.string() + " was removed or moved while it was in use: expected the file .lock that " +
           "this process locked; it ends, and nothing more was written there";
  });
}

// The file stays: removing it would let two processes lock two files of the same name.
RunFolder::~RunFolder() {
  if (lock_ >= 0) ::close(lock_);
}

}  // namespace braid::apps
