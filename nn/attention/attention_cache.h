// The keys and values of earlier tokens in one layer: LayerCache (kv_cache.h) for the sequences of a batch, PagedLayer
// (paged_cache.h) for many sequences that come and go.
#pragma once
#include <cstdint>

namespace braid {
struct DcmhaOptions;
}

namespace braid::nn {

struct AttentionOperands;

class AttentionCache {
 public:
  virtual ~AttentionCache() = default;
  // The position of the first new row. Where rows have positions of their own, `rope` is Rope::at() of these.
  virtual int64_t position() const = 0;
  // x contains new rows: stores their keys, values and key-side weights, and turns x and options into the call of the
  // attention op for these rows and everything stored.
  virtual void extend(AttentionOperands& x, DcmhaOptions& options) = 0;

 protected:
  AttentionCache() = default;
  AttentionCache(const AttentionCache&) = default;
  AttentionCache& operator=(const AttentionCache&) = default;
};

}  // namespace braid::nn
