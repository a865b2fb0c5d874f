#include "braid/models/inference/text_stream.h"

#include <algorithm>
#include <utility>

#include "braid/tensor/error.h"

namespace braid::models {

TextStream::TextStream(const text::Tokenizer& tokenizer, std::vector<std::string> stops)
    : decoder_(tokenizer), stops_(std::move(stops)) {
  for (const std::string& stop : stops_) {
    check(!stop.empty(), ErrorKind::setting, "a stop string is empty: expected the text to stop at");
  }
}

std::string TextStream::push(int32_t token) { return stopped_ ? "" : add(decoder_.push(token), false); }

std::string TextStream::finish() { return stopped_ ? "" : add(decoder_.finish(), true); }

std::string TextStream::add(const std::string& more, bool last) {
  held_ += more;
  size_t cut = std::string::npos, keep = 0;  // keep: bytes at the end that may begin a stop string
  for (const std::string& stop : stops_) {
    cut = std::min(cut, held_.find(stop));
    for (size_t n = std::min(stop.size() - 1, held_.size()); n > keep; --n)
      if (held_.compare(held_.size() - n, n, stop, 0, n) == 0) keep = n;
  }
  stopped_ = cut != std::string::npos;
  std::string ready = held_.substr(0, stopped_ ? cut : last ? held_.size() : held_.size() - keep);
  held_.erase(0, stopped_ ? held_.size() : ready.size());
  return ready;
}

}  // namespace braid::models
