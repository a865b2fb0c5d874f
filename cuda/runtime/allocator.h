// Memory of the GPUs. Released buffers are cached and reused: an allocation by the driver takes as long as many
// kernels, and waits for all of them.
//
// A buffer may be released while kernels that use it still wait: all work of a GPU is in one stream, so the kernels of
// its next user run after them.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

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

// Memory comes from the source in segments, of which buffers are cut: the smallest free piece that is large enough is
// split, and a released buffer joins the free pieces beside it. Small buffers, up to 1 MiB, have segments of their own,
// so that they do not keep large ones apart.
class CachingAllocator final : public Allocator {
 public:
  // exact: every buffer is an allocation of the source of exactly its size, given back at its release, so that memory
  // checkers see each tensor's ends and first use. Slow.
  explicit CachingAllocator(std::unique_ptr<MemorySource> source, bool exact = false);
  ~CachingAllocator() override;

  void* allocate(int64_t bytes) override;
  void release(void* data, int64_t bytes) noexcept override;
  MemoryStats stats() const override;  // current: with the rounding of sizes; reserved: what the source gave
  void reset_peak() override;
  void release_cached() override;  // segments without a buffer in use

  // From begin_pool to end_pool buffers belong to a pool of their own, so that a captured graph keeps the addresses it
  // was captured with: released buffers are reused only inside the pool, until drop_pool. Free pieces from before
  // become the pool's where it needs them.
  int begin_pool();
  void end_pool();
  void drop_pool(int pool);

  static int64_t rounded(int64_t bytes);  // the size of a buffer: a multiple of 512 bytes, above 1 MiB of 64 KiB

 private:
  using Free = std::set<std::pair<int64_t, char*>>;  // by size, then address
  struct Block {                                     // a piece of a segment
    int64_t bytes;
    int pool;
    char* segment;
    Free::node_type node = {};  // in use: what release() puts among the free ones, so that it needs no memory
    bool used() const { return !node.empty(); }
  };
  using Blocks = std::map<char*, Block>;
  struct Pool {
    Free small, large;
  };

  char* take(int64_t size, int pool);  // a free piece; nullptr when none fits
  char* fresh(int64_t size);           // from the source
  void put_back(Blocks::iterator block, Free::node_type node) noexcept;
  Free& free_of(const Block& block) noexcept;
  void give_back_unused();
  int64_t kept_by_pools() const;

  mutable std::mutex mutex_;
  std::unique_ptr<MemorySource> source_;
  const bool exact_;
  struct Segment {
    int64_t bytes;
    bool small;
  };
  std::map<char*, Segment> segments_;
  Blocks blocks_;                 // all, in use or free
  std::map<int, Pool> pools_;     // their free pieces
  int pool_ = 0, last_pool_ = 0;  // 0: of no graph
  int64_t current_ = 0, peak_ = 0, reserved_ = 0;
};

// Whether the environment sets BRAID_ALLOCATOR=exact; Error(setting) for another value than that and "cached".
bool exact_allocations();

CachingAllocator& caching_allocator();  // of the current GPU

}  // namespace braid::cuda
