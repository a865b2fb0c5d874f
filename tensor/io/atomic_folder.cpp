#include "braid/tensor/io/atomic_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>
#include <vector>

#include "braid/tensor/io/path_status.h"
#include "braid/tensor/io/reader.h"

namespace braid::io {

namespace fs = std::filesystem;

namespace {

constexpr ErrorKind kOutput = ErrorKind::output;

void check_lock(int lock, const fs::path& folder, const fs::path& target) {
  if (lock >= 0) return;
  const std::string cause = errno == EWOULDBLOCK ? "another process is writing it; wait for it to end"
                                                 : folder.string() + ": " + system_message() + "; check its rights";
  fail(kOutput, "cannot write " + target.string() + ": " + cause);
}

bool same_bytes(const fs::path& a, const fs::path& b) {
  Reader one(a.string()), other(b.string());
  if (one.size() != other.size()) return false;
  constexpr int64_t block = 1 << 20;
  while (one.remaining() > 0) {
    const int64_t n = std::min(block, one.remaining());
    if (one.read_string(n) != other.read_string(n)) return false;
  }
  return true;
}

}  // namespace

fs::path target_folder(const fs::path& target) {
  std::error_code error;
  fs::path path = real_path(fs::absolute(target, error), kOutput);
  if (!path.has_filename()) path = path.parent_path();  // "out/" is "out"
  check(path.has_filename(), ErrorKind::setting,
        [&] { return "cannot write '" + target.string() + "': name a folder"; });
  check(!is_link(path, kOutput), ErrorKind::setting,
        [&] { return "cannot write " + target.string() + ": it is a link to nothing; choose another name"; });
  check(!exists(path, kOutput) || is_folder(path, kOutput), ErrorKind::setting,
        [&] { return "cannot use " + target.string() + ": expected a folder, found a file; choose another name"; });
  return path;
}

AtomicFolder::AtomicFolder(const fs::path& target, std::string last)
    : target_(target_folder(target)), last_(std::move(last)) {
  const fs::path beside = target_.parent_path() / ("." + target_.filename().string() + ".unfinished"),
                 inside = target_ / ".unfinished";
  for (const fs::path& leftover : {beside, inside}) clean(leftover);
  inside_ = is_folder(target_, kOutput);
  const fs::path building = inside_ ? inside : beside;
  lock_ = make_locked_folder(building);
  check_lock(lock_, building, target_);
  building_ = building;
}

AtomicFolder::~AtomicFolder() {
  std::error_code ignored;
  for (int attempt = 0; attempt < 2 && !building_.empty(); ++attempt) fs::remove_all(building_, ignored);
  if (lock_ >= 0) ::close(lock_);
}

void AtomicFolder::clean(const fs::path& leftover) const {
  if (!exists(leftover, kOutput)) return;
  const int lock = open_locked(leftover.string(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (lock < 0 && errno == ENOENT) return;
  check_lock(lock, leftover, target_);
  const fs::path last = leftover / last_;
  if (!is_same(last, target_ / last_, kOutput)) unlink_from_target(leftover);
  remove_path(leftover);
  ::close(lock);
}

// The files that are links to those of `building`.
void AtomicFolder::unlink_from_target(const fs::path& building) const {
  for (const fs::path& file : list_folder(building, kOutput)) {
    const fs::path placed = target_ / file.filename();
    if (is_same(file, placed, kOutput)) ::unlink(placed.c_str());
  }
}

void AtomicFolder::check_free(const std::string& replaced) const {
  if (!inside_) return;
  for (const fs::path& file : list_folder(building_, kOutput)) {
    const fs::path placed = target_ / file.filename();
    const bool free = !exists(placed, kOutput) ||
                      (is_file(placed, kOutput) && (file.filename() == replaced || same_bytes(file, placed)));
    check(free, kOutput, [&] {
      return target_.string() + " already holds " + file.filename().string() +
             ", which would be replaced; choose another folder, nothing was written";
    });
  }
}

bool AtomicFolder::commit(const std::string& replaced) {
  sync_folder(building_);
  if (!inside_) {
    check(std::rename(building_.c_str(), target_.c_str()) == 0, kOutput, [&] {
      return "cannot rename the finished folder to " + target_.string() + ": " + system_message() +
             "; choose another folder";
    });
    building_.clear();
    sync_folder(target_.parent_path());
    return true;
  }
  check_free(replaced);
  std::vector<fs::path> files = list_folder(building_, kOutput);
  std::stable_partition(files.begin(), files.end(), [&](const fs::path& file) { return file.filename() != last_; });
  std::erase_if(files, [&](const fs::path& file) {
    const fs::path placed = target_ / file.filename();
    return exists(placed, kOutput) && (file.filename() != replaced || same_bytes(file, placed));
  });
  for (const fs::path& file : files) {
    const fs::path placed = target_ / file.filename();
    // A file that is replaced, or a file system without links: a rename, which a killed process leaves half done where
    // there are others, and the same call completes.
    if (::link(file.c_str(), placed.c_str()) == 0 ||
        ((file.filename() == replaced || errno == EPERM || errno == EOPNOTSUPP) &&
         std::rename(file.c_str(), placed.c_str()) == 0))
      continue;
    const std::string cause = system_message();
    unlink_from_target(building_);
    fail(kOutput, "cannot put " + file.filename().string() + " into " + target_.string() + ": " + cause);
  }
  sync_folder(target_);
  return !files.empty();
}

}  // namespace braid::io
