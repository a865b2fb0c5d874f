// Attention variants: what a layer adds to scaled dot-product attention or DCMHA, by name, as the setting `attention`
// gives it. Each variants/<name>.cpp defines AttentionVariantRule <name>_variant(); the build makes the list of them
// from the files.
//
// Most change the projections before attention or a head's output after it, so that attention itself stays one of the
// fused kernels. What is cached are the k and v that they made, their FLOPs are those of the traced ops, their
// parameters are sharded by the rules of their `visit`. A composed one reads all heads, so that its parameters are
// whole on each rank: it changes scores or probabilities, which no kernel does (attention then runs as ops, block by
// block, composed_attention.h), or makes pseudo tokens, among which the kernel then attends.
#pragma once
#include <memory>

#include "braid/autograd/ops.h"
#include "braid/nn/attention/pass.h"
#include "braid/nn/layers/linear.h"

namespace braid::nn {

// The layer that a variant belongs to; heads are those of all ranks together.
struct VariantSizes {
  int64_t width = 0, heads = 0, kv_heads = 0, head_dim = 0;  // D, N, Nkv, d; N: heads that the output projection reads
  int64_t queries = 0;                                       // Nq, those that attend
  int64_t vocabulary = 0;                                    // V; 0: the model has no tokens
  Init init;                                                 // of the layer's projections

  // For a Linear whose outputs belong to heads.
  Linear::Options by_head() const { return {.init = init, .shard = {.axis = 0, .unit = "head", .units = heads}}; }
};

class AttentionVariant : public Module {
 public:
  // qkv (B, T, (Nq + 2 Nkv) d): queries, keys and values of this rank's heads, before norms and rotation -> the same. x
  // (B, T, D) is the input of the layer for the same rows, pass.ids their tokens.
  virtual Tensor projections(const Tensor& qkv, const QkvSplit& how, const Tensor& x, const Pass& pass) const {
    (void)how, (void)x, (void)pass;
    return qkv;
  }
  // y (B, T, heads, d), what this rank's heads give -> (B, T, N, d). x (B, T, D) is the input of the layer for the same
  // rows, v (B, T, Nkv, d) their values, after projections(). The observer of the pass gets what is worth a look.
  virtual Tensor output(const Tensor& y, const Tensor& x, const Tensor& v, const Pass& pass) const {
    (void)x, (void)v, (void)pass;
    return y;
  }

  // Composed variants have all heads here, s and p (B, Nq, T, S) in f32 or f64. Masked keys get p = 0, are -inf in
  // normalised(), and scaled scores in scores(), beside the mask of its rows. Until it is called of the variant with
  // earlier_queries, their rows are in front, of scores 0 where there are no such queries; it returns the others.
  virtual Tensor scores(const Tensor& s, const AttentionMask& mask) const { return (void)mask, s; }
  virtual Tensor normalised(const Tensor& s) const { return (void)s, Tensor(); }  // s -> p; empty: by softmax
  virtual Tensor probabilities(const Tensor& p) const { return p; }

  // With P > 1 pseudo tokens of each token: q, k and v of tokens, after norms and rotation, -> those of the pseudo
  // tokens, (B, T P, N, d), token by token, and what these get -> y (B, T, N, d). They attend as P tokens would.
  virtual int64_t pseudo_tokens() const { return 1; }
  virtual void expand(AttentionOperands& x) const { (void)x; }
  virtual Tensor collapse(const Tensor& y) const { return y; }
};

struct AttentionVariantRule {
  std::string name;
  std::string help;              // one line
  int64_t queries_per_head = 1;  // Nq / N: query heads of which output() makes one head
  bool composed = false;         // it changes scores or probabilities, or makes pseudo tokens: not beside DCMHA
  bool normalises = false;       // it has normalised(): one such variant at most in a layer
  bool pseudo = false;           // it makes pseudo tokens: the kernels serve it, alone or beside composed ones
  int64_t earlier_queries = 0;   // queries before its own that a score depends on: the cache keeps queries too
  bool gives = false;            // the first layer that has it adds to Pass::shared, under the variant's name
  bool identity_start = false;   // a new layer gives what it would give without the variant, to the bit
  std::unique_ptr<AttentionVariant> (*make)(const VariantSizes& sizes, RandomKey key) = nullptr;
  std::unique_ptr<AttentionVariant> (*copy)(const AttentionVariant& variant) = nullptr;  // shares its parameters
};

// The softmax of s (B, N, T, S) beside one more score z, which expands to (B, N, T, 1) and whose share goes nowhere.
Tensor softmax_beside(const Tensor& s, const Tensor& z);

// The row of a class with a constructor (sizes, key).
template <class Variant>
AttentionVariantRule attention_variant(AttentionVariantRule rule) {
  rule.make = [](const VariantSizes& sizes, RandomKey key) -> std::unique_ptr<AttentionVariant> {
    return std::make_unique<Variant>(sizes, key);
  };
  rule.copy = [](const AttentionVariant& variant) -> std::unique_ptr<AttentionVariant> {
    return std::make_unique<Variant>(static_cast<const Variant&>(variant));
  };
  return rule;
}

namespace detail {
std::vector<AttentionVariantRule> built_in_attention_variants();  // made by cmake/braid-rules.cmake
}

// Adds a variant of the program's own; throws Error(setting) when the name is taken. Not thread-safe.
void register_attention_variant(const AttentionVariantRule& rule);
const std::vector<AttentionVariantRule>& attention_variants();  // in the order of their names, then those registered
// Throws Error(setting) with the choices.
const AttentionVariantRule& attention_variant_named(const std::string& name);

// Error(setting) "bad attention: ..." where these do not go together in one layer.
void check_attention_variants(const std::vector<std::string>& names);

// The variants of a layer, in the order in which they are applied. A copy shares their parameters.
class AttentionVariants {
 public:
  AttentionVariants() = default;
  // sizes without `queries`, which follow.
  AttentionVariants(const std::vector<std::string>& names, VariantSizes sizes, RandomKey key);
  AttentionVariants(const AttentionVariants& other);
  AttentionVariants(AttentionVariants&&) = default;
  AttentionVariants& operator=(AttentionVariants other) noexcept;

  int64_t queries_per_head() const { return queries_per_head_; }
  bool composed() const { return composed_; }
  bool gives(const Pass& pass) const;  // whether a variant is yet to add to Pass::shared
  Tensor projections(Tensor qkv, const QkvSplit& how, const Tensor& x, const Pass& pass) const;
  Tensor output(Tensor y, const Tensor& x, const Tensor& v, const Pass& pass) const;
  // The operands of attention. `first`, where it is not empty, changes the scores before the variants do.
  AttentionOperands operands(const Qkv& qkv, std::function<Tensor(const Tensor& scores)> first = nullptr) const;
  void visit(Visitor& v) const;

 private:
  bool any(bool (*is)(const AttentionVariantRule&)) const;
  ScoreFunctions score_functions(std::function<Tensor(const Tensor& scores)> first) const;

  std::vector<std::string> names_;
  std::vector<std::shared_ptr<AttentionVariant>> variants_;  // shared with functions of a pass
  int64_t queries_per_head_ = 1, queries_per_key_ = 1;
  bool composed_ = false;
};

}  // namespace braid::nn
