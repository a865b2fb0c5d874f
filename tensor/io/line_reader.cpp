#include "braid/tensor/io/line_reader.h"

#include <algorithm>

namespace braid::io {

LineReader::LineReader(const std::string& path) : reader_(path) {}

bool LineReader::next() {
  constexpr int64_t kBlock = 1 << 20;
  text_.clear();
  begin_ = end_;
  complete_ = false;
  while (!complete_) {
    if (at_ == block_.size()) {
      if (reader_.remaining() == 0) break;
      block_ = reader_.read_string(std::min(kBlock, reader_.remaining()));
      at_ = 0;
    }
    const size_t stop = block_.find('\n', at_);
    complete_ = stop != std::string::npos;
    text_.append(block_, at_, complete_ ? stop - at_ : std::string::npos);
    at_ = complete_ ? stop + 1 : block_.size();
  }
  end_ = begin_ + static_cast<int64_t>(text_.size()) + (complete_ ? 1 : 0);
  number_ += end_ > begin_;
  return end_ > begin_;
}

}  // namespace braid::io
