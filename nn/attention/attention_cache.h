// The keys and values of earlier tokens, of one layer: LayerCache (kv_cache.h) for texts that are computed side by
// side, PagedLayer (paged_cache.h) for many sequences that come and go.
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
  // x holds new rows: keeps their keys, values and key-side weights, and makes x and options the call of the attention
  // op for these rows and everything kept.
  virtual void extend(AttentionOperands& x, DcmhaOptions& options) = 0;

 protected:
  AttentionCache() = default;
  AttentionCache(const AttentionCache&) = default;
  AttentionCache& operator=(const AttentionCache&) = default;
};

}  // namespace braid::nn
