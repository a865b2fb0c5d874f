// The graph and the backward walk. Iterative throughout: a chain of a million ops must not overflow the stack, neither
// in the walk nor when the graph is freed.
#include <unordered_map>

#include "braid/autograd/debug.h"
#include "braid/autograd/detail/node.h"
#include "braid/autograd/detail/segment.h"
#include "braid/tensor/base/recording.h"
#include "braid/tensor/kernels/backend.h"
#include "braid/tensor/kernels/pointwise_ops.h"

namespace braid {

namespace {

// Adds g to sum, in place when nothing else holds sum's buffer.
void accumulate(Tensor& sum, Tensor g) {
  if (!sum) {
    sum = std::move(g);
  } else if (sum.unique_storage() && sum.is_contiguous()) {
    sum.add_(g);
  } else {
    Tensor total = empty_like(sum);
    backend(sum.device()).pointwise.binary(BinaryOp::add, sum, g, total);
    sum = total;
  }
}

// The same for a leaf, whose gradient must be its own: copied when it is a view, repeats elements or is held elsewhere.
void accumulate_in_leaf(Node& leaf, Tensor g) {
  if (!leaf.gradient && !(g.unique_storage() && g.is_contiguous())) g = g.clone();
  accumulate(leaf.gradient, std::move(g));
  count_as(leaf.gradient, MemoryUse::gradients);
}

std::shared_ptr<Node> make_node(const char* op, detail::Inputs inputs, Backward backward, bool saves) {
  auto node = std::make_shared<Node>();
  node->op = op;
  node->inputs.reserve(inputs.size());
  for (const Tensor& x : inputs) {
    Node::Input& input = node->inputs.emplace_back();
    if (!x) continue;
    input.node = x.node();
    input.shape = x.shape();
    if (saves) input.saved = SavedVersion(x);
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

void check_not_written(const Node& node) {
  const char* advice = " written in place after the op had saved it; write after backward(), or give the op a copy";
  for (size_t i = 0; i < node.inputs.size(); ++i)
    check(node.inputs[i].saved.holds(), node.op, [&] { return str("input ", i, " was", advice); });
  check(node.result.holds(), node.op, [&] { return str("its result was", advice); });
}

// One pass: counts the consumers of each node that it meets, and runs a node when all of them have run.
class Walk {
 public:
  // Walks back from y. Inside the closure of a segment y is its result, computed again, and the graph behind it joins
  // the pass: the ops that now use what the segment captured take the place of the segment as its consumers.
  void from(const Tensor& y, Tensor dy, const std::vector<Tensor>& captured) {
    const NoGrad off;
    const MemoryScope scope(MemoryUse::workspace);
    Ready ready;
    count(y.node().get());
    for (const Tensor& x : captured) {
      for (Node::Input& input : running_->inputs) {
        if (input.node == x.node()) send(std::move(input.node), {}, ready);
      }
    }
    send(y.node(), std::move(dy), ready);
    run(ready);
  }

  static thread_local Walk* current;  // whose closure this thread executes

 private:
  using Ready = std::vector<std::shared_ptr<Node>>;

  // One more consumer of this node; a node met for the first time is one of its own inputs.
  void count(Node* root) {
    std::vector<Node*> stack{root};
    while (!stack.empty()) {
      Node* node = stack.back();
      stack.pop_back();
      check(!node->used, node->op,
            "history already used: backward() was called twice through this op; run the forward pass again");
      if (++consumers_[node] > 1) continue;
      for (const Node::Input& input : node->inputs) {
        if (input.node) stack.push_back(input.node.get());
      }
    }
  }

  // A consumer of the node has run and sent this gradient, or none.
  void send(std::shared_ptr<Node> node, Tensor g, Ready& ready) {
    if (g) accumulate(arrived_[node.get()], std::move(g));
    if (--consumers_[node.get()] > 0) return;
    consumers_.erase(node.get());
    ready.push_back(std::move(node));
  }

  void run(Ready& ready) {
    while (!ready.empty()) {
      const std::shared_ptr<Node> node = std::move(ready.back());
      ready.pop_back();
      Tensor g = std::move(arrived_[node.get()]);
      arrived_.erase(node.get());
      if (!node->is_leaf()) {
        run(*node, std::move(g), ready);
      } else if (g) {
        accumulate_in_leaf(*node, std::move(g));
        if (node->hook) node->hook(node->gradient);
      }
    }
  }

  // A node is run when all its consumers have, even if none of them sent a gradient: then it passes on nothing.
  void run(Node& node, Tensor g, Ready& ready) {
    check_not_written(node);
    Grads grads(node.inputs.size());
    if (g) {
      const ScopedValue<Walk*> walk(current, this);
      const ScopedValue<Node*> running(running_, &node);
      grads = node.backward(g);
    }
    g = Tensor();
    check(grads.size() == node.inputs.size(), node.op, [&] {
      return str("its derivative returned ", grads.size(), " gradients for ", node.inputs.size(), " inputs");
    });
    node.used = true;
    node.backward = nullptr;  // frees what the closure saved
    node.recomputed = nullptr;
    std::vector<Node::Input> inputs = std::exchange(node.inputs, {});
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].node) continue;
      if (grads[i]) {
        check(grads[i].shape() == inputs[i].shape, node.op, [&] {
          return str("its derivative has shape ", grads[i].shape(), " for input ", i, " of shape ", inputs[i].shape);
        });
        if (debug().any()) watch(node.op, str("derivative for input ", i), grads[i]);
      }
      send(std::move(inputs[i].node), std::move(grads[i]), ready);
    }
  }

  std::unordered_map<Node*, int> consumers_;   // that have not run yet
  std::unordered_map<Node*, Tensor> arrived_;  // sums of gradients
  Node* running_ = nullptr;
};

constinit thread_local Walk* Walk::current = nullptr;

}  // namespace

NoGrad::NoGrad() : recording_(detail::recording, false) {}
EnableGrad::EnableGrad() : recording_(detail::recording, true) {}

bool requires_grad(const Tensor& x) { return x && x.node() != nullptr; }

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

Tensor detail::record(const char* op, Tensor y, Inputs inputs, Backward backward, bool saves) {
  if (debug().any()) watch(op, "", y);
  if (!braid::recording(inputs)) return y;
  return with_history(y, make_node(op, inputs, std::move(backward), saves), saves);
}

// The graph of an op with two results:
//
//   inputs <-- op <-- result 0      the node of a result leaves its gradient in `arrived`;
//                 <-- result 1      the node of the op, which runs after both, takes them from there
//
// A result's node sends the op's a gradient without elements, as a sign that it was used.
std::vector<Tensor> detail::record_many(const char* op, std::vector<Tensor> ys, Inputs inputs, BackwardMany backward,
                                        bool saves) {
  if (debug().any())
    for (size_t i = 0; i < ys.size(); ++i) watch(op, str("result ", i), ys[i]);
  if (!braid::recording(inputs)) return ys;
  auto arrived = std::make_shared<std::vector<Tensor>>(ys.size());
  auto op_node = make_node(
      op, inputs,
      [arrived, backward = std::move(backward)](const Tensor&) { return backward(std::exchange(*arrived, {})); },
      saves);
  std::vector<Tensor> outs;
  for (size_t i = 0; i < ys.size(); ++i) {
    auto node = std::make_shared<Node>();
    node->op = op;
    node->inputs.push_back({op_node, {0}, {}});
    node->backward = [arrived, i](const Tensor& dy) -> Grads {
      (*arrived)[i] = dy;
      return {empty({0})};
    };
    outs.push_back(with_history(ys[i], std::move(node), saves));
  }
  return outs;
}

void backward(const Tensor& y, Tensor dy) {
  check(requires_grad(y), "backward", "the tensor has no history: nothing it depends on requires a gradient");
  if (!dy) {
    check(y.numel() == 1, "backward", [&] { return str("needs a gradient for a result of shape ", y.shape()); });
    dy = full(y.shape(), 1.0, y.dtype(), y.device());
  }
  check(dy.shape() == y.shape() && dy.dtype() == y.dtype(), "backward", [&] {
    return str("the gradient is ", dy.dtype(), " ", dy.shape(), ", the result ", y.dtype(), " ", y.shape());
  });
  Walk().from(y, std::move(dy), {});
}

void detail::backward_in_segment(const Tensor& y, const Tensor& dy, const std::vector<Tensor>& captured) {
  Walk::current->from(y, dy, captured);
}

}  // namespace braid
