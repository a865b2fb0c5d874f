// Connections over depth: what each layer of a stack reads, where that is not the sum of all layers before it, by name,
// as the setting `residual` gives it. Each depth/<name>.cpp defines DepthRule <name>_depth(); the build makes the list
// of them from the files.
//
// A block has two layers, attention and feed-forward. Plain residual connections are not among these: their additions
// are part of the norms' kernels (residual_block.h). Everything here works on single positions, so that rows may lie on
// any rank, and no cache is needed beside that of attention.
#pragma once
#include <memory>

#include "braid/nn/transformer/block.h"

namespace braid::nn {

// The stack that they belong to.
struct DepthSizes {
  int64_t width = 0, layers = 0;   // D, L blocks
  double norm_eps = 1e-5;          // of norms of their own
  bool parallel_residual = false;  // the layers of a block read the same
  bool initialise = true;          // false: the values are about to be loaded
  bool expand_last = false;        // MUDD: four times the hidden units behind the last block
  bool round64 = false;            // MUDD: hidden units in multiples of 64
};

// What one pass through the stack has computed. The calls for block i = 0, 1, ... are, in this order: attention(),
// feed_forward() and end(). All tensors are (B, t, D).
class DepthPass {
 public:
  virtual ~DepthPass() = default;
  virtual AttentionInputs attention(size_t i) = 0;             // what attention reads, before its norms
  virtual Tensor feed_forward(size_t i, const Tensor& y) = 0;  // y of attention -> what the other layer reads
  virtual void end(size_t i, const Tensor& y) = 0;             // y of the feed-forward layer
  // After block i: its output, or what the next one reads, for an observer. After the last one: what the final norm
  // reads.
  virtual Tensor hidden() const = 0;
};

class DepthConnections : public Module {
 public:
  // x (B, t, D): the embedding. The observer of the pass gets layers.<i>.depth_weights where there are such.
  virtual std::unique_ptr<DepthPass> begin(const Tensor& x, const Pass& pass) const = 0;
  virtual std::unique_ptr<DepthConnections> clone() const = 0;  // shares the parameters
};

// The connections of a model, or none. A copy shares their parameters, as that of a layer does.
class Depth {
 public:
  Depth(std::unique_ptr<DepthConnections> connections = nullptr) : connections_(std::move(connections)) {}
  Depth(const Depth& other) : connections_(other ? other->clone() : nullptr) {}
  Depth(Depth&&) = default;
  Depth& operator=(Depth other) noexcept {
    connections_ = std::move(other.connections_);
    return *this;
  }
  ~Depth() = default;
  explicit operator bool() const { return connections_ != nullptr; }
  const DepthConnections* operator->() const { return connections_.get(); }
  const DepthConnections& operator*() const { return *connections_; }

 private:
  std::unique_ptr<DepthConnections> connections_;
};

struct DepthRule {
  std::string name;
  std::string help;              // one line
  bool parallel = false;         // they exist for parallel residuals
  bool separate_inputs = false;  // queries, keys and values read inputs of their own, but in the first block
  bool identity_start = false;   // a new stack gives what it would give with plain residual connections, to the bit
  std::unique_ptr<DepthConnections> (*make)(const DepthSizes& sizes, RandomKey key) = nullptr;
};

// The row of a class with a constructor (sizes, key).
template <class Connections>
DepthRule depth_rule(DepthRule rule) {
  rule.make = [](const DepthSizes& sizes, RandomKey key) -> std::unique_ptr<DepthConnections> {
    return std::make_unique<Connections>(sizes, key);
  };
  return rule;
}

namespace detail {
std::vector<DepthRule> built_in_depth_rules();  // made by cmake/braid-rules.cmake
}

// Adds connections of the program's own; throws Error(setting) when the name is taken. Not thread-safe.
void register_depth_rule(const DepthRule& rule);
const std::vector<DepthRule>& depth_rules();  // in the order of their names, then those registered
// Throws Error(setting) with the choices.
const DepthRule& depth_rule_named(const std::string& name);

// x (B, t, D), the embedding -> what the final norm reads, (B, t, D). The observer gets hidden.1 ... hidden.L beside
// what the blocks give. If the pass recomputes, the inputs of layers are kept, and their insides computed again.
Tensor through(const DepthConnections& connections, const std::vector<Block>& blocks, const Tensor& x,
               const Pass& pass);

Tensor unweighted_rms_norm(const Tensor& x, double eps);  // x / sqrt(mean(x^2) + eps) over the last axis

// y_c = sum_j w[., c, j] x_j      w (B, t, C, J), x_j (B, t, D) -> C tensors (B, t, D)
//   dx_j = sum_c w[., c, j] dy_c,  dw[., c, j] = dy_c . x_j
// Keeps w and x alone for the backward pass.
std::vector<Tensor> weighted_sums(const Tensor& w, const std::vector<Tensor>& x);

}  // namespace braid::nn
