#include "braid/autograd/saved.h"

#include "braid/autograd/detail/node.h"
#include "braid/tensor/trace_device.h"

namespace braid {

namespace {

constexpr int kViewLimit = 8;  // views of views: get() is recursive

// The versions of the inputs of the node's op, which with several results has a node behind that of each result.
void add_inputs(const Node& node, std::vector<SavedVersion>& found) {
  for (const Node::Input& input : node.inputs) {
    found.push_back(input.saved);
    if (input.node && input.node->op == node.op && input.shape == Shape{0}) add_inputs(*input.node, found);
  }
}

Tensor recomputable(Tensor y, std::function<Tensor()> compute, int views) {
  if (!y.node() || y.node()->is_leaf() || !detail::recomputes(y.device())) return y;
  auto again = std::make_shared<detail::Recomputed>();
  again->op = y.node()->op;
  again->compute = std::move(compute);
  again->views = views;
  again->result = SavedVersion(y);
  add_inputs(*y.node(), again->inputs);
  y.node()->recomputed = std::move(again);
  return y;
}

Tensor value_of(detail::Recomputed& x) {
  if (x.value) return x.value;
  for (const SavedVersion& input : x.inputs)
    check(input.holds(), x.op,
          "an input was written in place after the op had saved it; write after backward(), or give the op a copy");
  const NoGrad off;
  return x.value = x.compute();
}

}  // namespace

bool detail::recomputes(Device device) {
  const TraceDevice* trace = TraceDevice::current();
  return device == kCpu && !(trace && trace->gpu());
}

// A result that was written to meanwhile is no longer what compute() gives.
std::shared_ptr<detail::Recomputed> detail::recomputed(const Tensor& x) {
  const std::shared_ptr<Recomputed> found = x && x.node() ? x.node()->recomputed : nullptr;
  return found && found->result.holds() ? found : nullptr;
}

Tensor recomputable(Tensor y, std::function<Tensor()> compute) {
  return recomputable(std::move(y), std::move(compute), 0);
}

Tensor recomputable_view(const Tensor& x, Tensor y, std::function<Tensor(const Tensor& x)> view) {
  const auto of_x = detail::recomputed(x);
  if (!of_x || of_x->views == kViewLimit) return y;
  return recomputable(
      std::move(y), [of_x, view = std::move(view)] { return view(value_of(*of_x)); }, of_x->views + 1);
}

Tensor Saved::get() const {
  if (!again_) return values_;
  Tensor x = value_of(*again_).detach();
  x.set_node(node_, true);
  return x;
}

}  // namespace braid
