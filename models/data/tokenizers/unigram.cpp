#include "braid/models/data/tokenizers/unigram.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "braid/models/data/tokenizers/unicode.h"
#include "braid/tensor/base/strings.h"

namespace braid::models::text {

namespace {

constexpr double kUnknownPenalty = 10;  // below the lowest score
constexpr size_t kNowhere = static_cast<size_t>(-1);

}  // namespace

Unigram::Unigram(const Section& section, bool byte_level) {
  if (byte_level) section.unsupported("Unigram behind ByteLevel");
  double lowest = std::numeric_limits<double>::infinity();
  const nlohmann::json& vocabulary = section.at("vocab").value();
  if (!vocabulary.is_array()) section.fail("vocab", "a list");
  for (const nlohmann::json& entry : vocabulary) {
    const bool fits = entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_number() &&
                      std::isfinite(entry[1].get<double>());
    if (!fits) section.fail("vocab", "pairs of a token and a score", detail::preview(entry.dump()));
    tokens_.push_back(entry[0].get<std::string>());
    scores_.push_back(entry[1].get<double>());
    lowest = std::min(lowest, scores_.back());
  }
  if (tokens_.empty()) section.fail("vocab", "at least one token");
  for (size_t id = 0; id < tokens_.size(); ++id) ids_[tokens_[id]] = static_cast<int32_t>(id);  // the last one counts
  unk_ = static_cast<int32_t>(section.integer("unk_id", 0, size() - 1));
  unk_score_ = lowest - kUnknownPenalty;
  for (const auto& [text, id] : ids_)
    if (!text.empty()) sorted_.push_back(id);
  std::ranges::sort(sorted_, {}, [&](int32_t id) -> const std::string& { return tokens_[static_cast<size_t>(id)]; });
  for (size_t i = 0; i < sorted_.size(); ++i) {
    Places& places = first_[static_cast<unsigned char>(tokens_[static_cast<size_t>(sorted_[i])][0])];
    if (places.second == 0) places.first = i;
    places.second = i + 1;
  }
  if (!section.flag("byte_fallback", false)) return;
  for (int byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", byte);
    bytes_.push_back(id_of(name));
  }
}

int32_t Unigram::id_of(std::string_view token) const {
  const auto at = ids_.find(token);
  return at == ids_.end() ? -1 : at->second;
}

const std::string* Unigram::token(int32_t id) const {
  return id >= 0 && id < size() ? &tokens_[static_cast<size_t>(id)] : nullptr;
}

// The tokens that the text begins with, from short to long.
template <class Action>
void Unigram::each_prefix(std::string_view text, Scratch& scratch, const Action& action) const {
  const auto& range = first_[static_cast<unsigned char>(text[0])];
  size_t begin = range.first, end = range.second;
  const auto byte_at = [&](size_t place, size_t depth) {
    ++scratch.steps;
    return static_cast<unsigned char>(tokens_[static_cast<size_t>(sorted_[place])][depth]);
  };
  // The first place from `from` on whose token has a byte of at least `least` there.
  const auto bound = [&](size_t from, size_t depth, int least) {
    size_t low = from, high = end;
    while (low < high) {
      const size_t middle = low + (high - low) / 2;
      if (byte_at(middle, depth) < least)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  };
  for (size_t depth = 1; begin < end; ++depth) {
    const int32_t id = sorted_[begin];
    if (tokens_[static_cast<size_t>(id)].size() == depth) {
      action(depth, id);
      ++begin;
    }
    if (depth == text.size() || begin == end) return;
    const auto next = static_cast<unsigned char>(text[depth]);
    begin = bound(begin, depth, next);
    end = bound(begin, depth, next + 1);
  }
}

// The pieces of the best path, from the last to the first, unknown characters apart.
void Unigram::cut(std::string_view word, Scratch& scratch) const {
  scratch.best.assign(word.size() + 1, {-1, kNowhere, 0});
  for (size_t at = 0; at < word.size();) {
    const size_t character = std::min(utf8_length(word[at]), word.size() - at);
    const double here = scratch.best[at].score;
    bool known = false;
    const auto offer = [&](size_t length, int32_t id, double score) {
      Scratch::Node& node = scratch.best[at + length];
      if (node.begin == kNowhere || score + here > node.score) node = {id, at, score + here};
    };
    each_prefix(word.substr(at), scratch, [&](size_t length, int32_t id) {
      offer(length, id, scores_[static_cast<size_t>(id)]);
      known = known || length == character;
    });
    if (!known) offer(character, unk_, unk_score_);
    at += character;
  }
  scratch.pieces.clear();
  for (size_t end = word.size(); end > 0; end = scratch.best[end].begin)
    scratch.pieces.push_back({scratch.best[end].begin, end, scratch.best[end].id});
}

void Unigram::append_unknown(std::string_view text, std::vector<int32_t>& ids) const {
  const int32_t id = id_of(text);
  const auto in_vocabulary = [&](unsigned char byte) { return bytes_[byte] >= 0; };
  if (id >= 0 || bytes_.empty() || !std::ranges::all_of(text, in_vocabulary))
    ids.push_back(id >= 0 ? id : unk_);
  else
    for (const char byte : text) ids.push_back(bytes_[static_cast<unsigned char>(byte)]);
}

void Unigram::encode(std::string_view word, std::vector<int32_t>& ids, Scratch& scratch) const {
  const bool cached = word.size() <= WordCache::longest_word;
  const uint64_t hash = cached ? WordCache::hash(word) : 0;
  if (cached && scratch.cache.find(word, hash, ids)) return;
  const size_t before = ids.size();
  cut(word, scratch);
  const std::vector<Scratch::Piece>& pieces = scratch.pieces;
  for (size_t i = pieces.size(); i-- > 0;) {
    if (pieces[i].id != unk_) {
      ids.push_back(pieces[i].id);
      continue;
    }
    const size_t begin = pieces[i].begin;
    while (i > 0 && pieces[i - 1].id == unk_) --i;
    append_unknown(word.substr(begin, pieces[i].end - begin), ids);
  }
  if (cached) scratch.cache.add(word, hash, std::span(ids).subspan(before));
}

}  // namespace braid::models::text
