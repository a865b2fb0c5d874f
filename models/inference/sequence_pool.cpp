#include "braid/models/inference/sequence_pool.h"

#include <optional>
#include <utility>
#include <vector>

#include "braid/autograd/ops.h"
#include "braid/models/language_model.h"

namespace braid::models {
namespace {

constexpr int64_t kBlock = 16;  // positions

struct Sequence {
  KvCache cache;
  int64_t length = 0, blocks = 0;
};

class SeparatePool final : public SequencePool {
 public:
  SeparatePool(const LanguageModel& model, int64_t positions) : model_(model), blocks_(blocks_for(positions)) {
    check(positions >= 1, "sequence_pool",
          [&] { return str("needs room for at least one position, got ", positions); });
  }

  int64_t block() const override { return kBlock; }
  int64_t blocks() const override { return blocks_; }
  int64_t free_blocks() const override { return blocks_ - used_; }
  int64_t blocks_for(int64_t length) const override { return (length + kBlock - 1) / kBlock; }
  int64_t bytes() const override {
    int64_t sum = 0;
    for (const std::optional<Sequence>& s : sequences_) sum += s ? s->cache.bytes() : 0;
    return sum;
  }

  int open() override {
    size_t number = 0;
    while (number < sequences_.size() && sequences_[number]) ++number;
    if (number == sequences_.size()) sequences_.emplace_back();
    sequences_[number].emplace().cache = model_.make_cache(model_.max_sequence_length());
    return static_cast<int>(number);
  }

  int fork(int of, int64_t length) override {
    const int copy = open();
    const Sequence& from = at(of);
    if (length < from.length || !reserve(copy, from.length)) return copy;
    at(copy).cache = from.cache.clone();
    at(copy).length = from.length;
    return copy;
  }

  void close(int sequence) override {
    used_ -= at(sequence).blocks;
    sequences_[static_cast<size_t>(sequence)].reset();
  }

  int64_t length(int sequence) const override { return at(sequence).length; }

  bool reserve(int sequence, int64_t more) override {
    Sequence& s = at(sequence);
    const int64_t needed = blocks_for(s.length + more) - s.blocks;
    if (needed > free_blocks()) return false;
    if (needed <= 0) return true;
    s.blocks += needed;
    used_ += needed;
    return true;
  }

  Tensor hidden(std::span<const Part> parts) override {
    const NoGrad off;
    std::vector<Tensor> rows;
    for (const Part& part : parts) {
      Sequence& s = at(part.sequence);
      const int64_t T = std::ssize(part.tokens);
      check(T >= 1 && s.length + T <= s.blocks * kBlock, "sequence_pool", [&] {
        return str(T, " tokens after position ", s.length, " of sequence ", part.sequence,
                   ": expected at least one, and room reserved for them, found room for ",
                   s.blocks * kBlock - s.length);
      });
      const Tensor ids = from_vector(std::vector<int32_t>(part.tokens.begin(), part.tokens.end()), {1, T});
      const Tensor h = model_.hidden(ids.to(model_.device()), &s.cache);  // (1, T, D)
      rows.push_back(reshape(h, {T, h.dim(2)}));
      s.length += T;
    }
    return rows.size() == 1 ? rows[0] : concat(rows, 0);
  }

  bool invariant() const override { return false; }

 private:
  const Sequence& at(int sequence) const {
    const bool open = sequence >= 0 && sequence < std::ssize(sequences_) && sequences_[static_cast<size_t>(sequence)];
    check(open, "sequence_pool", [&] { return str("sequence ", sequence, " is not open"); });
    return *sequences_[static_cast<size_t>(sequence)];
  }
  Sequence& at(int sequence) { return const_cast<Sequence&>(std::as_const(*this).at(sequence)); }

  const LanguageModel& model_;
  int64_t blocks_, used_ = 0;
  std::vector<std::optional<Sequence>> sequences_;  // by number; none: not open
};

}  // namespace

std::unique_ptr<SequencePool> make_separate_pool(const LanguageModel& model, int64_t positions) {
  return std::make_unique<SeparatePool>(model, positions);
}

}  // namespace braid::models
