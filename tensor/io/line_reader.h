// The lines of a file of any size, one after another: only one of them is in memory at a time.
#pragma once
#include <cstdint>
#include <string>

#include "braid/tensor/io/reader.h"

namespace braid::io {

class LineReader {
 public:
  explicit LineReader(const std::string& path);  // Error(input) when it is no regular file

  // Goes to the next line; false at the end of the file.
  bool next();
  const std::string& text() const { return text_; }  // of this line, without its line end
  bool complete() const { return complete_; }        // false: the last line of the file has no line end
  // Complete, and without the zeros that a power loss leaves where bytes had not reached the disk.
  bool intact() const { return complete_ && text_.find('\0') == std::string::npos; }
  int64_t number() const { return number_; }  // from 1
  int64_t begin() const { return begin_; }    // byte where the line begins
  int64_t end() const { return end_; }        // byte behind its line end

 private:
  Reader reader_;
  std::string block_, text_;
  size_t at_ = 0;  // in block_
  bool complete_ = false;
  int64_t number_ = 0, begin_ = 0, end_ = 0;
};

}  // namespace braid::io
