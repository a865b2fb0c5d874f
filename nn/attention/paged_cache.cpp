#include "braid/nn/attention/paged_cache.h"

#include "braid/autograd/paged_attention.h"
#include "braid/tensor/base/integers.h"

namespace braid::nn {

using braid::detail::ceil_div;

PagedCache::PagedCache(std::vector<LayerWindow> layers, int64_t positions, int64_t block)
    : windows_(std::move(layers)), pool_(std::ssize(windows_) * ceil_div(positions, block), block) {
  for (size_t i = 0; i < windows_.size(); ++i) layers_.emplace_back(*this, i);
}

int64_t PagedCache::reached(size_t layer, int64_t position) const {
  const int64_t keys = windows_[layer].widest();
  return keys == 0 ? 0 : std::max<int64_t>(0, position - keys + 1);
}

int64_t PagedCache::blocks_for(int64_t length) const { return std::ssize(windows_) * ceil_div(length, block()); }

const PagedCache::Sequence& PagedCache::at(int sequence) const {
  check(sequence >= 0 && sequence < std::ssize(sequences_) && sequences_[static_cast<size_t>(sequence)].open,
        "paged_cache", [&] { return str("there is no open sequence ", sequence); });
  return sequences_[static_cast<size_t>(sequence)];
}

int PagedCache::open() {
  auto free = std::ranges::find(sequences_, false, &Sequence::open);
  if (free == sequences_.end()) free = sequences_.emplace(free);
  *free = {.open = true, .layers = std::vector<Table>(windows_.size())};
  return static_cast<int>(free - sequences_.begin());
}

int PagedCache::fork(int of, int64_t length) {
  check(length >= 0, "paged_cache", [&] { return str("cannot fork at position ", length); });
  at(of);
  const int sequence = open();
  const Sequence& parent = at(of);
  Sequence& child = at(sequence);
  length = std::min(length, parent.length);
  for (const LayerWindow& w : windows_)
    if (w.window != w.decode_window) length = std::min(length, parent.given);
  for (size_t i = 0; i < windows_.size(); ++i) {
    const int64_t oldest = reached(i, length) / block();  // block that the next token may attend to
    if (oldest < parent.layers[i].first && oldest < ceil_div(length, block())) return sequence;
  }
  child.length = length;
  child.given = std::min(length, parent.given);
  for (size_t i = 0; i < windows_.size(); ++i) {
    Table& table = child.layers[i];
    const Table& from = parent.layers[i];
    table.blocks.assign(from.blocks.begin(), from.blocks.begin() + ceil_div(length, block()));
    table.first = reached(i, length) / block();
    for (int64_t b = 0; b < std::ssize(table.blocks); ++b) {
      int32_t& shared = table.blocks[static_cast<size_t>(b)];
      b < table.first ? void(shared = -1) : pool_.hold(shared);
    }
  }
  return sequence;
}

void PagedCache::close(int sequence) {
  Sequence& s = at(sequence);
  for (const Table& table : s.layers)
    for (int64_t b = table.first; b < std::ssize(table.blocks); ++b)
      pool_.release(table.blocks[static_cast<size_t>(b)]);
  s = {};
}

// The sequence continues in a block that it shares with another one. The other one may write behind the positions of
// this one without a copy, if it had room there before: this one reads none of what it writes.
bool PagedCache::must_copy(const Table& table, int64_t length) const {
  const auto last = static_cast<size_t>(length / block());
  return length % block() != 0 && pool_.shared(table.blocks[last]);
}

bool PagedCache::reserve(int sequence, int64_t more) {
  check(more >= 0, "paged_cache", [&] { return str("cannot reserve ", more, " positions"); });
  Sequence& s = at(sequence);
  if (more == 0) return true;
  const int64_t columns = ceil_div(s.length + more, block());
  int64_t needed = 0;
  for (const Table& table : s.layers)
    needed += std::max<int64_t>(0, columns - std::ssize(table.blocks)) + must_copy(table, s.length);
  if (needed > pool_.free_blocks()) return false;
  for (Table& table : s.layers) {
    if (must_copy(table, s.length)) {
      int32_t& last = table.blocks[static_cast<size_t>(s.length / block())];
      const int32_t own = pool_.copy(last);
      pool_.release(last);
      last = own;
    }
    while (std::ssize(table.blocks) < columns) table.blocks.push_back(pool_.take());
  }
  return true;
}

void PagedCache::begin(std::vector<Part> parts) {
  rows_.clear();
  for (size_t i = 0; i < parts.size(); ++i) {
    const Part& part = parts[i];
    const Sequence& s = at(part.sequence);
    const int64_t reserved = s.layers.empty() ? 0 : std::ssize(s.layers[0].blocks) * block() - s.length;
    check(part.tokens >= 1 && part.tokens <= reserved, "paged_cache", [&] {
      return str(part.tokens, " tokens for sequence ", part.sequence, ": there is room for ", reserved,
                 "; reserve() it");
    });
    for (size_t j = 0; j < i; ++j)
      check(parts[j].sequence != part.sequence, "paged_cache",
            [&] { return str("two parts of sequence ", part.sequence, " in one pass"); });
    for (int64_t t = 0; t < part.tokens; ++t) rows_.push_back({part.sequence, s.length + t, part.generated});
  }
  parts_ = std::move(parts);
}

Tensor PagedCache::positions() const {
  std::vector<int64_t> positions;
  for (const Row& row : rows_) positions.push_back(row.position);
  return from_vector(positions, {1, std::ssize(positions)});
}

Tensor PagedLayer::attend(const AttentionOperands& x, const DcmhaOptions& options) {
  const LayerWindow window = cache_->windows_[layer_];
  BlockPool& pool = cache_->pool_;
  std::vector<int64_t> places;
  std::vector<PagedRow> rows;
  for (const PagedCache::Row& row : cache_->rows_) {
    const std::vector<int32_t>& blocks = cache_->at(row.sequence).layers[layer_].blocks;
    const int64_t p = row.position, b = p / pool.block();
    places.push_back(blocks[static_cast<size_t>(b)] * pool.block() + p % pool.block());
    const int64_t keys = row.generated ? window.decode_window : window.window;
    rows.push_back({.blocks = blocks, .first = keys > 0 ? std::max<int64_t>(0, p - keys + 1) : 0, .end = p + 1});
  }
  pool.write(x, places);
  const AttentionOperands all = pool.against_all(x);
  return paged_attention(all.q, all.k, all.v, all.pre, all.post, {pool.block(), rows}, options).to(x.q.dtype());
}

void PagedCache::end() {
  for (const Part& part : parts_) {
    Sequence& s = at(part.sequence);
    if (!part.generated && s.given == s.length) s.given += part.tokens;
    s.length += part.tokens;
    for (size_t i = 0; i < windows_.size(); ++i) {
      Table& table = s.layers[i];
      const int64_t first = reached(i, s.length) / block();
      for (; table.first < std::min(first, std::ssize(table.blocks)); ++table.first) {
        int32_t& b = table.blocks[static_cast<size_t>(table.first)];
        pool_.release(b);
        b = -1;
      }
    }
  }
  parts_.clear();
  rows_.clear();
}

}  // namespace braid::nn
