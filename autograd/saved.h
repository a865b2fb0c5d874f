// An input as a derivative keeps it: its values, or the way to compute them again where that is cheap.
//
// The results of norms, activations, gates and rotations behind a norm follow by one pass over memory from what their
// own derivatives keep in any case. Their op says so (recomputable), products and attention capture such inputs as
// Saved, and the memory is free between forward and backward. Both passes compute the same bits.
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

// y, the result of a recorded op, as one that `compute` gives again in the backward pass, before the op's own
// derivative runs, with recording off. compute may capture what that derivative captures, not y. On a GPU y is kept:
// what a second computation costs there was not measured.
Tensor recomputable(Tensor y, std::function<Tensor()> compute);
// y, a recorded view of x: where x is computed again, so is y, as view(x).
Tensor recomputable_view(const Tensor& x, Tensor y, std::function<Tensor(const Tensor& x)> view);

class Saved {
 public:
  Saved() = default;
  explicit Saved(const Tensor& x) : again_(detail::recomputed(x)), values_(again_ ? Tensor() : x) {}

  explicit operator bool() const { return again_ || values_; }
  bool is_recomputed() const { return again_ != nullptr; }
  // Without history where it is computed again: once for all that saved the tensor. Throws when something that it is
  // computed from has been written in place.
  Tensor get() const;

 private:
  std::shared_ptr<detail::Recomputed> again_;
  Tensor values_;
};

}  // namespace braid
