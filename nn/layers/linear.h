#pragma once
#include "braid/autograd/ops.h"
#include "braid/nn/init.h"
#include "braid/nn/module.h"
#include "braid/nn/shard_context.h"
#include "braid/tensor/group_weight.h"

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
  // The outputs in consecutive parts of these widths, of an input each: xs (..., in) -> (..., out).
  Tensor of_parts(const std::vector<Tensor>& xs, const std::vector<int64_t>& widths) const;
  void visit(Visitor& v) const override {
    v("weight", weight_, shard_);
    v("scale", scale_, shard_.axis == 0 ? shard_ : ShardRule{});
    v("bias", bias_, shard_.axis == 0 ? shard_ : ShardRule{});
    for (const LoraPair& pair : lora_) {
      const std::string part = pair.part.empty() ? "" : pair.part + ".";
      v(part + "lora_A.weight", pair.a, shard_.axis == 1 ? shard_ : ShardRule{});
      v(part + "lora_B.weight", pair.b, shard_.axis == 0 && pair.part.empty() ? shard_ : ShardRule{});
    }
  }
  // a(x) and b(x), in one product where their weights allow it (autograd/ops.h, linear_pair).
  static LinearPair both(const Linear& a, const Linear& b, const Tensor& x);
  const Tensor& weight() const { return weight_; }
  // Merges LoRA into the weights and replaces them by those of 8 or 4 bits (quantize.h).
  void quantize(int bits = 8);
  void set_quantized(const GroupWeight& weight);  // of the layer's shape
  bool quantized() const { return bool(scale_); }
  int bits() const { return !scale_ ? 0 : scale_.rank() == 1 ? 8 : GroupPanels{weight_, scale_}.bits(); }

  // LoRA (Hu et al. 2021), two more parameters A (r, in) and B (out, r):
  //   y = x W^T + b + alpha / r (x A^T) B^T
  // Over ranks: the inputs of A or the outputs of B are sharded as those of the weight are. Parts of the outputs
  // (queries, keys, values of one weight) may have pairs of their own, of one rank; the other outputs stay as they are.
  struct LoraPair {
    std::string part;   // "": all outputs; "q": parameters q.lora_A.weight and q.lora_B.weight
    int64_t first = 0;  // output of this rank that the first row of B belongs to
    Tensor a, b;        // (r, in), (outputs of the part, r)
  };
  void set_lora(std::vector<LoraPair> pairs, double alpha);  // in the order of their outputs
  void set_lora(Tensor a, Tensor b, double alpha) { set_lora({{"", 0, std::move(a), std::move(b)}}, alpha); }
  void merge_lora();  // W += alpha / r B A, computed in f32 or f64; removes A and B
  bool takes_lora() const { return takes_lora_; }
  const std::vector<LoraPair>& lora() const { return lora_; }
  int64_t lora_rank() const { return lora_.empty() ? 0 : lora_[0].a.dim(0); }  // 0: none
  double lora_alpha() const { return lora_alpha_; }

 private:
  Tensor product(const Tensor& x, const Tensor& bias) const;  // with LoRA
  Tensor lora_product(const Tensor& x) const;                 // (x A^T) B^T, 0 for outputs without a pair
  double lora_scale() const { return lora_alpha_ / static_cast<double>(lora_rank()); }

  Tensor weight_;  // (out, in), or the values of an Int8Weight or GroupPanels
  Tensor scale_;   // that of either, else empty
  Tensor bias_;    // (out) or empty; starts at 0
  ShardRule shard_;
  bool takes_lora_ = true;
  std::vector<LoraPair> lora_;
  double lora_alpha_ = 0;
};

}  // namespace braid::nn
