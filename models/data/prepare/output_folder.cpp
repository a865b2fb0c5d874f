#include "braid/models/data/prepare/output_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "braid/models/data/text/manifest.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/file_system.h"

namespace braid::models::text {
namespace {

namespace fs = std::filesystem;

// Files that prepare() makes. prepare() replaces a target only when it holds nothing else.
bool is_ours(const std::string& name) {
  const auto shaped = [&](const char* begin, const char* end) {
    return name.starts_with(begin) && name.ends_with(end);
  };
  for (const char* file : {manifest_name, "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
                           "generation_config.json", "chat_template.jinja"})
    if (name == file) return true;
  return shaped("train-", ".tok") || shaped("val-", ".tok") || shaped("tasks-", ".jsonl");
}

void check_target(const std::string& target) {
  std::error_code error;
  const fs::file_status status = fs::status(target, error);
  if (!fs::exists(status)) return;
  check(fs::is_directory(status), ErrorKind::setting,
        [&] { return "cannot prepare data in " + target + ": it is a file; name a new folder"; });
  bool has_manifest = false;
  std::string foreign;
  for (const auto& entry : fs::directory_iterator(target, error)) {
    const std::string name = entry.path().filename().string();
    has_manifest = has_manifest || name == manifest_name;
    if (!is_ours(name)) foreign = name;
    if (has_manifest && !foreign.empty()) break;
  }
  check(!error, ErrorKind::output, [&] { return "cannot list " + target + ": " + error.message(); });
  if (foreign.empty() && !has_manifest && !fs::is_empty(target, error)) foreign = "files without a dataset.json";
  check(foreign.empty(), ErrorKind::setting, [&] {
    return "cannot prepare data in " + target + ": expected a new or empty folder, or older prepared data, found " +
           foreign + "; name another folder";
  });
}

[[noreturn]] void fail_output(const std::string& doing, const std::string& path) {
  fail(ErrorKind::output,
       "cannot " + doing + " " + path + ": " + io::system_message() + "; check the place and its rights");
}

// Absolute, without a slash at its end and links resolved.
fs::path target_path(const std::string& target) {
  std::error_code error;
  fs::path path = fs::absolute(target, error).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // "out/" is "out"
  if (fs::is_symlink(path, error)) path = fs::weakly_canonical(path, error);
  check(path.has_filename(), ErrorKind::setting,
        [&] { return "cannot prepare data in " + target + ": name a new folder"; });
  return path;
}

}  // namespace

std::string building_folder(const std::string& target) {
  const fs::path path = target_path(target);
  std::string hidden = ".";
  hidden += path.filename().string();
  return (path.parent_path() / (hidden + ".preparing")).string();
}

PreparedFolder::PreparedFolder(const std::string& target, bool keep_leftovers) : target_(target_path(target).string()) {
  check_target(target_);
  const std::string building = building_folder(target);
  do {  // again when its holder has renamed or removed it in between
    io::make_folder(building);
    lock_ = io::open_locked(building, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  } while (lock_ < 0 && errno == ENOENT);
  if (lock_ < 0) {
    if (errno != EWOULDBLOCK) fail_output("open", building);
    fail(ErrorKind::output,
         "cannot prepare data in " + target_ + ": another process is preparing it; wait for it to end");
  }
  building_ = building;
  if (!keep_leftovers) remove_all_but({});
}

PreparedFolder::~PreparedFolder() {
  std::error_code ignored;
  if (!building_.empty() && !kept_) fs::remove_all(building_, ignored);
  if (lock_ >= 0) ::close(lock_);
}

void PreparedFolder::bring_back(const std::string& prefix) const {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(building_)) names.push_back(entry.path().filename().string());
  for (const std::string& name : names)
    if (name.starts_with(prefix)) fs::rename(file(name), file(name.substr(prefix.size())));
}

void PreparedFolder::remove_all_but(const std::vector<std::string>& names) const {
  std::error_code ignored;
  std::vector<fs::path> others;
  for (const auto& entry : fs::directory_iterator(building_, ignored))
    if (std::ranges::find(names, entry.path().filename().string()) == names.end()) others.push_back(entry.path());
  for (const fs::path& path : others) fs::remove_all(path, ignored);
}

std::string PreparedFolder::file(const std::string& name) const { return (fs::path(building_) / name).string(); }

void PreparedFolder::commit() {
  io::sync_folder(building_);
  check_target(target_);  // a long time has passed
  // A new or empty target is one rename. Older data is exchanged in one step, so that at no moment there is none; it
  // then lies in building_ and is removed.
  if (std::rename(building_.c_str(), target_.c_str()) != 0) {
    if (errno != ENOTEMPTY && errno != EEXIST) fail_output("rename the finished folder to", target_);
    if (::renameat2(AT_FDCWD, building_.c_str(), AT_FDCWD, target_.c_str(), RENAME_EXCHANGE) != 0) {
      const std::string old = building_ + ".old";  // a file system that cannot exchange
      if (std::rename(target_.c_str(), old.c_str()) != 0) fail_output("replace", target_);
      if (std::rename(building_.c_str(), target_.c_str()) != 0) fail_output("rename the finished folder to", target_);
      building_ = old;
    }
    std::error_code ignored;
    fs::remove_all(building_, ignored);
  }
  building_.clear();
  io::sync_folder(fs::path(target_).parent_path());
}

}  // namespace braid::models::text
