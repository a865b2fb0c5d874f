#include "braid/models/data/text/open_files.h"

namespace braid::models::text {

std::shared_ptr<const io::Reader> OpenFiles::get(const std::string& path) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const auto found = by_path_.find(path); found != by_path_.end()) {
    files_.splice(files_.begin(), files_, found->second);
    return files_.front().second;
  }
  if (files_.size() == max_open_) {
    by_path_.erase(files_.back().first);
    files_.pop_back();
  }
  files_.emplace_front(path, std::make_shared<const io::Reader>(path));
  by_path_[path] = files_.begin();
  return files_.front().second;
}

}  // namespace braid::models::text
