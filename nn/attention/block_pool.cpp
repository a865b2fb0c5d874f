#include "braid/nn/attention/block_pool.h"

#include <cstring>
#include <numeric>

namespace braid::nn {

namespace {
// The tensors of x that a position is kept by, in the order of BlockPool::rows_.
template <class X>
auto kept(X& x) {
  return std::array{&x.k,          &x.v,           &x.pre.k_down, &x.pre.k_up,
                    &x.pre.k_gate, &x.post.k_down, &x.post.k_up,  &x.post.k_gate};
}
int64_t row_bytes(const Tensor& t) { return t.numel() / t.dim(0) * size_of(t.dtype()); }
}  // namespace

BlockPool::BlockPool(int64_t blocks, int64_t block) : block_(block) {
  check(blocks >= 1 && block >= 1, "block_pool",
        [&] { return str("needs at least one block of at least one position, got ", blocks, " of ", block); });
  holders_.resize(static_cast<size_t>(blocks));
  free_.resize(holders_.size());
  std::iota(free_.rbegin(), free_.rend(), 0);
}

int64_t BlockPool::bytes() const {
  int64_t sum = 0;
  for (const Tensor& t : rows_) sum += t ? t.dim(0) * row_bytes(t) : 0;
  return sum;
}

int32_t BlockPool::take() {
  check(!free_.empty(), "block_pool", [&] { return str("all ", blocks(), " blocks are taken"); });
  const int32_t b = free_.back();
  free_.pop_back();
  holders_[static_cast<size_t>(b)] = 1;
  return b;
}

void BlockPool::hold(int32_t b) { ++holders_[static_cast<size_t>(b)]; }

void BlockPool::release(int32_t b) {
  if (--holders_[static_cast<size_t>(b)] == 0) free_.push_back(b);
}

int32_t BlockPool::copy(int32_t b) {
  const int32_t to = take();
  for (Tensor& t : rows_)
    if (t) t.sliced(0, to * block_, (to + 1) * block_).copy_(t.sliced(0, b * block_, (b + 1) * block_));
  return to;
}

void BlockPool::write(const AttentionOperands& x, std::span<const int64_t> places) {
  check(x.k.device() == kCpu && x.k.dim(0) == 1 && x.k.dim(1) == std::ssize(places), "block_pool", [&] {
    return str("keys must be (1, ", places.size(), ", N, d) on the CPU, got ", x.k.shape(), " on ", x.k.device());
  });
  const auto entries = kept(x);
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!*entries[i]) continue;
    const DType type = i < 2 ? x.k.dtype() : accumulate_type(x.k.dtype());
    const Tensor from = entries[i]->squeezed(0).to(type).contiguous();
    if (!rows_[i]) {
      Shape shape = from.shape();
      shape[0] = blocks() * block_;
      rows_[i] = empty(shape, type);
    }
    const int64_t bytes = row_bytes(rows_[i]);
    check(from.numel() * size_of(type) == std::ssize(places) * bytes && type == rows_[i].dtype(), "block_pool", [&] {
      return str("rows of ", rows_[i].shape(), " ", rows_[i].dtype(), " are kept, got ", from.shape(), " ", type);
    });
    const auto* in = static_cast<const std::byte*>(from.raw());
    auto* out = static_cast<std::byte*>(rows_[i].mutable_raw());
    for (const int64_t place : places) {
      std::memcpy(out + place * bytes, in, static_cast<size_t>(bytes));
      in += bytes;
    }
  }
}

AttentionOperands BlockPool::against_all(AttentionOperands x) const {
  const DType type = accumulate_type(rows_[0].dtype());
  for (Tensor* t : {&x.q, &x.pre.base, &x.pre.q_down, &x.pre.q_up, &x.pre.q_gate, &x.post.base, &x.post.q_down,
                    &x.post.q_up, &x.post.q_gate}) {
    if (*t) *t = t->to(type);
  }
  const auto keys = kept(x);
  for (size_t i = 0; i < keys.size(); ++i)  // another layer of the pool may keep factors that this one has not
    if (*keys[i]) *keys[i] = rows_[i].unsqueezed(0);
  return x;
}

}  // namespace braid::nn
