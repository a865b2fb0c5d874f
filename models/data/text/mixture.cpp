#include "braid/models/data/text/mixture.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "braid/models/data/sampler.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"

namespace braid::models::text {
namespace {

constexpr int64_t whole = int64_t{1} << 30;  // the sum of all shares
constexpr uint64_t block_orders =
    0x6D697874757265;  // makes their seed another one than that of the sources' own orders

// floor(part m / whole), without overflow.
int64_t scaled(int64_t part, int64_t m) { return part * (m / whole) + part * (m % whole) / whole; }

}  // namespace

Mixture::Mixture(std::vector<MixturePhase> phases, uint64_t seed) : phases_(std::move(phases)), seed_(seed) {
  check(!phases_.empty() && phases_[0].first == 0 && !phases_[0].weights.empty(), "mixture",
        "needs a phase that begins with sequence 0, and a source");
  std::vector<int64_t> before(phases_[0].weights.size());
  for (size_t p = 0; p < phases_.size(); ++p) {
    const auto& [first, weights] = phases_[p];
    check(weights.size() == before.size() && (p == 0 || first > phases_[p - 1].first), "mixture",
          [&, first = first] { return str("phase ", p, " at sequence ", first, " does not fit the one before it"); });
    double sum = 0;
    for (const double w : weights) {
      check(std::isfinite(w) && w >= 0, ErrorKind::setting,
            [&] { return str("the weight of a source must be a number of at least 0, found ", detail::shortest(w)); });
      sum += w;
    }
    check(sum > 0 && std::isfinite(sum), ErrorKind::setting,
          [&] { return str("the weights of the sources must have a sum above 0, found ", detail::shortest(sum)); });
    Shares shares{.bounds = {0}, .block = block_size, .before = before};
    double up_to = 0;
    for (const double w : weights) {
      check(w == 0 || w / sum >= min_share, ErrorKind::setting, [&] {
        return "the weight of a source must be 0 or at least " + detail::shortest(min_share) + " of the sum of all, " +
               "found " + detail::shortest(w) + " of " + detail::shortest(sum);
      });
      up_to += w;
      shares.bounds.push_back(std::llround(up_to / sum * static_cast<double>(whole)));
      // One sequence of a block or more: then counts never fall from one end of a block to the next.
      if (const int64_t part = shares.bounds.back() - *(shares.bounds.end() - 2); part > 0)
        shares.block = std::max(shares.block, (whole + part - 1) / part);
    }
    shares_.push_back(std::move(shares));
    if (p + 1 < phases_.size())
      for (size_t i = 0; i < before.size(); ++i)
        before[i] += scaled(shares_[p].bounds[i + 1], length(p)) - scaled(shares_[p].bounds[i], length(p));
  }
}

int64_t Mixture::length(size_t phase) const {
  return phase + 1 < phases_.size() ? phases_[phase + 1].first - phases_[phase].first
                                    : std::numeric_limits<int64_t>::max();
}

Mixture::Block Mixture::block_of(int64_t sequence) const {
  check(sequence >= 0, "mixture", [&] { return str("sequence must not be negative, got ", sequence); });
  size_t p = phases_.size() - 1;
  while (phases_[p].first > sequence) --p;
  const Shares& shares = shares_[p];
  const int64_t first = phases_[p].first, n = length(p), last = std::max<int64_t>(1, n / shares.block) - 1;
  const int64_t number = std::min((sequence - first) / shares.block, last);
  const int64_t begin = number * shares.block, end = number == last ? n : begin + shares.block;
  Block block{.begin = first + begin, .end = first + end, .counts = shares.before, .bounds = {0}};
  for (size_t i = 0; i < block.counts.size(); ++i) {
    block.counts[i] += scaled(shares.bounds[i + 1], begin) - scaled(shares.bounds[i], begin);
    block.bounds.push_back(scaled(shares.bounds[i + 1], end) - scaled(shares.bounds[i + 1], begin));
  }
  return block;
}

int64_t Mixture::source_of(const Block& block, int64_t sequence) const {
  const Sampler order(block.end - block.begin, seed_ ^ block_orders);
  const int64_t place = order.index(block.begin, sequence - block.begin);
  return std::ranges::upper_bound(block.bounds, place) - block.bounds.begin() - 1;
}

std::vector<Mixture::Draw> Mixture::draws(int64_t first, int64_t count) const {
  std::vector<Draw> draws;
  const int64_t end = first + count;
  if (sources() == 1)
    for (; first < end; ++first) draws.push_back({0, first});
  while (first < end) {
    Block block = block_of(first);
    const int64_t stop = std::min(end, block.end);
    for (int64_t sequence = block.begin; sequence < stop; ++sequence) {
      const int64_t source = source_of(block, sequence);
      const int64_t index = block.counts[static_cast<size_t>(source)]++;
      if (sequence >= first) draws.push_back({source, index});
    }
    first = stop;
  }
  return draws;
}

std::vector<int64_t> Mixture::counts(int64_t count) const {
  if (sources() == 1) return {count};
  Block block = block_of(count);
  for (int64_t sequence = block.begin; sequence < count; ++sequence)
    ++block.counts[static_cast<size_t>(source_of(block, sequence))];
  return block.counts;
}

// Blocks before the last one that has been begun are equal where shares are; how long a phase is reaches its last block
// alone.
bool Mixture::begins_as(const Mixture& other, int64_t count) const {
  if (count <= 0) return true;
  const auto begun = [&](const Mixture& m) {
    return std::ranges::count_if(m.phases_, [&](const MixturePhase& phase) { return phase.first < count; });
  };
  if (begun(*this) != begun(other)) return false;
  for (size_t p = 0; p < static_cast<size_t>(begun(*this)); ++p)
    if (phases_[p].first != other.phases_[p].first || shares_[p].bounds != other.shares_[p].bounds) return false;
  return block_of(count - 1) == other.block_of(count - 1);
}

}  // namespace braid::models::text
