#include "braid/models/inference/prefixes.h"

#include <algorithm>

namespace braid::models {
namespace {

// Forks that are tried: a pool may share less of a sequence than it has in common, for instance where the entries of a
// layer with a window are gone.
constexpr int kTries = 4;

}  // namespace

int64_t common_prefix(std::span<const int32_t> a, std::span<const int32_t> b) {
  return std::ranges::mismatch(a, b).in1 - a.begin();
}

void Prefixes::keep(int sequence, std::vector<int32_t> tokens) {
  const auto same = std::ranges::find(kept_, tokens, &Kept::tokens);
  if (tokens.empty() || max_kept_ == 0 || same != kept_.end()) {
    pool_.close(sequence);
    if (same != kept_.end()) touch(same->sequence);
    return;
  }
  if (kept_.size() == max_kept_) drop_oldest();
  kept_.push_back({sequence, std::move(tokens)});
}

bool Prefixes::drop_oldest() {
  if (kept_.empty()) return false;
  pool_.close(kept_.front().sequence);
  kept_.erase(kept_.begin());
  return true;
}

void Prefixes::touch(int sequence) {
  const auto at = std::ranges::find(kept_, sequence, &Kept::sequence);
  if (at != kept_.end()) std::rotate(at, at + 1, kept_.end());
}

int64_t Prefixes::longest(std::span<const int32_t> text, int64_t limit, std::span<const Live> live) const {
  int64_t max = 0;
  for (const Kept& k : kept_) max = std::max(max, common_prefix(text, k.tokens));
  for (const Live& l : live) max = std::max(max, common_prefix(text, l.tokens));
  return std::min(max, limit);
}

int Prefixes::open(std::span<const int32_t> text, int64_t limit, std::span<const Live> live) {
  if (max_kept_ == 0) return pool_.open();
  struct Source {
    int sequence;
    int64_t common;
    bool whole;  // a kept one that the text continues
  };
  std::vector<Source> sources;
  for (auto k = kept_.rbegin(); k != kept_.rend(); ++k) {
    const int64_t common = std::min(limit, common_prefix(text, k->tokens));
    sources.push_back({k->sequence, common, !pool_.invariant() && common == std::ssize(k->tokens)});
  }
  for (const Live& l : live) sources.push_back({l.sequence, std::min(limit, common_prefix(text, l.tokens)), false});
  std::erase_if(sources, [](const Source& s) { return s.common == 0; });
  std::ranges::stable_sort(sources, [](const Source& a, const Source& b) {
    return a.common != b.common ? a.common > b.common : a.whole && !b.whole;
  });
  int best = pool_.open();
  int tries = 0;
  for (const Source& s : sources) {
    if (s.common <= pool_.length(best) || ++tries > kTries) break;
    const int next = s.whole ? s.sequence : pool_.fork(s.sequence, s.common);
    if (s.whole)
      std::erase_if(kept_, [&](const Kept& k) { return k.sequence == next; });
    else
      touch(s.sequence);
    const bool better = s.whole || pool_.length(next) > pool_.length(best);
    pool_.close(better ? best : next);
    if (better) best = next;
  }
  return best;
}

}  // namespace braid::models
