#pragma once
#include "braid/autograd/ops.h"
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
    bool takes_lora = true;  // false: the weight is also used without the layer
  };
  Linear() = default;
  Linear(int64_t in, int64_t out, const Options& options, RandomKey key);
  explicit Linear(Tensor weight) : weight_(std::move(weight)), takes_lora_(false) {}  // (out, in), of another layer
  Tensor operator()(const Tensor& x) const;
  // Row-parallel (Megatron-LM): x and the weight are this rank's share of the inputs; the products are summed over
  // ranks, then the bias is added once. x (B, T, in) -> own rows (B, t, out). With null the same as above.
  Tensor row_parallel(const Tensor& x, const ShardContext* shards) const;
  void visit(Visitor& v) const override {
    v("weight", weight_, shard_);
    v("scale", scale_, shard_.axis == 0 ? shard_ : ShardRule{});
    v("bias", bias_, shard_.axis == 0 ? shard_ : ShardRule{});
    v("lora_A.weight", lora_a_, shard_.axis == 1 ? shard_ : ShardRule{});
    v("lora_B.weight", lora_b_, shard_.axis == 0 ? shard_ : ShardRule{});
  }
  // a(x) and b(x), in one product where their weights allow it (autograd/ops.h, linear_pair).
  static LinearPair both(const Linear& a, const Linear& b, const Tensor& x) {
    const auto plain = [](const Linear& l) { return !l.scale_ && !l.bias_ && !l.lora_a_; };
    return plain(a) && plain(b) ? linear_pair(x, a.weight_, b.weight_) : LinearPair{a(x), b(x)};
  }
  const Tensor& weight() const { return weight_; }
  // Merges LoRA into the weights and replaces them by 8-bit ones (quantize.h).
  void quantize();
  bool quantized() const { return bool(scale_); }

  // LoRA (Hu et al. 2021), two more parameters A (r, in) and B (out, r):
  //   y = x W^T + b + alpha / r (x A^T) B^T
  // Over ranks: the inputs of A or the outputs of B are sharded as those of the weight are.
  void set_lora(Tensor a, Tensor b, double alpha);
  void merge_lora();  // W += alpha / r B A, computed in f32 or f64; removes A and B
  bool takes_lora() const { return takes_lora_; }
  int64_t lora_rank() const { return lora_a_ ? lora_a_.dim(0) : 0; }  // 0: none
  double lora_alpha() const { return lora_alpha_; }

 private:
  Tensor product(const Tensor& x, const Tensor& bias) const;  // with LoRA
  double lora_scale() const { return lora_alpha_ / static_cast<double>(lora_rank()); }

  Tensor weight_;  // (out, in); u8 when quantised
  Tensor scale_;   // (out) when quantised, else empty
  Tensor bias_;    // (out) or empty; starts at 0
  ShardRule shard_;
  bool takes_lora_ = true;
  Tensor lora_a_, lora_b_;  // or empty
  double lora_alpha_ = 0;
};

}  // namespace braid::nn
