// Memory of the GPUs. Released buffers are cached and reused: an allocation by the driver takes as long as many
// kernels, and waits for all of them.
//
// A buffer may be released while kernels that use it still wait: all work of a GPU is in one stream, so the kernels of
// its next user run after them.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "braid/tensor/storage.h"

namespace braid::cuda {

// The source of memory: the driver, or in tests one that runs out on purpose.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  virtual void* get(int64_t bytes) = 0;  // nullptr when there is none
  virtual void give_back(void* data) = 0;
  virtual int64_t free_bytes() = 0;
  virtual std::string name() = 0;  // "cuda:0 (NVIDIA H200)"
};

class CachingAllocator final : public Allocator {
 public:
  explicit CachingAllocator(std::unique_ptr<MemorySource> source);
  ~CachingAllocator() override;

  void* allocate(int64_t bytes) override;
  void release(void* data, int64_t bytes) noexcept override;
  MemoryStats stats() const override;
  void reset_peak() override;
  void release_cached() override;

  // From begin_pool to end_pool buffers come from a pool of their own, so that a captured graph keeps the addresses it
  // was captured with: released buffers are reused only inside the pool, until drop_pool.
  int begin_pool();
  void end_pool();
  void drop_pool(int pool);

  // Sizes are rounded up so that few differ: to 512 bytes, then to eighths of a power of two, then to 2 MiB.
  static int64_t rounded(int64_t bytes);

 private:
  using Free = std::multimap<int64_t, void*>;  // size -> buffer
  struct Buffer {
    int64_t bytes;  // its true size
    int pool;
    void* slab;            // the memory that a small one was cut from, or nullptr
    Free::node_type node;  // in use: what release() puts among the cached ones, so that it needs no memory
  };

  void* take(int64_t size);   // a cached buffer; nullptr when none fits
  void* fresh(int64_t size);  // from the source
  void give_back_unused();
  int64_t kept_by_pools() const;

  mutable std::mutex mutex_;
  std::unique_ptr<MemorySource> source_;
  std::map<void*, Buffer> buffers_;  // all, in use or cached
  std::map<int, Free> free_;         // pool -> its cached buffers
  std::map<void*, int64_t> slabs_;   // slab -> number of its buffers in use
  int pool_ = 0, pools_ = 0;         // 0: not of a graph
  int64_t current_ = 0, peak_ = 0, reserved_ = 0;
};

CachingAllocator& caching_allocator();  // of the current GPU

}  // namespace braid::cuda
