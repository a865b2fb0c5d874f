#include "braid/models/data/prepare/output_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "braid/models/data/text/manifest.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/atomic_folder.h"
#include "braid/tensor/io/path_status.h"

namespace braid::models::text {
namespace {

namespace fs = std::filesystem;
constexpr ErrorKind kOutput = ErrorKind::output;

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
  bool has_manifest = false;
  std::string foreign;
  const std::vector<fs::path> entries = io::list_folder(target, kOutput);
  for (const fs::path& entry : entries) {
    const std::string name = entry.filename().string();
    has_manifest = has_manifest || name == manifest_name;
    if (!is_ours(name)) foreign = name;
  }
  if (foreign.empty() && !has_manifest && !entries.empty()) foreign = "files without a dataset.json";
  check(foreign.empty(), ErrorKind::setting, [&] {
    return "cannot prepare data in " + target + ": expected a new or empty folder, or older prepared data, found " +
           foreign + "; name another folder";
  });
}

[[noreturn]] void fail_output(const std::string& doing, const std::string& path) {
  fail(ErrorKind::output,
       "cannot " + doing + " " + path + ": " + io::system_message() + "; check the place and its rights");
}

std::string replaced_folder(const std::string& building) { return building + ".old"; }

}  // namespace

std::string building_folder(const std::string& target) {
  const fs::path path = io::target_folder(target);
  std::string hidden = ".";
  hidden += path.filename().string();
  return (path.parent_path() / (hidden + ".preparing")).string();
}

PreparedFolder::PreparedFolder(const std::string& target, bool keep_leftovers)
    : target_(io::target_folder(target).string()) {
  check_target(target_);
  const std::string building = building_folder(target);
  lock_ = io::make_locked_folder(building);
  if (lock_ < 0) {
    if (errno != EWOULDBLOCK) fail_output("open", building);
    fail(ErrorKind::output,
         "cannot prepare data in " + target_ + ": another process is preparing it; wait for it to end");
  }
  building_ = building;
  try {
    // Left by a process that was killed while it exchanged two folders, where the file system cannot.
    if (const std::string old = replaced_folder(building_); io::exists(old, kOutput))
      io::exists(target_, kOutput) ? io::remove_path(old) : io::rename_path(old, target_);
    kept_ = keep_leftovers && !io::list_folder(building_, kOutput).empty();
    if (!keep_leftovers) remove_all_but({});
  } catch (...) {  // no destructor follows
    ::close(lock_);
    throw;
  }
}

PreparedFolder::~PreparedFolder() {
  std::error_code ignored;
  if (!building_.empty() && !kept_) fs::remove_all(building_, ignored);
  if (lock_ >= 0) ::close(lock_);
}

void PreparedFolder::bring_back(const std::string& prefix) const {
  for (const fs::path& path : io::list_folder(building_, kOutput)) {
    const std::string name = path.filename().string();
    if (name.starts_with(prefix)) io::rename_path(path, file(name.substr(prefix.size())));
  }
}

void PreparedFolder::remove_all_but(const std::vector<std::string>& names) const {
  for (const fs::path& path : io::list_folder(building_, kOutput)) {
    if (std::ranges::find(names, path.filename().string()) == names.end()) io::remove_path(path);
  }
}

std::string PreparedFolder::file(const std::string& name) const { return (fs::path(building_) / name).string(); }

void PreparedFolder::commit() {
  std::string replaced;  // the folder of the data before it
  io::sync_folder(building_);
  check_target(io::target_folder(target_).string());  // a long time has passed
  // A new or empty target is one rename. Older data is exchanged in one step, so that at no moment there is none; it
  // then lies in building_ and is removed.
  if (std::rename(building_.c_str(), target_.c_str()) != 0) {
    if (errno != ENOTEMPTY && errno != EEXIST) fail_output("rename the finished folder to", target_);
    if (::renameat2(AT_FDCWD, building_.c_str(), AT_FDCWD, target_.c_str(), RENAME_EXCHANGE) != 0) {
      const std::string old = replaced_folder(building_);  // a file system that cannot exchange
      if (std::rename(target_.c_str(), old.c_str()) != 0) fail_output("replace", target_);
      if (std::rename(building_.c_str(), target_.c_str()) != 0) fail_output("rename the finished folder to", target_);
      building_ = old;
    }
    replaced = building_;
  }
  building_.clear();
  io::sync_folder(fs::path(target_).parent_path());
  try {
    if (!replaced.empty()) io::remove_path(replaced);
  } catch (const Error& e) {
    fail(e.kind(), str(e.what(), "; the data in ", target_, " is complete, this is what was there before"));
  }
}

}  // namespace braid::models::text
