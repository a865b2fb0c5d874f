// An input that a derivative saves: its values, or a function that recomputes them where that is cheap.
//
// The results of norms, activations, gates and of rotations after a norm follow, in one pass over memory, from what
// their own derivatives save anyway. Their ops declare this (recomputable), products and attention capture such inputs
// as Saved, and the memory is free between forward and backward. The recomputed values are bit-identical.
#pragma once
#include <functional>
#include <memory>
#include <utility>

#include "braid/autograd/record.h"

namespace braid {

namespace detail {
struct Recomputed;
std::shared_ptr<Recomputed> recomputed(const Tensor& x);  // null where x is kept itself
bool recomputes(Device device);                           // rather than keeping results that are cheap to compute
}  // namespace detail

// Marks y, the result of a recorded op, as recomputable: compute() returns it again in the backward pass, before the
// op's own derivative runs, with recording off. compute may capture what that derivative captures, but not y. On a GPU
// y is kept: the cost of recomputing there was not measured.
Tensor recomputable(Tensor y, std::function<Tensor()> compute);
// Marks y, a recorded view of x: where x is recomputed, y is recomputed as view(x).
Tensor recomputable_view(const Tensor& x, Tensor y, std::function<Tensor(const Tensor& x)> view);

class Saved {
 public:
  Saved() = default;
  explicit Saved(const Tensor& x)
      : again_(detail::recomputed(x)), node_(again_ ? x.node() : nullptr), values_(again_ ? Tensor() : x) {}

  explicit operator bool() const { return again_ || values_; }
  bool is_recomputed() const { return again_ != nullptr; }
  // The tensor, with its history. If the values are recomputed, one computation serves all that saved the tensor.
  // Throws when a tensor that they are computed from has been written in place.
  Tensor get() const;

 private:
  std::shared_ptr<detail::Recomputed> again_;
  std::shared_ptr<Node> node_;  // of the recomputed tensor
  Tensor values_;
};

}  // namespace braid
