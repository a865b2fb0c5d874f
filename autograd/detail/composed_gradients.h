// The derivative of a fused op as ops that record: that of its composed meaning. Closures of fused ops take it while
// recording is on, that is when their result will be differentiated again (grad() with create_graph).
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "braid/autograd/record.h"

namespace braid::detail {

// The history of a tensor without its values: closures keep it beside values that they keep without history.
class History {
 public:
  explicit History(const Tensor& x) : node_(x ? x.node() : nullptr) {}
  explicit operator bool() const { return node_ != nullptr; }
  Tensor on(const Tensor& values) const;  // a new handle on these values, of the shape of x

 private:
  std::shared_ptr<Node> node_;
};

using Composed = std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs)>;

// f computes the op's results from its inputs, with ops that record. One gradient per input, for one dy per result; an
// empty handle stands for a result that nothing used, and for the gradient of an input that needs none.
Grads composed_gradients(const std::vector<Tensor>& inputs, const Composed& f, const std::vector<Tensor>& dys);

}  // namespace braid::detail
