#include "tests/simulation/disk.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <set>

namespace braid::simulation {

namespace fs = std::filesystem;

namespace {
constexpr size_t kSector = 512;

}  // namespace

std::string Disk::bytes_of(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  struct stat status {};
  ::fstat(fd, &status);
  std::string bytes(static_cast<size_t>(status.st_size), '\0');
  const ssize_t n = ::read(fd, bytes.data(), bytes.size());
  bytes.resize(static_cast<size_t>(std::max<ssize_t>(n, 0)));
  ::close(fd);
  return bytes;
}

void Disk::Change::apply() const {
  if (from && from->stable_entries.contains(from_name) && from->stable_entries[from_name] == node)
    from->stable_entries.erase(from_name);
  if (to) to->stable_entries[to_name] = node;
  if (back) from->stable_entries[from_name] = back;
}

Disk::Disk(std::string root, bool loses_power) : root_(std::move(root)), loses_power_(loses_power) {
  top_->folder = true;
  if (loses_power_) load(top_, root_);
}

void Disk::load(const Entry& folder, const std::string& path) {
  for (const auto& entry : fs::directory_iterator(path)) {
    const Entry node = std::make_shared<Node>();
    const std::string name = entry.path().filename().string();
    node->folder = entry.is_directory();
    folder->entries[name] = folder->stable_entries[name] = node;
    if (node->folder) {
      load(node, entry.path().string());
    } else {
      node->stable = bytes_of(entry.path().string());
    }
  }
}

Disk::Entry Disk::find(const std::string& path) const {
  Entry at = top_;
  for (const fs::path& part : fs::path(path).lexically_relative(root_)) {
    if (part == ".") continue;
    const auto next = at->entries.find(part.string());
    if (next == at->entries.end()) return nullptr;
    at = next->second;
  }
  return at;
}

std::pair<Disk::Entry, std::string> Disk::parent_of(const std::string& path) const {
  const fs::path whole(path);
  return {find(whole.parent_path().string()), whole.filename().string()};
}

void Disk::opened(int fd, const std::string& path) { open_[fd] = {loses_power_ ? find(path) : nullptr, path}; }

std::string Disk::path_of(int fd) const {
  const auto found = open_.find(fd);
  return found == open_.end() ? "" : found->second.second;
}

void Disk::added(const std::string& path, bool folder) {
  if (!loses_power_) return;
  const auto [parent, name] = parent_of(path);
  if (parent->entries.contains(name)) return;
  const Entry node = std::make_shared<Node>();
  node->folder = folder;
  parent->entries[name] = node;
  changes_.push_back({nullptr, parent, "", name, node});
}

void Disk::removed(const std::string& path, const std::string& bytes) {
  if (!loses_power_) return;
  const auto [parent, name] = parent_of(path);
  const Entry node = parent->entries.at(name);
  node->last = bytes;
  node->nameless = true;
  parent->entries.erase(name);
  changes_.push_back({parent, nullptr, name, "", node});
}

void Disk::renamed(const std::string& from, const std::string& to, const std::string& bytes) {
  for (auto& [fd, open] : open_)
    if (open.second == from || open.second.starts_with(from + "/")) open.second.replace(0, from.size(), to);
  if (!loses_power_) return;
  const auto [parent, name] = parent_of(from);
  const auto [target, target_name] = parent_of(to);
  const Entry node = parent->entries.at(name);
  if (const auto replaced = target->entries.find(target_name); replaced != target->entries.end()) {
    replaced->second->last = bytes;
    replaced->second->nameless = true;
  }
  parent->entries.erase(name);
  target->entries[target_name] = node;
  changes_.push_back({parent, target, name, target_name, node});
}

void Disk::exchanged(const std::string& from, const std::string& to) {
  if (!loses_power_) return;
  const auto [parent, name] = parent_of(from);
  const auto [target, target_name] = parent_of(to);
  Entry &one = parent->entries.at(name), &other = target->entries.at(target_name);
  changes_.push_back({parent, target, name, target_name, one, other});
  std::swap(one, other);
}

void Disk::synced(int fd) {
  const auto found = open_.find(fd);
  if (found == open_.end() || !found->second.first) return;
  const auto& [node, path] = found->second;
  if (!node->folder) {
    node->stable = node->nameless ? node->last : bytes_of(path);
    return;
  }
  std::erase_if(changes_, [&](const Change& change) {
    if (change.from != node && change.to != node) return false;
    change.apply();
    return true;
  });
}

std::map<const Disk::Node*, std::string> Disk::current_bytes() const {
  std::map<const Node*, std::string> bytes;
  const auto visit = [&](const auto& self, const Entry& folder, const std::string& path) -> void {
    for (const auto& [name, node] : folder->entries) {
      if (node->folder)
        self(self, node, path + "/" + name);
      else
        bytes[node.get()] = bytes_of(path + "/" + name);
    }
  };
  visit(visit, top_, root_);
  return bytes;
}

void Disk::write_file(const Node& node, const std::string& now, const std::string& to, Random& random) const {
  std::string bytes = node.stable;
  const uint64_t kind = random.below(3);
  if (kind == 1) bytes = now;
  if (kind == 2 && now != bytes) {
    const size_t shorter = std::min(now.size(), bytes.size()), longer = std::max(now.size(), bytes.size());
    std::string mixed(shorter + random.below(longer - shorter + 1), '\0');
    for (size_t begin = 0; begin < mixed.size(); begin += kSector) {
      const std::string* source = std::array<const std::string*, 3>{&now, &bytes, nullptr}[random.below(3)];
      if (!source && begin < bytes.size()) source = &bytes;  // zeros only where there was nothing
      if (!source || begin >= source->size()) continue;
      const size_t n = std::min({kSector, source->size() - begin, mixed.size() - begin});
      mixed.replace(begin, n, *source, begin, n);
    }
    bytes = mixed;
  }
  std::ofstream(to, std::ios::binary) << bytes;
}

void Disk::write_folder(const Entry& stable, const std::string& to, Random& random) const {
  const std::map<const Node*, std::string> now = current_bytes();
  const auto write = [&](const auto& self, const Entry& folder, const std::string& path) -> void {
    fs::create_directory(path);
    for (const auto& [name, node] : folder->stable_entries) {
      const std::string at = path + "/" + name;
      if (node->folder) {
        self(self, node, at);
      } else {
        const auto current = now.find(node.get());
        write_file(*node, current == now.end() ? node->last : current->second, at, random);
      }
    }
  };
  write(write, stable, to);
}

// It changes what is stable, and is called once: the process ends after it.
void Disk::lose_power(const std::string& folder, Random& random) const {
  std::map<const Node*, size_t> first_parts;  // of the changes of a folder: how many are there
  std::set<const Node*> any;                  // folders of whose changes any may be there
  std::map<const Node*, size_t> counts, seen;
  const auto folder_of = [](const Change& change) { return (change.to ? change.to : change.from).get(); };
  for (const Change& change : changes_) ++counts[folder_of(change)];
  for (const Change& change : changes_) {  // not in the order of addresses, which are others each time
    const Node* of = folder_of(change);
    if (first_parts.contains(of)) continue;
    if (random.one_in(2)) any.insert(of);
    first_parts[of] = random.below(counts[of] + 1);
  }
  for (const Change& change : changes_) {
    const Node* of = folder_of(change);
    const bool there = any.contains(of) ? random.one_in(2) : seen[of]++ < first_parts[of];
    if (there) change.apply();
  }
  write_folder(top_, folder, random);
}

}  // namespace braid::simulation
