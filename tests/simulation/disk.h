// The disk below one folder of a simulated process. The system calls change real files, in memory; beside them the disk
// remembers what a power loss would leave: of a file the bytes of its last fsync, of a folder the entries of its last
// fsync. What came later may be there or not: a file has its old bytes, its new ones, or a mixture of sectors of both
// and of zeros, at a length between; of the changes of a folder a first part is there, or any of them.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/simulation/random.h"

namespace braid::simulation {

class Disk {
 public:
  // The root exists, and all that it holds is on the disk. Without `loses_power` only paths of open files are kept.
  Disk(std::string root, bool loses_power);

  bool holds(const std::string& path) const { return path.starts_with(root_ + "/") || path == root_; }

  // After the system call has succeeded. Paths are absolute and below the root.
  void opened(int fd, const std::string& path);
  void duplicated(int fd, int copy) {
    if (const auto found = open_.find(fd); found != open_.end()) open_[copy] = found->second;
  }
  void closed(int fd) { open_.erase(fd); }
  std::string path_of(int fd) const;  // "": not of this disk
  void added(const std::string& path, bool folder);
  // bytes: of the file that is removed or replaced, as bytes_to_lose() gave them before.
  void removed(const std::string& path, const std::string& bytes);
  void renamed(const std::string& from, const std::string& to, const std::string& bytes);
  void exchanged(const std::string& from, const std::string& to);
  void synced(int fd);
  // "" where there is no file.
  static std::string bytes_of(const std::string& path);
  std::string bytes_to_lose(const std::string& path) const { return loses_power_ ? bytes_of(path) : ""; }

  // Makes `folder`, which does not exist, with what a power loss now leaves.
  void lose_power(const std::string& folder, Random& random) const;

 private:
  struct Node {
    bool folder = false;
    std::string stable;                                                    // bytes of the last fsync
    std::string last;                                                      // bytes when the last name went
    bool nameless = false;                                                 // it has no name any more
    std::map<std::string, std::shared_ptr<Node>> entries, stable_entries;  // now, and on the disk
  };
  using Entry = std::shared_ptr<Node>;
  struct Change {  // `node` goes from a name of one folder to a name of another; null: from or to nowhere
    Entry from, to;
    std::string from_name, to_name;
    Entry node;
    Entry back = nullptr;  // goes the other way at the same time
    void apply() const;
  };
  Entry find(const std::string& path) const;
  std::pair<Entry, std::string> parent_of(const std::string& path) const;
  void load(const Entry& folder, const std::string& path);
  void write_file(const Node& node, const std::string& now, const std::string& to, Random& random) const;
  void write_folder(const Entry& stable, const std::string& to, Random& random) const;
  std::map<const Node*, std::string> current_bytes() const;

  std::string root_;
  bool loses_power_;
  Entry top_ = std::make_shared<Node>();
  std::map<int, std::pair<Entry, std::string>> open_;  // files and folders; null: no power is lost
  std::vector<Change> changes_;                        // since the last fsync of their folders, in order
};

}  // namespace braid::simulation
