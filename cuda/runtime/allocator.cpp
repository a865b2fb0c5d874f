#include "braid/cuda/runtime/allocator.h"

#include <bit>

#include "braid/cuda/runtime/messages.h"
#include "braid/tensor/detail/integers.h"
#include "braid/tensor/error.h"

namespace braid::cuda {

namespace {

constexpr int64_t kSmall = 1 << 20, kSlab = 16 << 20, kPage = 2 << 20;

}  // namespace

CachingAllocator::CachingAllocator(std::unique_ptr<MemorySource> source) : source_(std::move(source)) {}
CachingAllocator::~CachingAllocator() { release_cached(); }

int64_t CachingAllocator::rounded(int64_t bytes) {
  if (bytes <= 4096) return bytes <= 512 ? 512 : (bytes + 511) / 512 * 512;
  int64_t unit = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(bytes))) / 8;
  if (bytes > kSmall && unit < kPage) unit = kPage;
  return detail::round_up(bytes, unit);
}

void* CachingAllocator::take(int64_t size) {
  Free& kept = free_[pool_];
  auto it = kept.lower_bound(size);
  // A somewhat larger one will do; a small request never takes a large buffer.
  if (it == kept.end() || it->first > size + size / 4) return nullptr;
  void* data = it->second;
  buffers_.at(data).node = kept.extract(it);
  return data;
}

void* CachingAllocator::fresh(int64_t size) {
  Free one{{size, nullptr}};
  Free::node_type node = one.extract(one.begin());
  if (size > kSmall) {
    void* data = source_->get(size);
    if (!data) return nullptr;
    reserved_ += size;
    node.mapped() = data;
    buffers_[data] = {size, pool_, nullptr, std::move(node)};
    return data;
  }
  char* slab = static_cast<char*>(source_->get(kSlab));
  if (!slab) return nullptr;
  reserved_ += kSlab;
  slabs_[slab] = 0;
  for (int64_t at = 0; at + size <= kSlab; at += size) {
    buffers_[slab + at] = {size, pool_, slab, {}};
    if (at > 0) free_[pool_].emplace(size, slab + at);
  }
  node.mapped() = slab;
  buffers_.at(slab).node = std::move(node);
  return slab;
}

void* CachingAllocator::allocate(int64_t bytes) {
  const int64_t size = rounded(bytes);
  std::lock_guard lock(mutex_);
  void* data = take(size);
  if (!data) data = fresh(size);
  if (!data && pool_ == 0) {  // during a capture memory must not be given back to the driver
    give_back_unused();
    data = fresh(size);
  }
  if (!data)
    throw OutOfMemory(out_of_memory(source_->name(), {bytes, source_->free_bytes(), current_, kept_by_pools()}));
  const Buffer& buffer = buffers_.at(data);
  if (buffer.slab) ++slabs_.at(buffer.slab);
  current_ += buffer.bytes;
  peak_ = current_ > peak_ ? current_ : peak_;
  return data;
}

void CachingAllocator::release(void* data, int64_t) noexcept {
  std::lock_guard lock(mutex_);
  Buffer& buffer = buffers_.at(data);
  if (buffer.slab) --slabs_.at(buffer.slab);
  current_ -= buffer.bytes;
  Free& kept = free_.at(buffer.pool);
  kept.insert(kept.lower_bound(buffer.bytes), std::move(buffer.node));  // the first of its size to be used again
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

// Large buffers one by one; slabs when none of their buffers is in use. Not those of graphs.
void CachingAllocator::give_back_unused() {
  Free& kept = free_[0];
  for (auto it = kept.begin(); it != kept.end();) {
    void* data = it->second;
    const bool whole = !buffers_.at(data).slab;
    if (!whole && slabs_.at(buffers_.at(data).slab) > 0) {
      ++it;
      continue;
    }
    if (whole) {
      source_->give_back(data);
      reserved_ -= it->first;
    }
    it = kept.erase(it);
    buffers_.erase(data);
  }
  for (auto it = slabs_.begin(); it != slabs_.end();) {
    const auto first = buffers_.find(it->first);
    if (it->second > 0 || (first != buffers_.end() && first->second.pool != 0)) {
      ++it;
      continue;
    }
    source_->give_back(it->first);
    reserved_ -= kSlab;
    it = slabs_.erase(it);
  }
}

int64_t CachingAllocator::kept_by_pools() const {
  int64_t bytes = 0;
  for (const auto& [pool, kept] : free_) {
    if (pool == 0) continue;
    for (const auto& [size, data] : kept) bytes += size;
  }
  return bytes;
}

int CachingAllocator::begin_pool() {
  std::lock_guard lock(mutex_);
  return pool_ = ++pools_;
}

void CachingAllocator::end_pool() {
  std::lock_guard lock(mutex_);
  pool_ = 0;
}

void CachingAllocator::drop_pool(int pool) {
  std::lock_guard lock(mutex_);
  for (auto& [data, buffer] : buffers_) {
    if (buffer.pool == pool) buffer.pool = 0;
  }
  free_[0].merge(free_[pool]);
  free_.erase(pool);
}

}  // namespace braid::cuda
