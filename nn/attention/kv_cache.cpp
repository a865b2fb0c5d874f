#include "braid/nn/attention/kv_cache.h"

#include <algorithm>

#include "braid/nn/attention/composition.h"
#include "braid/nn/shard_context.h"

namespace braid::nn {

LayerCache::LayerCache(int64_t capacity, int64_t keep)
    : capacity_(capacity), keep_(keep > 0 ? std::min(keep, capacity) : 0) {
  check(capacity >= 1, "kv_cache", [&] { return str("needs room for at least one position, got ", capacity); });
}

LayerCache LayerCache::clone() const {
  LayerCache other(*this);
  for (Tensor& buffer : other.buffers_)
    if (buffer) buffer = buffer.clone();
  return other;
}

// The buffer of a layer with a window has room for 2 keep positions; when it is full, the last `keep` move to the
// front. So the cached positions are always consecutive, and a token costs O(1) moves on average.
void LayerCache::make_room(int64_t more) {
  int64_t slots = buffers_[0] ? buffers_[0].dim(1) : 0;
  if (length_ + more <= slots) return;
  int64_t stay = keep_ > 0 ? std::min(length_, keep_) : length_;
  int64_t needed =
      keep_ > 0 ? std::max(stay + more, 2 * keep_) : std::max(stay + more, std::min(capacity_, 2 * (stay + more)));
  for (Tensor& buffer : buffers_) {
    if (!buffer) continue;
    Tensor kept = buffer.sliced(1, length_ - stay, length_).clone();
    if (needed > slots) {
      Shape shape = buffer.shape();
      shape[1] = needed;
      buffer = empty(shape, buffer.dtype(), buffer.device());
    }
    buffer.sliced(1, 0, stay).copy_(kept);
  }
  first_ += length_ - stay;
  length_ = stay;
}

void LayerCache::append(const Tensor& keys, const Tensor& values, const KeyWiseMixing& pre, const KeyWiseMixing& post) {
  const std::array<const Tensor*, 8> entries{&keys,     &values,    &pre.down, &pre.up,
                                             &pre.gate, &post.down, &post.up,  &post.gate};
  int64_t T = keys.dim(1);
  check(position() + T <= capacity_, "kv_cache",
        [&] { return str("is full: ", position(), " positions and ", T, " new ones, capacity ", capacity_); });
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!*entries[i] || buffers_[i]) continue;
    Shape shape = entries[i]->shape();
    shape[1] = 0;
    buffers_[i] = empty(shape, entries[i]->dtype(), entries[i]->device());
  }
  make_room(T);
  for (size_t i = 0; i < entries.size(); ++i) {
    if (*entries[i]) buffers_[i].sliced(1, length_, length_ + T).copy_(*entries[i]);
  }
  length_ += T;
}

void LayerCache::extend(AttentionOperands& x, DcmhaOptions& options) {
  const int64_t row0 = position();
  append(x.k, x.v, key_wise(x.pre), key_wise(x.post));
  x.k = keys();
  x.v = values();
  x.pre = with_key_wise(x.pre, pre());
  x.post = with_key_wise(x.post, post());
  options.mask.offset = row0 - first_;
}

Tensor LayerCache::view(size_t i) const { return buffers_[i] ? buffers_[i].sliced(1, 0, length_) : Tensor(); }

int64_t LayerCache::bytes() const {
  int64_t sum = 0;
  for (const Tensor& b : buffers_) sum += b ? b.numel() * size_of(b.dtype()) : 0;
  return sum;
}

}  // namespace braid::nn
