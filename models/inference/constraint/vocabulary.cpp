#include "braid/models/inference/constraint/vocabulary.h"

#include <algorithm>

namespace braid::models {

Vocabulary::Vocabulary(const text::Tokenizer& tokenizer, const std::vector<std::string>& shown)
    : tokenizer_(tokenizer) {
  const auto is_shown = [&](std::string_view bytes) {
    return std::ranges::any_of(shown, [&](const std::string& text) { return text.find(bytes) != std::string::npos; });
  };
  std::vector<std::pair<std::string_view, int32_t>> texts;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    const std::string_view bytes = tokenizer.token_bytes(id);
    if (bytes.empty() || (tokenizer.is_special(id) && !is_shown(bytes)))
      not_text_.push_back(id);
    else
      texts.emplace_back(bytes, id);
  }
  std::ranges::sort(texts);
  std::vector<uint32_t> open;  // nodes of the bytes so far
  const auto close = [&](size_t depth) {
    for (; open.size() > depth; open.pop_back()) nodes_[open.back()].end = static_cast<uint32_t>(nodes_.size());
  };
  std::string_view before;
  for (const auto& [bytes, id] : texts) {
    const auto [at, other] = std::ranges::mismatch(bytes, before);
    close(static_cast<size_t>(at - bytes.begin()));
    while (open.size() < bytes.size()) {
      const auto byte = static_cast<uint8_t>(bytes[open.size()]);
      open.push_back(static_cast<uint32_t>(nodes_.size()));
      nodes_.push_back({0, static_cast<uint32_t>(tokens_.size()), static_cast<uint32_t>(open.size()), byte});
    }
    tokens_.push_back(id);
    longest_ = std::max(longest_, static_cast<uint32_t>(bytes.size()));
    before = bytes;
  }
  close(0);
  nodes_.push_back({static_cast<uint32_t>(nodes_.size() + 1), static_cast<uint32_t>(tokens_.size()), 0, 0});
}

bool Vocabulary::is_text(int32_t token) const {
  return token >= 0 && token < size() && !std::ranges::binary_search(not_text_, token);
}

}  // namespace braid::models
