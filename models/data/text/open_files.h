// Files that are opened when they are read, of which only the most recently read stay open.
#pragma once
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "braid/tensor/io/reader.h"

namespace braid::models::text {

class OpenFiles {
 public:
  explicit OpenFiles(size_t max_open) : max_open_(max_open) {}
  // The open file, which stays open as long as the pointer lives. Error(input) when it cannot be opened. Safe to call
  // from several threads at once.
  std::shared_ptr<const io::Reader> get(const std::string& path);

 private:
  using Entry = std::pair<std::string, std::shared_ptr<const io::Reader>>;
  size_t max_open_;
  std::mutex mutex_;
  std::list<Entry> files_;  // the most recently read first
  std::unordered_map<std::string, std::list<Entry>::iterator> by_path_;
};

}  // namespace braid::models::text
