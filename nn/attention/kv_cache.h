// The cache of one attention layer: keys, values and key-side compose weights of past positions. The weights are kept
// in factored form: per stage R factors that read heads, R that write them and one gate, 10 N elements a position at
// R = 2 for both stages, instead of the 2 N^2 of merged matrices.
#pragma once
#include <array>

#include "braid/autograd/dcmha.h"
#include "braid/nn/attention/attention_cache.h"

namespace braid::nn {

// The key side of one stage of compose.
struct KeyWiseMixing {
  Tensor down, up;  // (B, S, G, R, M) or empty
  Tensor gate;      // (B, S, G, M) or empty
};

// Move-only: a copy would share buffers, and both would write into the same slots. clone() makes an independent one.
class LayerCache final : public AttentionCache {
 public:
  LayerCache() = default;
  LayerCache(LayerCache&&) = default;
  LayerCache& operator=(LayerCache&&) = default;
  // capacity: positions. keep: past positions that a query may attend to, 0: all of `capacity`.
  LayerCache(int64_t capacity, int64_t keep);

  // The same entries in memory of their own; both continue independently.
  LayerCache clone() const;

  // Appends the entries of new positions; every tensor is (B, T, ...) and empty handles stay empty.
  void append(const Tensor& keys, const Tensor& values, const KeyWiseMixing& pre, const KeyWiseMixing& post);

  int64_t first() const { return first_; }                        // position of the oldest entry held
  int64_t length() const { return length_; }                      // entries held
  int64_t position() const override { return first_ + length_; }  // of the next token
  // append(), then attention to all entries held.
  void extend(AttentionOperands& x, DcmhaOptions& options) override;
  Tensor keys() const { return view(0); }  // (B, length, N, d)
  Tensor values() const { return view(1); }
  KeyWiseMixing pre() const { return {view(2), view(3), view(4)}; }
  KeyWiseMixing post() const { return {view(5), view(6), view(7)}; }
  int64_t bytes() const;

 private:
  LayerCache(const LayerCache&) = default;
  LayerCache& operator=(const LayerCache&) = delete;
  Tensor view(size_t i) const;
  void make_room(int64_t more);

  int64_t capacity_ = 0, keep_ = 0, first_ = 0, length_ = 0;
  std::array<Tensor, 8> buffers_;  // (B, slots, ...): keys, values, pre down/up/gate, post down/up/gate
};

}  // namespace braid::nn
