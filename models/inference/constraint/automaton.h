// Reads texts of a grammar byte by byte. States are made when they are first reached, and each remembers what follows
// it.
#pragma once
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "braid/models/inference/constraint/grammar.h"

namespace braid::models {

class Automaton {
 public:
  using State = uint32_t;
  static constexpr State dead = 0;  // no text of the grammar begins so
  // The maximum number of ways to read a text so far that are followed: with more the language becomes smaller, and
  // no other text is read.
  static constexpr size_t max_ways = 4096;

  explicit Automaton(std::shared_ptr<const Grammar> grammar);

  State start() const { return start_; }
  // After one more byte, or kNoText.
  State next(State state, int symbol) {
    const State known = table_[size_t{state} * kSymbols + static_cast<size_t>(symbol)];
    return known != kUnknown ? known : compute(state, symbol);
  }
  bool accepts(State state) const { return infos_[state].accepts; }  // the text is complete
  bool ends(State state) const { return infos_[state].ends; }        // nothing can follow a complete text

  // Whether the states take more memory than they should.
  bool large() const { return ways_ + frames_.size() > limit_ || infos_.size() > max_states; }
  // Forgets all states but these, which get new numbers, and start().
  void keep(std::span<State> states);
  // Steps of the grammar since the beginning, for limits of time.
  uint64_t work() const { return work_; }

 private:
  using Op = Grammar::Op;
  static constexpr size_t kSymbols = 257, max_states = 8192, max_entries = 200000;
  static constexpr State kUnknown = UINT32_MAX;

  // Where to continue at the `back` of a rule: an immutable list, the same one for the same contents.
  struct Frame {
    uint32_t caller, count, parent;  // caller: a call or a repeat; count: of texts that a repeat has read
    bool operator==(const Frame&) const = default;
  };
  struct FrameHash {
    size_t operator()(const Frame& f) const {
      return (f.caller * 0x9E3779B97F4A7C15ull) ^ (f.count * 0xC2B2AE3D27D4EB4Full) ^
             (f.parent * 0x165667B19E3779F9ull);
    }
  };
  using Way = std::pair<uint32_t, uint32_t>;  // an instruction that reads a byte, or accept, and its frame
  using Ways = std::vector<Way>;
  struct Info {
    const Ways* ways;
    bool accepts, ends;
  };

  void clear();
  State compute(State state, int symbol);
  State intern(Ways ways);
  uint32_t frame(const Frame& frame);
  void follow(uint32_t pc, uint32_t frame, Ways& ways);
  Ways kept(const Ways& ways, const std::vector<Frame>& frames, std::unordered_map<uint32_t, uint32_t>& renamed);

  std::shared_ptr<const Grammar> grammar_;
  std::vector<State> table_;  // (states, kSymbols)
  std::vector<Info> infos_;
  std::map<Ways, State> states_;
  std::vector<Frame> frames_;  // 0: the bottom
  std::unordered_map<Frame, uint32_t, FrameHash> frame_index_;
  std::vector<std::pair<uint32_t, uint32_t>> open_;  // of follow()
  std::unordered_set<uint64_t> seen_;
  State start_ = dead;
  size_t ways_ = 0, limit_ = max_entries;
  uint64_t work_ = 0;
};

}  // namespace braid::models
