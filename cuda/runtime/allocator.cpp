#include "braid/cuda/runtime/allocator.h"

#include <algorithm>
#include <cstdlib>

#include "braid/cuda/runtime/messages.h"
#include "braid/tensor/base/integers.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"

namespace braid::cuda {

namespace {

constexpr int64_t kSmall = 1 << 20, kSmallSegment = 16 << 20, kPage = 2 << 20, kLargestSegment = int64_t{1} << 30;

}  // namespace

CachingAllocator::CachingAllocator(std::unique_ptr<MemorySource> source, bool exact)
    : source_(std::move(source)), exact_(exact) {}
CachingAllocator::~CachingAllocator() { release_cached(); }

int64_t CachingAllocator::rounded(int64_t bytes) {
  if (bytes == 0) return 512;
  return detail::round_up(bytes, bytes <= kSmall ? 512 : 64 << 10);
}

// A piece that is split leaves one that a later buffer can use.
char* CachingAllocator::take(int64_t size, int pool) {
  const bool small = size <= kSmall;
  Free& free = small ? pools_[pool].small : pools_[pool].large;
  const auto smallest = free.lower_bound({size, nullptr});
  if (smallest == free.end() || (exact_ && smallest->first != size)) return nullptr;
  char* data = smallest->second;
  Block& block = blocks_.at(data);
  if (const int64_t rest = block.bytes - size; rest >= (small ? 512 : kSmall)) {
    blocks_.emplace(data + size, Block{rest, pool, block.segment});
    free.emplace(rest, data + size);
    block.bytes = size;
  }
  block.node = free.extract(smallest);
  block.pool = pool_;
  return data;
}

// The more there is, the larger the next segment: few allocations of a large model, and little too much of a small one.
char* CachingAllocator::fresh(int64_t size) {
  const bool small = size <= kSmall;
  const int64_t least = exact_ ? size : small ? kSmallSegment : detail::round_up(size, kPage);
  const int64_t usual = exact_ || small ? least : detail::round_up(std::min(reserved_ / 8, kLargestSegment), kPage);
  int64_t bytes = std::max(least, usual);
  void* data = source_->get(bytes);
  if (!data && bytes > least) data = source_->get(bytes = least);
  if (!data) return nullptr;
  char* begin = static_cast<char*>(data);
  reserved_ += bytes;
  segments_[begin] = {bytes, small};
  blocks_.emplace(begin, Block{bytes, pool_, begin});
  (small ? pools_[pool_].small : pools_[pool_].large).emplace(bytes, begin);
  return take(size, pool_);
}

bool exact_allocations() {
  const char* text = std::getenv("BRAID_ALLOCATOR");
  const std::string value = text ? text : "";
  check(value.empty() || value == "exact" || value == "cached", ErrorKind::setting, [&] {
    return "BRAID_ALLOCATOR=" + detail::preview(value) +
           " is not known: expected exact (every tensor of a GPU is an allocation of its own, for memory checkers) or "
           "cached";
  });
  return value == "exact";
}

void* CachingAllocator::allocate(int64_t bytes) {
  const int64_t size = exact_ ? std::max<int64_t>(bytes, 1) : rounded(bytes);
  std::lock_guard lock(mutex_);
  char* data = take(size, pool_);
  if (!data && pool_ != 0) data = take(size, 0);
  if (!data) data = fresh(size);
  if (!data && pool_ == 0) {  // during a capture memory must not be given back to the driver
    give_back_unused();
    data = fresh(size);
  }
  if (!data)
    throw OutOfMemory(out_of_memory(source_->name(), {bytes, source_->free_bytes(), current_, kept_by_pools()}));
  current_ += blocks_.at(data).bytes;
  peak_ = current_ > peak_ ? current_ : peak_;
  return data;
}

CachingAllocator::Free& CachingAllocator::free_of(const Block& block) noexcept {
  Pool& pool = pools_.at(block.pool);
  return segments_.at(block.segment).small ? pool.small : pool.large;
}

// Joins the free pieces beside it.
void CachingAllocator::put_back(Blocks::iterator block, Free::node_type node) noexcept {
  const auto joins = [&](const Block& beside) {
    return !beside.used() && beside.pool == block->second.pool && beside.segment == block->second.segment;
  };
  Free& free = free_of(block->second);
  if (const auto next = std::next(block); next != blocks_.end() && joins(next->second)) {
    free.erase({next->second.bytes, next->first});
    block->second.bytes += next->second.bytes;
    blocks_.erase(next);
  }
  if (block != blocks_.begin()) {
    if (const auto before = std::prev(block); joins(before->second)) {
      free.erase({before->second.bytes, before->first});
      before->second.bytes += block->second.bytes;
      blocks_.erase(block);
      block = before;
    }
  }
  node.value() = {block->second.bytes, block->first};
  free.insert(std::move(node));
}

void CachingAllocator::release(void* data, int64_t) noexcept {
  std::lock_guard lock(mutex_);
  const auto block = blocks_.find(static_cast<char*>(data));
  current_ -= block->second.bytes;
  put_back(block, std::move(block->second.node));
  if (exact_ && pool_ == 0) give_back_unused();
}

MemoryStats CachingAllocator::stats() const {
  std::lock_guard lock(mutex_);
  return {current_, peak_, reserved_};
}

void CachingAllocator::reset_peak() {
  std::lock_guard lock(mutex_);
  peak_ = current_;
}

void CachingAllocator::release_cached() {
  std::lock_guard lock(mutex_);
  give_back_unused();
}

// Segments that are one free piece; not those of graphs.
void CachingAllocator::give_back_unused() {
  for (auto it = segments_.begin(); it != segments_.end();) {
    const auto block = blocks_.find(it->first);
    if (block->second.used() || block->second.pool != 0 || block->second.bytes != it->second.bytes) {
      ++it;
      continue;
    }
    free_of(block->second).erase({block->second.bytes, block->first});
    blocks_.erase(block);
    source_->give_back(it->first);
    reserved_ -= it->second.bytes;
    it = segments_.erase(it);
  }
}

int64_t CachingAllocator::kept_by_pools() const {
  int64_t bytes = 0;
  for (const auto& [number, pool] : pools_) {
    if (number == 0) continue;
    for (const Free* free : {&pool.small, &pool.large})
      for (const auto& [size, data] : *free) bytes += size;
  }
  return bytes;
}

int CachingAllocator::begin_pool() {
  std::lock_guard lock(mutex_);
  return pool_ = ++last_pool_;
}

void CachingAllocator::end_pool() {
  std::lock_guard lock(mutex_);
  pool_ = 0;
}

void CachingAllocator::drop_pool(int number) {
  std::lock_guard lock(mutex_);
  Pool dropped = std::move(pools_[number]);
  pools_.erase(number);
  pools_[0];
  for (auto& [data, block] : blocks_) {
    if (block.pool == number && block.used()) block.pool = 0;
  }
  for (Free* free : {&dropped.small, &dropped.large}) {
    while (!free->empty()) {
      Free::node_type node = free->extract(free->begin());
      const auto block = blocks_.find(node.value().second);
      block->second.pool = 0;
      put_back(block, std::move(node));
    }
  }
}

}  // namespace braid::cuda
