#include "apps/train/run/run_lock.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "apps/cli/text.h"
#include "braid/distributed/comm/mpi_session.h"
#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/io/path_status.h"

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

// The files that a run replaces as a whole.
constexpr const char* kReplaced[] = {"config.resolved.toml", "latest", "best", "status.json", "log.csv", "log.jsonl"};
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
    lock_ = io::open_locked(file.string(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC);
  } while (lock_ < 0 && errno == ENOENT);
  if (lock_ < 0) {
    if (errno != EWOULDBLOCK) cannot(io::system_message());
    fail(ErrorKind::setting, "run folder " + path.string() + " is in use by " + holder_of(file) +
                                 ": expected a free folder; wait for it, stop it or choose another folder");
  }
  const std::string holder = str(::getpid(), "\n", dist::host_name(), "\n");
  const auto n = static_cast<int64_t>(holder.size());
  if (io::uninterrupted([&] { return ::ftruncate(lock_, 0); }) != 0 || io::write_fully(lock_, holder.data(), n, 0) < n)
    cannot(io::system_message());
  for (const char* name : kReplaced) io::remove_leftovers((path / name).string());
}

void RunFolder::check_held() const {
  struct stat mine = {};
  const auto there = io::path_status(path_ / ".lock", ErrorKind::output);
  const bool same = ::fstat(lock_, &mine) == 0 && there && mine.st_dev == there->st_dev && mine.st_ino == there->st_ino;
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
