#include "braid/models/inference/constraint/automaton.h"

#include <algorithm>

namespace braid::models {

Automaton::Automaton(std::shared_ptr<const Grammar> grammar) : grammar_(std::move(grammar)) { clear(); }

void Automaton::clear() {
  table_.clear(), infos_.clear(), states_.clear(), frames_.clear(), frame_index_.clear();
  ways_ = 0;
  frames_.push_back({});
  intern({});
  Ways ways;
  seen_.clear();
  follow(0, 0, ways);
  start_ = intern(std::move(ways));
}

uint32_t Automaton::frame(const Frame& frame) {
  const auto [found, added] = frame_index_.emplace(frame, static_cast<uint32_t>(frames_.size()));
  if (added) frames_.push_back(frame);
  return found->second;
}

// Adds the instructions that read the next byte when the text continues at pc.
void Automaton::follow(uint32_t pc, uint32_t under, Ways& ways) {
  open_.assign(1, {pc, under});
  while (!open_.empty() && ways.size() < max_ways) {
    const auto [at, top] = open_.back();
    open_.pop_back();
    if (!seen_.insert(uint64_t{at} << 32 | top).second) continue;
    ++work_;
    const Grammar::Instruction& i = grammar_->code[at];
    // A repeat whose frame is `top`, or will be, has read `count` texts.
    const auto again = [&](uint32_t repeat, uint32_t count, uint32_t parent) {
      const Grammar::Instruction& r = grammar_->code[repeat];
      if (count >= r.b) open_.emplace_back(repeat + 1, parent);
      if (count < r.c) open_.emplace_back(r.a, frame({repeat, count, parent}));
    };
    switch (i.op) {
      case Op::bytes:
      case Op::accept:
        ways.emplace_back(at, top);
        break;
      case Op::split:
        open_.emplace_back(i.b, top);
        open_.emplace_back(i.a, top);
        break;
      case Op::jump:
        open_.emplace_back(i.a, top);
        break;
      case Op::call:
        open_.emplace_back(i.a, frame({at, 0, top}));
        break;
      case Op::repeat:
        again(at, 0, top);
        break;
      case Op::back: {
        const Frame f = frames_[top];
        const Grammar::Instruction& caller = grammar_->code[f.caller];
        if (caller.op == Op::call) open_.emplace_back(f.caller + 1, f.parent);
        // Without a maximum, counts from the minimum on are alike.
        else
          again(f.caller, caller.c == Grammar::unlimited ? std::min(f.count + 1, caller.b) : f.count + 1, f.parent);
        break;
      }
    }
  }
}

Automaton::State Automaton::intern(Ways ways) {
  std::ranges::sort(ways);
  const auto [found, added] = states_.emplace(std::move(ways), static_cast<State>(infos_.size()));
  if (!added) return found->second;
  const Ways& all = found->first;
  const auto accepting = std::ranges::count_if(all, [&](Way w) { return grammar_->code[w.first].op == Op::accept; });
  infos_.push_back({&all, accepting > 0, accepting > 0 && accepting == std::ssize(all)});
  table_.resize(table_.size() + kSymbols, infos_.size() == 1 ? dead : kUnknown);
  ways_ += all.size();
  return found->second;
}

Automaton::State Automaton::compute(State state, int symbol) {
  Ways ways;
  seen_.clear();
  for (const auto& [pc, under] : *infos_[state].ways) {
    const Grammar::Instruction& i = grammar_->code[pc];
    if (i.op == Op::bytes && grammar_->sets[i.a][static_cast<size_t>(symbol)]) follow(pc + 1, under, ways);
  }
  work_ += infos_[state].ways->size();
  const State next = intern(std::move(ways));
  table_[size_t{state} * kSymbols + static_cast<size_t>(symbol)] = next;
  return next;
}

// The ways of a state with the frames that they need, which are found in `frames` and get new numbers.
Automaton::Ways Automaton::kept(const Ways& ways, const std::vector<Frame>& frames,
                                std::unordered_map<uint32_t, uint32_t>& renamed) {
  Ways result;
  for (const auto& [pc, top] : ways) {
    std::vector<uint32_t> chain;
    for (uint32_t f = top; !renamed.contains(f); f = frames[f].parent) chain.push_back(f);
    for (; !chain.empty(); chain.pop_back()) {
      const Frame& f = frames[chain.back()];
      renamed[chain.back()] = frame({f.caller, f.count, renamed.at(f.parent)});
    }
    result.emplace_back(pc, renamed.at(top));
  }
  return result;
}

void Automaton::keep(std::span<State> states) {
  std::vector<Ways> all;
  for (const State s : states) all.push_back(*infos_[s].ways);
  const std::vector<Frame> frames = frames_;
  clear();
  std::unordered_map<uint32_t, uint32_t> renamed{{0, 0}};
  for (size_t i = 0; i < states.size(); ++i) states[i] = intern(kept(all[i], frames, renamed));
  limit_ = std::max(max_entries, 2 * (ways_ + frames_.size()));
}

}  // namespace braid::models
