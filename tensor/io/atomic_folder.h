// Files that appear in a folder together or not at all. They are built in a hidden folder: beside a target that is new,
// which one rename then puts in place, else inside of it, from where each file is linked to its place. What a killed
// process has left, links included, the next AtomicFolder of that target removes.
#pragma once
#include <filesystem>
#include <string>

namespace braid::io {

// `target`, a folder or the name of a new one, absolute and without links. Error(setting) for all else.
std::filesystem::path target_folder(const std::filesystem::path& target);

class AtomicFolder {
 public:
  // last: the file without which the others do not count, for example config.json. Error(output) when the folder cannot
  // be made, or while another process builds for the same target.
  AtomicFolder(const std::filesystem::path& target, std::string last);
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;
  ~AtomicFolder();  // without commit(): removes what was built

  const std::filesystem::path& path() const { return building_; }  // where to write the files
  const std::filesystem::path& target() const { return target_; }  // absolute, links resolved
  // Error(output) when the target holds a file that one of those built so far would replace by other bytes. `replaced`:
  // the one file that may be, "" for none.
  void check_free(const std::string& replaced = "") const;
  // Puts the files in place. false: the target held them all, the same bytes, and is unchanged.
  bool commit(const std::string& replaced = "");

 private:
  void clean(const std::filesystem::path& leftover) const;
  void unlink_from_target(const std::filesystem::path& building) const;

  std::filesystem::path target_, building_;
  std::string last_;
  bool inside_ = false;
  int lock_ = -1;
};

}  // namespace braid::io
