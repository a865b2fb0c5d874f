// What record() builds: a node for each op that has a derivative to give.
#include "braid/autograd/record.h"

#include "braid/autograd/debug.h"
#include "braid/autograd/detail/node.h"
#include "braid/autograd/detail/segment.h"
#include "braid/tensor/base/recording.h"

namespace braid {

namespace {

std::shared_ptr<Node> make_node(const char* op, detail::Inputs inputs, Backward backward,
                                detail::ClosureTraits traits) {
  auto node = std::make_shared<Node>();
  node->op = op;
  node->differentiable = traits.differentiable;
  node->inputs.reserve(inputs.size());
  for (const Tensor& x : inputs) {
    Node::Input& input = node->inputs.emplace_back();
    if (!x) continue;
    input.node = x.node();
    input.shape = x.shape();
    input.dtype = x.dtype();
    if (traits.saves) input.saved = SavedVersion(x);
  }
  node->backward = std::move(backward);
  return node;
}

// A new handle on y with this history.
Tensor with_history(const Tensor& y, std::shared_ptr<Node> node, bool saves) {
  if (saves) node->result = SavedVersion(y);
  Tensor out = y.detach();
  out.set_node(std::move(node), true);
  return out;
}

}  // namespace

NoGrad::NoGrad() : recording_(detail::recording, false) {}
EnableGrad::EnableGrad() : recording_(detail::recording, true) {}

bool requires_grad(const Tensor& x) { return x && x.node() != nullptr; }

bool recording() { return detail::recording; }

bool recording(std::span<const Tensor> inputs) {
  if (!detail::recording) {
    detail::TensorsUsed::note(inputs);
    return false;
  }
  for (const Tensor& x : inputs) {
    if (requires_grad(x)) return true;
  }
  return false;
}

void no_gradient(const char* op, const Tensor& x) {
  check(!recording({x}), op,
        "has no derivative, but its input requires a gradient; call it under NoGrad or on x.detach()");
}

Tensor detail::record(const char* op, Tensor y, Inputs inputs, Backward backward, ClosureTraits traits) {
  if (watching()) watch(op, "", y);
  if (!braid::recording(inputs)) return y;
  return with_history(y, make_node(op, inputs, std::move(backward), traits), traits.saves);
}

// The graph of an op with two results:
//
//   inputs <-- op <-- result 0      the node of a result leaves its gradient with the pass (arrived_at);
//                 <-- result 1      the node of the op, which runs after both, takes them from there
//
// A result's node sends the op's a gradient without elements, as a sign that it was used.
std::vector<Tensor> detail::record_many(const char* op, std::vector<Tensor> ys, Inputs inputs, BackwardMany backward,
                                        ClosureTraits traits) {
  if (watching())
    for (size_t i = 0; i < ys.size(); ++i) watch(op, str("result ", i), ys[i]);
  if (!braid::recording(inputs)) return ys;
  auto op_node = make_node(op, inputs, {}, traits);
  Node* const at = op_node.get();
  op_node->backward = [at, n = ys.size(), backward = std::move(backward)](const Tensor&) {
    Grads dys = std::exchange(arrived_at(at), {});
    dys.resize(n);
    return backward(dys);
  };
  std::vector<Tensor> outs;
  for (size_t i = 0; i < ys.size(); ++i) {
    auto node = std::make_shared<Node>();
    node->op = op;
    node->differentiable = traits.differentiable;
    node->inputs.push_back({op_node, {0}, {}});
    node->backward = [at, i, n = ys.size()](const Tensor& dy) -> Grads {
      Grads& dys = arrived_at(at);
      dys.resize(n);
      dys[i] = dy;
      return {empty({0})};
    };
    outs.push_back(with_history(ys[i], std::move(node), traits.saves));
  }
  return outs;
}

}  // namespace braid
