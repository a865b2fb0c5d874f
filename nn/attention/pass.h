// The context of a forward pass, which every layer takes beside activations: the positions of its rows, the tokens
// before them, the ranks that share them, an observer. The model makes one; its i-th block gets layer(i).
#pragma once
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "braid/nn/attention/attention_cache.h"
#include "braid/nn/layers/rope.h"
#include "braid/nn/observer.h"
#include "braid/nn/sample_random.h"
#include "braid/nn/shard_context.h"

namespace braid::nn {

// The default: one process, rows from position 0 on without a rotation, each sequence one document, nothing omitted.
struct Pass {
  Rope rope = {};        // for packed documents and paged sequences Rope::at() of their positions; may be empty
  Rope local_rope = {};  // of the layers with AttentionOptions::local_rope
  // Keys and values of earlier tokens, of all layers and of this one: row t is at position cache->position() + t, and
  // the new rows are appended (no gradients flow through a cache). The rows of a paged cache have positions of their
  // own.
  std::span<AttentionCache* const> caches = {};
  AttentionCache* cache = nullptr;
  Tensor ids = {};  // (B, T) of the gathered rows, where they are tokens
  // What a layer gives those after it in this pass, by a name of its own; null where a layer stands alone.
  std::shared_ptr<std::map<std::string, Tensor>> shared = {};
  std::shared_ptr<const std::vector<Document>> documents = nullptr;  // document masking; not with a cache
  // The rows are those of this rank, and the parameters are its shards (distributed/parallel/).
  std::shared_ptr<const ShardContext> shards = nullptr;
  SampleRandom random = {};  // dropout and stochastic depth of training
  double dropout = 0;        // of the embedding and of each branch of a block, while the model trains
  const ActivationObserver* observer = nullptr;
  std::string part = {};   // prefix of the names that the observer gets
  bool recompute = false;  // keep only the input of each block until backward, which computes the block again

  Pass layer(size_t i) const {
    Pass inner = *this;
    inner.caches = {};
    inner.cache = caches.empty() ? nullptr : caches[i];
    inner.random = random.child(i);
    if (observer) inner.part = str(part, "layers.", i, ".");
    return inner;
  }

  // The output of a branch after the dropout; `branch` keeps its elements independent of those of other branches.
  Tensor dropped(const Tensor& x, const char* branch) const {
    return dropout > 0 ? random.child(branch).dropout(x, dropout) : x;
  }

  bool recomputes() const { return recompute && !cache && !observer; }

  // Passes the value to the observer, if there is one; returns the value.
  template <class... Name>
  const Tensor& observe(const Tensor& value, const Name&... name) const {
    if (observer) (*observer)(str(part, name...), value);
    return value;
  }

  // Own rows (B, t, D) -> the rows (B, T, D) that layers sharded by heads or columns work on.
  Tensor gather_rows(const Tensor& x) const { return shards ? shards->gather_rows(x) : x; }
  int64_t position() const { return cache ? cache->position() : 0; }  // of the first row
  Rope::Tables rotation(int64_t T, bool local = false) const;  // of T gathered rows by rope or local_rope; may be empty
  // The attention op on the operands of the gathered rows -> (B, T, N, d), together with the keys of earlier tokens and
  // of other ranks. Its intermediate results go to the observer; their names are listed in apps/dump/names.md. The op
  // forms no maps: they are computed only for an observer that requests them, without history and in one process.
  Tensor attend(AttentionOperands x, DcmhaOptions options, const ShardContext::Heads& heads) const;
};

}  // namespace braid::nn
