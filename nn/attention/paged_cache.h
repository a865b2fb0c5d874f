// The caches of many sequences that are computed together, for all layers of a model: tables of blocks (block_pool.h).
//
//   sequence 0, a layer without window   [ 7 | 2 | 9 | 4 ]     blocks of positions 0..15, 16..31, ...
//   the same, a window of 20 keys        [ - | - | 5 | 8 ]     what no later query reaches was given back
//   sequence 1, a fork at position 40    [ 7 | 2 | 6 |         whole blocks are shared; of the last one, partly filled,
//                                                              it has a copy since it was to grow (copy on write)
//
// Every layer takes its blocks from one pool: all blocks are of one size, and a layer with a window leaves its share to
// the others. Not for several threads at once.
//
// Which keys a query attends to follows from its own position, so that it does not matter in which pieces a text is
// computed: tokens that were given attend within `window`, generated ones within `decode_window` (AttentionOptions; the
// two differ in one published inference program alone). Where they differ, a fork shares no generated token, because
// that has other keys in deeper layers than the same token in a prompt.
#pragma once
#include <algorithm>
#include <utility>
#include <vector>

#include "braid/nn/attention/attention_cache.h"
#include "braid/nn/attention/block_pool.h"

namespace braid::nn {

// Unmasked keys of a query, its own included, as in AttentionOptions; 0: no limit.
struct LayerWindow {
  int64_t window = 0, decode_window = 0;
  // Earlier positions that some query may attend to, with its own; 0: all.
  int64_t widest() const { return window == 0 || decode_window == 0 ? 0 : std::max(window, decode_window); }
};

class PagedCache;

// One layer of a pass: what Attention gets as its cache.
class PagedLayer final : public AttentionCache {
 public:
  PagedLayer(PagedCache& cache, size_t layer) : cache_(&cache), layer_(layer) {}
  int64_t position() const override { return 0; }  // rows stand at positions of their own
  void extend(AttentionOperands& x, DcmhaOptions&) override { x.paged = this; }
  // Keeps the keys of the pass's rows, x (1, R, ...), and attends: (1, R, N, d). Called by nn::attend().
  Tensor attend(const AttentionOperands& x, const DcmhaOptions& options);

 private:
  PagedCache* cache_;
  size_t layer_;
};

class PagedCache {
 public:
  // Blocks for sequences of `positions` positions together, if each fills its last block.
  PagedCache(std::vector<LayerWindow> layers, int64_t positions, int64_t block);
  PagedCache(const PagedCache&) = delete;
  PagedCache& operator=(const PagedCache&) = delete;

  int64_t block() const { return pool_.block(); }
  int64_t blocks() const { return pool_.blocks(); }
  int64_t free_blocks() const { return pool_.free_blocks(); }
  int64_t bytes() const { return pool_.bytes(); }
  // At most. A layer with a window needs as many as the others where all of a text is reserved at once, and has given
  // most of them back when it is computed.
  int64_t blocks_for(int64_t length) const;

  int open();  // a new, empty sequence; the number of a closed one is used again
  // A new sequence that begins with the first positions of another one. They are `length`, or as many as that has; none
  // where a layer of that has given back keys that the next token would attend to.
  int fork(int of, int64_t length);
  void close(int sequence);
  int64_t length(int sequence) const { return at(sequence).length; }
  // Makes room for `more` positions behind those there are; false, and nothing changed, where too few blocks are free.
  bool reserve(int sequence, int64_t more);

  // New tokens of a sequence, for which there is room.
  struct Part {
    int sequence;
    int64_t tokens;
    bool generated = false;
  };
  // A pass: begin() with its parts, each of another sequence; every layer attends once; end() appends the parts. A pass
  // that is not ended, because it failed, has changed nothing.
  void begin(std::vector<Part> parts);
  Tensor positions() const;  // of the rows of the pass, the tokens of the parts in their order: (1, R) i64
  PagedLayer& layer(size_t i) { return layers_.at(i); }
  void end();

 private:
  friend class PagedLayer;
  struct Table {
    std::vector<int32_t> blocks;  // by block of positions
    int64_t first = 0;            // those before it were given back
  };
  struct Sequence {
    bool open = false;
    int64_t length = 0;
    int64_t given = 0;  // leading positions that were not generated
    std::vector<Table> layers;
  };
  struct Row {
    int sequence;
    int64_t position;
    bool generated;
  };

  const Sequence& at(int sequence) const;
  Sequence& at(int sequence) { return const_cast<Sequence&>(std::as_const(*this).at(sequence)); }
  bool must_copy(const Table& table, int64_t length) const;
  // The first position of a layer that a query at `position` or later may attend to.
  int64_t reached(size_t layer, int64_t position) const;

  std::vector<LayerWindow> windows_;
  BlockPool pool_;
  std::vector<PagedLayer> layers_;
  std::vector<Sequence> sequences_;
  std::vector<Part> parts_;  // of the pass
  std::vector<Row> rows_;
};

}  // namespace braid::nn
