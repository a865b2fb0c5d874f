#pragma once
#include "braid/nn/init.h"
#include "braid/nn/module.h"
#include "braid/nn/shard_context.h"

namespace braid::nn {

// y = x W^T + b.  (..., in) -> (..., out)
class Linear final : public Module {
 public:
  struct Options {
    bool bias = false;
    Init init = Init::xavier_uniform();
    // Axis 0: the outputs are sharded (column-parallel in Megatron-LM's words). Axis 1: the inputs are (row-parallel),
    // and every rank holds the complete bias.
    ShardRule shard = {};
  };
  Linear() = default;
  Linear(int64_t in, int64_t out, const Options& options, RandomKey key);
  explicit Linear(Tensor weight) : weight_(std::move(weight)) {}  // (out, in), of another layer
  Tensor operator()(const Tensor& x) const;
  // Row-parallel (Megatron-LM): x and the weight are this rank's share of the inputs; the products are summed over
  // ranks, then the bias is added once. x (B, T, in) -> own rows (B, t, out). With null the same as above.
  Tensor row_parallel(const Tensor& x, const ShardContext* shards) const;
  void visit(Visitor& v) const override {
    v("weight", weight_, shard_);
    v("scale", scale_, shard_.axis == 0 ? shard_ : ShardRule{});
    v("bias", bias_, shard_.axis == 0 ? shard_ : ShardRule{});
  }
  const Tensor& weight() const { return weight_; }
  // 8-bit weights in the place of these (quantize.h).
  void quantize();
  bool quantized() const { return bool(scale_); }

 private:
  Tensor product(const Tensor& x, const Tensor& bias) const;

  Tensor weight_;  // (out, in); u8 when quantised
  Tensor scale_;   // (out) when quantised, else empty
  Tensor bias_;    // (out) or empty; starts at 0
  ShardRule shard_;
};

}  // namespace braid::nn
