#include "braid/models/data/tokenizers/added_tokens.h"

#include <algorithm>

#include "braid/models/data/tokenizers/unicode.h"
#include "braid/tensor/error.h"

namespace braid::models::text {

void Trie::add(std::string_view text, int32_t value) {
  if (text.empty()) return;
  if (nodes_.empty()) nodes_.emplace_back();
  begins_[static_cast<unsigned char>(text[0])] = true;
  size_t node = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const auto& next = nodes_[node].next;
    const auto found = std::find_if(next.begin(), next.end(), [&](const auto& edge) { return edge.first == byte; });
    if (found != next.end()) {
      node = static_cast<size_t>(found->second);
      continue;
    }
    nodes_[node].next.emplace_back(byte, static_cast<int32_t>(nodes_.size()));
    node = nodes_.size();
    nodes_.emplace_back();
  }
  if (nodes_[node].value < 0) nodes_[node].value = value;
}

int32_t Trie::find(std::string_view text, size_t from, size_t& begin, size_t& end) const {
  if (nodes_.empty()) return -1;
  for (; from < text.size(); ++from) {
    if (!begins_[static_cast<unsigned char>(text[from])]) continue;
    int32_t value = -1, node = 0;
    for (size_t at = from; node >= 0; ++at) {
      const Node& here = nodes_[static_cast<size_t>(node)];
      if (here.value >= 0) {
        value = here.value;
        end = at;
      }
      node = -1;
      if (at == text.size()) break;
      for (const auto& [byte, target] : here.next)
        if (byte == static_cast<unsigned char>(text[at])) node = target;
    }
    if (value >= 0) {
      begin = from;
      return value;
    }
  }
  return -1;
}

AddedTokens::AddedTokens(const Section& root, const Normalizer& normalizer,
                         const std::function<int32_t(const std::string&)>& id_of, int64_t vocabulary) {
  if (!root.has("added_tokens")) return;
  std::unordered_map<std::string, size_t> by_content;
  int64_t largest = -1;  // id of an added token
  for (const Section& section : root.list("added_tokens")) {
    AddedToken t{.id = static_cast<int32_t>(section.integer("id", 0, (1 << 22) - 1)),
                 .content = section.text("content"),
                 .single_word = section.flag("single_word"),
                 .lstrip = section.flag("lstrip"),
                 .rstrip = section.flag("rstrip"),
                 .normalized = section.flag("normalized"),
                 .special = section.flag("special")};
    if (t.content.empty()) section.fail("content", "at least one character");
    const auto known = by_content.find(t.content);
    int64_t id = known != by_content.end() ? tokens_[known->second].id : id_of(t.content);
    if (id < 0) id = std::max(largest + 1, vocabulary);
    if (id != t.id)
      section.fail("id", str(id, " for '", t.content, "' (its id in the vocabulary, else the next free one)"),
                   std::to_string(t.id));
    largest = std::max(largest, id);
    if (known != by_content.end()) {
      tokens_[known->second] = std::move(t);
      continue;
    }
    by_content[t.content] = tokens_.size();
    by_id_[t.id] = tokens_.size();
    tokens_.push_back(std::move(t));
  }
  for (const bool special : {true, false})  // of equal texts a special one counts
    for (size_t i = 0; i < tokens_.size(); ++i) {
      const AddedToken& t = tokens_[i];
      if (t.special != special) continue;
      std::string storage;
      tries_[t.normalized].add(t.normalized ? normalizer(t.content, storage) : t.content, static_cast<int32_t>(i));
    }
}

const AddedToken* AddedTokens::find(int32_t id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &tokens_[found->second];
}

// from: where the search continues; done: the end of the last match; spaces: the end of the last run of white space
// that was read, so that none is read twice.
bool AddedTokens::next(std::string_view text, Table table, bool as_text, size_t& from, size_t done, size_t& spaces,
                       Match& match) const {
  size_t begin = 0, end = 0;
  for (int32_t i; (i = trie(table).find(text, from, begin, end)) >= 0;) {
    from = end;
    const AddedToken& t = tokens_[static_cast<size_t>(i)];
    if (as_text && t.special) continue;
    if (t.single_word) {
      size_t before = begin, after = end;
      if (begin > 0 && is_word_character(previous_code_point(text, before))) continue;
      if (end < text.size() && is_word_character(next_code_point(text, after))) continue;
    }
    if (t.lstrip && end <= done) continue;  // inside of the white space that the last match took
    while (t.lstrip && begin > done) {
      size_t before = begin;
      if (!is_white_space(previous_code_point(text, before))) break;
      begin = before;
    }
    if (t.rstrip && end >= spaces)
      for (spaces = end; spaces < text.size();) {
        size_t after = spaces;
        if (!is_white_space(next_code_point(text, after))) break;
        spaces = after;
      }
    match = {t.id, begin, t.rstrip ? spaces : end};
    return true;
  }
  return false;
}

}  // namespace braid::models::text
