#include "braid/models/data/tokenizers/training/word_counts.h"

#include <algorithm>
#include <cstring>

#include "braid/tensor/error.h"

namespace braid::models::text {
namespace {

uint32_t hash_of(std::string_view word) {
  uint64_t h = word.size() * 0x9E3779B97F4A7C15u;
  const auto mix = [&](uint64_t x) {
    h = (h ^ x) * 0xBF58476D1CE4E5B9u;
    h ^= h >> 29;
  };
  uint64_t x = 0;
  for (; word.size() >= 8; word.remove_prefix(8)) {
    std::memcpy(&x, word.data(), 8);
    mix(x);
  }
  x = 0;
  for (const char c : word) x = x << 8 | static_cast<unsigned char>(c);
  mix(x);
  return static_cast<uint32_t>(h >> 32);
}

}  // namespace

void WordCounts::grow() {
  slots_.assign(std::max<size_t>(1024, slots_.size() * 2), 0);
  for (size_t i = 0; i < entries_.size(); ++i) {
    size_t at = entries_[i].hash & (slots_.size() - 1);
    while (slots_[at] != 0) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = static_cast<uint32_t>(i + 1);
  }
}

void WordCounts::add(std::string_view word, int64_t count) { add(word, hash_of(word), count); }

void WordCounts::add(std::string_view word, uint32_t hash, int64_t count) {
  if (entries_.size() * 2 >= slots_.size()) grow();
  size_t at = hash & (slots_.size() - 1);
  for (; slots_[at] != 0; at = (at + 1) & (slots_.size() - 1)) {
    Entry& e = entries_[slots_[at] - 1];
    if (e.hash == hash && text(e) == word) {
      e.count += count;
      return;
    }
  }
  check(entries_.size() < UINT32_MAX && word.size() <= UINT32_MAX, ErrorKind::input,
        "too many different words to count: expected at most 4294967295");
  entries_.push_back({bytes_.size(), static_cast<uint32_t>(word.size()), hash, count});
  slots_[at] = static_cast<uint32_t>(entries_.size());
  bytes_ += word;
}

void WordCounts::add(const WordCounts& other) {
  for (const Entry& e : other.entries_) add(other.text(e), e.hash, e.count);
}

int64_t WordCounts::keep_commonest(size_t max_words) {
  if (entries_.size() <= max_words) return 0;
  std::vector<int64_t> counts;
  counts.reserve(entries_.size());
  for (const Entry& e : entries_) counts.push_back(e.count);
  // Kept are the words with a count above that of the first word that has no place.
  const size_t kept = max_words - max_words / 4;
  std::ranges::nth_element(counts, counts.begin() + static_cast<std::ptrdiff_t>(kept), std::greater<>());
  const int64_t dropped = counts[kept];
  WordCounts rest;
  for (const Entry& e : entries_)
    if (e.count > dropped) rest.add(text(e), e.hash, e.count);
  const auto gone = static_cast<int64_t>(entries_.size() - rest.entries_.size());
  *this = std::move(rest);
  return gone;
}

std::vector<CountedWord> WordCounts::sorted() const {
  std::vector<CountedWord> all;
  all.reserve(entries_.size());
  for (const Entry& e : entries_) all.push_back({text(e), e.count});
  std::ranges::sort(all, {}, &CountedWord::text);
  return all;
}

void WordCounts::clear() {
  bytes_.clear();
  entries_.clear();
  std::ranges::fill(slots_, 0);
}

}  // namespace braid::models::text
