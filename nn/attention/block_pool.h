// The memory of a paged cache: blocks, each with the keys, values and key-side compose weights of some positions of one
// layer, and how many sequences hold each block. Factors are kept as they come, R that read heads and R that write them
// (kv_cache.h).
//
// Blocks lie on the CPU. Keys and values have the type of the model: 16-bit ones are widened where a kernel reads them.
// The factors, few beside these, have the type that the kernels compute in.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "braid/nn/shard_context.h"

namespace braid::nn {

class BlockPool {
 public:
  BlockPool(int64_t blocks, int64_t block);

  int64_t block() const { return block_; }  // positions of a block
  int64_t blocks() const { return std::ssize(holders_); }
  int64_t free_blocks() const { return std::ssize(free_); }
  int64_t bytes() const;  // 0 before the first write(), which tells the shapes

  int32_t take();           // a block for one holder; one must be free
  void hold(int32_t b);     // one holder more
  void release(int32_t b);  // one less; without any it is free
  bool shared(int32_t b) const { return holders_[static_cast<size_t>(b)] > 1; }
  int32_t copy(int32_t b);  // take() a block with the contents of b

  // Writes row r of k, v and the key side of x (1, R, ...) as key row places[r]: block * block() + position in it.
  void write(const AttentionOperands& x, std::span<const int64_t> places);
  // q and the query side of x, in the type that the kernels compute in, against all key rows of the pool.
  AttentionOperands against_all(AttentionOperands x) const;

 private:
  int64_t block_;
  std::vector<int32_t> holders_;  // of each block
  std::vector<int32_t> free_;     // the last one is taken next
  std::array<Tensor, 8> rows_;    // (blocks * block, ...): keys, values, pre down/up/gate, post down/up/gate
};

}  // namespace braid::nn
