#include "braid/models/inference/constraint/constraint.h"

#include <algorithm>
#include <limits>

#include "braid/tensor/error.h"

namespace braid::models {

ConstrainedText::ConstrainedText(std::shared_ptr<const Constraint> constraint, std::vector<int32_t> ends)
    : constraint_(std::move(constraint)), ends_(std::move(ends)) {}

void ConstrainedText::begin() {
  if (automaton_) return;
  automaton_ = std::make_unique<Automaton>(constraint_->grammar);
  state_ = automaton_->start();
}

// Masks are those of states that are no more.
void ConstrainedText::keep(std::span<Automaton::State> states) {
  masks_.clear();
  automaton_->keep(states);
}

ConstrainedText::Mask ConstrainedText::compute() {
  const Vocabulary& vocabulary = *constraint_->vocabulary;
  const std::vector<Vocabulary::Node>& nodes = vocabulary.nodes();
  Mask mask(static_cast<size_t>(vocabulary.size() + 63) / 64);
  const auto set = [&](int32_t token, bool allowed) {
    if (token < 0 || token >= vocabulary.size()) return;
    const auto bit = static_cast<size_t>(token);
    mask[bit / 64] = (mask[bit / 64] & ~(uint64_t{1} << bit % 64)) | (uint64_t{allowed} << bit % 64);
  };
  // states[d]: after d bytes of the node's tokens.
  std::vector<Automaton::State> states(vocabulary.longest() + 1, Automaton::dead);
  states[0] = state_;
  const uint64_t limit = automaton_->work() + max_work;
  for (size_t i = 0; i + 1 < nodes.size();) {
    const Vocabulary::Node& node = nodes[i];
    const Automaton::State next = automaton_->next(states[node.depth - 1], node.byte);
    states[node.depth] = next;
    check(automaton_->work() < limit, ErrorKind::input,
          "the schema has too many ways to continue this text; make its alternatives fewer or more different");
    if (next == Automaton::dead) {
      i = node.end;
      continue;
    }
    if (automaton_->large()) keep(std::span(states).first(node.depth + 1));
    for (uint32_t t = node.first_token; t < nodes[i + 1].first_token; ++t) set(vocabulary.tokens()[t], true);
    ++i;
  }
  state_ = states[0];
  if (automaton_->next(state_, kNoText) != Automaton::dead)
    for (const int32_t token : vocabulary.not_text()) set(token, true);
  for (const int32_t token : ends_) set(token, automaton_->accepts(state_));
  return mask;
}

void ConstrainedText::mask(std::span<float> logits) {
  begin();
  auto found = masks_.find(state_);
  if (found == masks_.end()) {
    Mask mask = compute();
    check(std::ranges::any_of(mask, [](uint64_t bits) { return bits != 0; }), ErrorKind::input,
          "no token of this model's vocabulary can continue the text in the format that is asked for");
    if ((masks_.size() + 1) * mask.size() * sizeof(uint64_t) > max_mask_bytes) masks_.clear();
    found = masks_.emplace(state_, std::move(mask)).first;
  }
  const Mask& mask = found->second;
  for (size_t id = 0; id < logits.size(); ++id)
    if (id / 64 >= mask.size() || !(mask[id / 64] >> id % 64 & 1)) logits[id] = -std::numeric_limits<float>::infinity();
}

void ConstrainedText::add(int32_t token) {
  begin();
  if (!constraint_->vocabulary->is_text(token)) {
    state_ = automaton_->next(state_, kNoText);
  } else {
    for (const char c : constraint_->vocabulary->bytes(token))
      state_ = automaton_->next(state_, static_cast<unsigned char>(c));
  }
  if (automaton_->large()) keep({&state_, 1});
  check(state_ != Automaton::dead, "constraint", "a token was added that the constraint excludes");
}

}  // namespace braid::models
