// The ids of words met before. Bounded: it starts anew when it is full.
#pragma once
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace braid::models::text {

class WordCache {
 public:
  static constexpr size_t longest_word = 64;  // bytes; longer ones are rarely met again

  static uint64_t hash(std::string_view word) {
    uint64_t h = 0x9E3779B97F4A7C15u ^ word.size();
    const auto mix = [&](uint64_t value) {
      h = (h ^ value) * 0xD6E8FEB86659FD93u;
      h ^= h >> 32;
    };
    size_t at = 0;
    for (uint64_t part; at + 8 <= word.size(); at += 8) {
      std::memcpy(&part, word.data() + at, 8);
      mix(part);
    }
    uint64_t rest = 0;
    for (; at < word.size(); ++at) rest = rest << 8 | static_cast<unsigned char>(word[at]);
    mix(rest);
    return h;
  }

  // True: the word is known; its ids are appended.
  bool find(std::string_view word, uint64_t hash, std::vector<int32_t>& ids) const {
    if (slots_.empty()) return false;
    for (size_t i = 0; i < probes; ++i) {
      const Slot& slot = slots_[(hash + i) % slot_count];
      if (slot.length == 0) return false;
      if (slot.hash == hash && slot.length == word.size() &&
          std::memcmp(bytes_.data() + slot.bytes, word.data(), word.size()) == 0) {
        ids.insert(ids.end(), ids_.begin() + slot.ids, ids_.begin() + slot.ids + slot.count);
        return true;
      }
    }
    return false;
  }

  void add(std::string_view word, uint64_t hash, std::span<const int32_t> ids) {
    if (ids.size() > UINT16_MAX) return;
    if (slots_.empty()) slots_.resize(slot_count);
    if (used_ >= slot_count / 2) {
      slots_.assign(slot_count, {});
      bytes_.clear(), ids_.clear();
      used_ = 0;
    }
    for (size_t i = 0; i < probes; ++i) {
      Slot& slot = slots_[(hash + i) % slot_count];
      if (slot.length != 0) continue;
      slot = {hash, static_cast<uint32_t>(bytes_.size()), static_cast<uint32_t>(ids_.size()),
              static_cast<uint16_t>(word.size()), static_cast<uint16_t>(ids.size())};
      bytes_.insert(bytes_.end(), word.begin(), word.end());
      ids_.insert(ids_.end(), ids.begin(), ids.end());
      ++used_;
      return;
    }
  }

 private:
  static constexpr size_t slot_count = 1 << 16, probes = 8;
  struct Slot {
    uint64_t hash;
    uint32_t bytes, ids;
    uint16_t length, count;
  };
  std::vector<Slot> slots_;
  std::vector<char> bytes_;
  std::vector<int32_t> ids_;
  size_t used_ = 0;
};

}  // namespace braid::models::text
