#include "braid/models/inference/constraint/grammar.h"

#include <algorithm>
#include <set>

#include "braid/tensor/error.h"

namespace braid::models {
namespace {

using Op = Grammar::Op;

// What can be said about the rules of a grammar before a text is read.
class GrammarCheck {
 public:
  GrammarCheck(const Grammar& grammar, const std::vector<std::pair<uint32_t, std::string>>& names)
      : grammar_(grammar), names_(names) {}

  // Error where a rule calls itself before it has read a byte.
  void recursion(uint32_t rule) {
    if (empty_.contains(rule)) return;
    check(open_.insert(rule).second, ErrorKind::input,
          [&] { return named(rule) + " refers to itself without another value around it"; });
    bool empty = false;
    walk(rule, [&](const Grammar::Instruction& i) {
      if (i.op == Op::back) empty = true;
      if (i.op != Op::call && i.op != Op::repeat) return false;
      recursion(i.a);
      return i.op == Op::call ? empty_[i.a] : i.b == 0;
    });
    open_.erase(rule);
    empty_[rule] = empty;
  }

  // Error where no text is complete. A rule is, when its end is reached behind complete ones.
  void completion() {
    struct Place {
      uint32_t pc, rule;
    };
    std::set<uint32_t> complete;
    std::unordered_map<uint32_t, std::vector<Place>> waiting;  // behind calls of a rule that is not complete yet
    std::vector<bool> seen(grammar_.code.size());
    std::vector<Place> left{{0, 0}};
    for (const auto& [rule, name] : names_) left.push_back({rule, rule});
    while (!left.empty()) {
      const Place at = left.back();
      left.pop_back();
      if (seen[at.pc]) continue;
      seen[at.pc] = true;
      const Grammar::Instruction& i = grammar_.code[at.pc];
      const bool calls = i.op == Op::call || (i.op == Op::repeat && i.b > 0);
      if (i.op == Op::split) left.push_back({i.b, at.rule});
      if (i.op == Op::split || i.op == Op::jump) left.push_back({i.a, at.rule});
      if (i.op == Op::bytes || i.op == Op::repeat || i.op == Op::call)
        (calls && !complete.contains(i.a) ? waiting[i.a] : left).push_back({at.pc + 1, at.rule});
      if ((i.op == Op::back || i.op == Op::accept) && complete.insert(at.rule).second)
        left.insert(left.end(), waiting[at.rule].begin(), waiting[at.rule].end());
    }
    if (complete.contains(0)) return;
    const auto bad = std::ranges::find_if(
        names_, [&](const auto& rule) { return !rule.second.empty() && !complete.contains(rule.first); });
    fail(ErrorKind::input, (bad == names_.end() ? "the schema" : named(bad->first)) +
                               " has no finite value: every one contains another; make one of them optional");
  }

 private:
  // Visits each instruction that is reached from `first`: behind splits and jumps, and behind those for which
  // passes(instruction) is true.
  template <class Passes>
  void walk(uint32_t first, const Passes& passes) const {
    std::vector<uint32_t> left{first};
    for (std::set<uint32_t> seen; !left.empty();) {
      const uint32_t pc = left.back();
      left.pop_back();
      if (!seen.insert(pc).second) continue;
      const Grammar::Instruction& i = grammar_.code[pc];
      if (i.op == Op::split) left.push_back(i.b);
      if (i.op == Op::split || i.op == Op::jump) left.push_back(i.a);
      if (passes(i)) left.push_back(pc + 1);
    }
  }
  std::string named(uint32_t rule) const {
    const auto found = std::ranges::find(names_, rule, &std::pair<uint32_t, std::string>::first);
    return found == names_.end() || found->second.empty() ? "the schema" : "'" + found->second + "'";
  }

  const Grammar& grammar_;
  const std::vector<std::pair<uint32_t, std::string>>& names_;
  std::set<uint32_t> open_;
  std::unordered_map<uint32_t, bool> empty_;  // whether a rule may read nothing
};

}  // namespace

ByteSet byte_range(int first, int last) {
  ByteSet set;
  for (int b = first; b <= last; ++b) set.set(static_cast<size_t>(b));
  return set;
}

ByteSet any_byte_of(std::string_view bytes) {
  ByteSet set;
  for (const char c : bytes) set.set(static_cast<unsigned char>(c));
  return set;
}

uint32_t GrammarWriter::add(Op op, uint32_t a, uint32_t b, uint32_t c) {
  check(grammar_.code.size() < Grammar::max_instructions, ErrorKind::input, [&] {
    return str("the schema is too large: at most ", Grammar::max_instructions,
               " steps of its automaton; shorten names and lists of values");
  });
  grammar_.code.push_back({op, a, b, c});
  return here() - 1;
}

void GrammarWriter::bytes(const ByteSet& set) {
  const auto [found, added] = set_index_.emplace(set, static_cast<uint32_t>(grammar_.sets.size()));
  if (added) grammar_.sets.push_back(set);
  add(Op::bytes, found->second);
}

void GrammarWriter::text(std::string_view literal) {
  for (const char c : literal) bytes(any_byte_of({&c, 1}));
}

void GrammarWriter::either(size_t n, const std::function<void(size_t)>& emit) {
  std::vector<Label> ends;
  for (size_t i = 0; i < n; ++i) {
    const bool last = i + 1 == n;
    const Label split = last ? 0 : add(Op::split, here() + 1);
    emit(i);
    if (last) break;
    ends.push_back(add(Op::jump));
    at(split).b = here();
  }
  for (const Label end : ends) at(end).a = here();
}

void GrammarWriter::either(const std::vector<Emit>& parts) {
  either(parts.size(), [&](size_t i) { parts[i](); });
}

void GrammarWriter::optional(const Emit& part) {
  const Label split = add(Op::split, here() + 1);
  part();
  at(split).b = here();
}

uint32_t GrammarWriter::rule(const Emit& body, const std::function<void(uint32_t)>& begun, const std::string& name) {
  const Label over = add(Op::jump);
  const uint32_t begin = here();
  names_.emplace_back(begin, name);
  if (begun) begun(begin);
  body();
  add(Op::back);
  at(over).a = here();
  return begin;
}

uint32_t GrammarWriter::shared(const char* name, const Emit& body) {
  if (const auto found = rules_.find(name); found != rules_.end()) return found->second;
  return rule(body, [&](uint32_t begin) { rules_[name] = begin; });
}

void GrammarWriter::words(const std::vector<std::string>& sorted) { words(sorted, 0, sorted.size(), 0); }

// The words from begin to end, behind the bytes that they share.
void GrammarWriter::words(const std::vector<std::string>& sorted, size_t begin, size_t end, size_t depth) {
  while (sorted[begin].size() > depth && sorted[begin][depth] == sorted[end - 1][depth])
    bytes(any_byte_of({&sorted[begin][depth++], 1}));
  std::vector<std::pair<size_t, size_t>> parts;  // with the same next byte, or at their end
  for (size_t i = begin; i < end; ++i) {
    const auto next = [&](size_t word) {
      return sorted[word].size() == depth ? -1 : int{static_cast<unsigned char>(sorted[word][depth])};
    };
    if (parts.empty() || next(parts.back().first) != next(i)) parts.emplace_back(i, i);
    parts.back().second = i + 1;
  }
  if (parts.size() == 1) return;
  either(parts.size(), [&](size_t i) {
    if (sorted[parts[i].first].size() > depth) words(sorted, parts[i].first, parts[i].second, depth);
  });
}

Grammar GrammarWriter::finish() {
  GrammarCheck check_rules(grammar_, names_);
  check_rules.recursion(0);
  for (const auto& [rule, name] : names_) check_rules.recursion(rule);
  check_rules.completion();
  return std::move(grammar_);
}

}  // namespace braid::models
