// Many sequences of a Dcformer at once: their tokens are rows of one pass over the weights, and attention reads their
// keys in blocks.
//
// The same bits in any company: products give each row bits of its own (tensor/row_invariant.h), and so does attention
// (autograd/paged_attention.h); everything else works on single rows. Strict bits are those of training, where local
// layers have the window of given tokens. Over tensor ranks each one keeps the keys that its own heads read, as with a
// KvCache, and makes the same tables.
#include "braid/autograd.h"
#include "braid/models/families/dcformer/model.h"
#include "braid/models/inference/sequence_pool.h"
#include "braid/nn/attention/paged_cache.h"
#include "braid/tensor/row_invariant.h"
#include "braid/tensor/strict.h"

namespace braid::models {

namespace {

constexpr int64_t kBlock = 16;  // positions; a sequence wastes half a block of each layer on average

std::vector<nn::LayerWindow> windows_of(const DcformerConfig& config) {
  std::vector<nn::LayerWindow> windows;
  for (int64_t i = 0; i < config.n_layer; ++i)
    windows.push_back({config.keys_of_layer(i, false), config.keys_of_layer(i, true)});
  return windows;
}

}  // namespace

class PagedSequences final : public SequencePool {
 public:
  PagedSequences(const Dcformer& model, int64_t positions)
      : model_(model), cache_(windows_of(model.config()), positions, kBlock) {
    for (int64_t i = 0; i < model.config().n_layer; ++i) caches_.push_back(&cache_.layer(static_cast<size_t>(i)));
    const int first = open();  // one token tells the shapes: the memory is taken now, not while texts are served
    reserve(first, 1);
    const int32_t token = 0;
    hidden(std::vector<Part>{{first, {&token, 1}}});
    close(first);
  }

  int64_t block() const override { return cache_.block(); }
  int64_t blocks() const override { return cache_.blocks(); }
  int64_t free_blocks() const override { return cache_.free_blocks(); }
  int64_t bytes() const override { return cache_.bytes(); }
  int64_t blocks_for(int64_t length) const override { return cache_.blocks_for(length); }
  int open() override { return cache_.open(); }
  int fork(int of, int64_t length) override { return cache_.fork(of, length); }
  void close(int sequence) override { cache_.close(sequence); }
  int64_t length(int sequence) const override { return cache_.length(sequence); }
  bool reserve(int sequence, int64_t more) override { return cache_.reserve(sequence, more); }
  bool invariant() const override { return true; }

  Tensor hidden(std::span<const Part> parts) override {
    const NoGrad off;
    const RowInvariantProducts row_by_row;
    std::vector<int32_t> ids;
    std::vector<nn::PagedCache::Part> appended;
    for (const Part& part : parts) {
      ids.insert(ids.end(), part.tokens.begin(), part.tokens.end());
      appended.push_back({part.sequence, std::ssize(part.tokens), part.generated && !strict_bits()});
    }
    cache_.begin(std::move(appended));
    nn::Pass pass = model_.pass({});
    pass.rope = model_.rope_.at(cache_.positions());
    if (pass.local_rope) pass.local_rope = pass.local_rope.at(cache_.positions());
    pass.caches = caches_;
    const int64_t R = std::ssize(ids);
    const Tensor h = model_.forward(from_vector(ids, {1, R}), pass);
    cache_.end();
    return h.reshaped({R, h.dim(2)});
  }

 private:
  const Dcformer& model_;
  nn::PagedCache cache_;
  std::vector<nn::AttentionCache*> caches_;
};

std::unique_ptr<SequencePool> Dcformer::make_sequence_pool(int64_t positions) const {
  check(positions >= 1, "dcformer",
        [&] { return str("a pool needs room for at least one position, got ", positions); });
  // Other devices, composed variants and capped scores have no kernel for keys in blocks, and where attention is not
  // causal a token changes the keys of those before it. Over tensor ranks a layer with Compose may keep the keys of all
  // heads, one without keeps its own: blocks are of one size.
  const bool alike = one_process() || mesh_.tensor.size() == 1 || config_.compose_layers == "all";
  if (device() != kCpu || !config_.pages() || !alike) return make_separate_pool(*this, positions);
  return std::make_unique<PagedSequences>(*this, positions);
}

}  // namespace braid::models
