// The graph and the backward walk. Iterative throughout: a chain of a million ops must not overflow the stack, neither
// in the walk nor when the graph is freed.
#include <unordered_map>

#include "braid/autograd/debug.h"
#include "braid/autograd/record.h"
#include "braid/tensor/kernels/backend.h"
#include "braid/tensor/kernels/pointwise_ops.h"

namespace braid {

struct Node {
  const char* op = "leaf";
  bool used = false;
  std::vector<std::shared_ptr<Node>> inputs;  // null where an input wants no gradient
  std::vector<Shape> shapes;                  // of the inputs, to catch a derivative of the wrong shape at its source
  Backward backward;                          // empty for leaves
  Tensor gradient;                            // leaves only
  std::function<void(const Tensor&)> hook;    // leaves only

  Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node() {
    backward = nullptr;  // first, so that handles it captured do not keep the inputs' nodes alive below
    free_chain(inputs);
  }

  // Frees inputs without recursion: nodes that only we hold are opened and their own inputs queued.
  static void free_chain(std::vector<std::shared_ptr<Node>>& inputs) {
    std::vector<std::shared_ptr<Node>> queue;
    queue.swap(inputs);
    while (!queue.empty()) {
      std::shared_ptr<Node> node = std::move(queue.back());
      queue.pop_back();
      if (node && node.use_count() == 1) {
        node->backward = nullptr;
        for (auto& input : node->inputs) queue.push_back(std::move(input));
        node->inputs.clear();
      }
    }
  }
};

namespace {

thread_local bool recording_on = true;

// Adds g to sum, in place when nobody else can see sum's buffer.
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

template <class Inputs>
std::shared_ptr<Node> make_node(const char* op, const Inputs& inputs, Backward backward) {
  auto node = std::make_shared<Node>();
  node->op = op;
  for (const Tensor& x : inputs) {
    node->inputs.push_back(x ? x.node() : nullptr);
    node->shapes.push_back(x ? x.shape() : Shape{});
  }
  node->backward = std::move(backward);
  return node;
}

// How many consumers each node reachable from `root` has.
std::unordered_map<Node*, int> count_consumers(Node* root) {
  std::unordered_map<Node*, int> consumers{{root, 0}};
  std::vector<Node*> stack{root};
  while (!stack.empty()) {
    Node* node = stack.back();
    stack.pop_back();
    check(!node->used, node->op, [] {
      return std::string(
          "history already used: backward() was called twice through this op; run the forward pass again");
    });
    for (const auto& input : node->inputs) {
      if (!input) continue;
      auto [it, first_visit] = consumers.try_emplace(input.get(), 0);
      ++it->second;
      if (first_visit) stack.push_back(input.get());
    }
  }
  return consumers;
}

}  // namespace

NoGrad::NoGrad() : before_(recording_on) { recording_on = false; }
NoGrad::~NoGrad() { recording_on = before_; }
EnableGrad::EnableGrad() : before_(recording_on) { recording_on = true; }
EnableGrad::~EnableGrad() { recording_on = before_; }

bool requires_grad(const Tensor& x) { return x && x.node() != nullptr; }

bool recording(std::initializer_list<Tensor> inputs) {
  return recording(std::span<const Tensor>(inputs.begin(), inputs.size()));
}

bool recording(std::span<const Tensor> inputs) {
  if (!recording_on) return false;
  for (const Tensor& x : inputs) {
    if (requires_grad(x)) return true;
  }
  return false;
}

void no_gradient(const char* op, const Tensor& x) {
  check(!recording({x}), op, [] {
    return std::string("has no derivative, but its input wants a gradient; call it under NoGrad or on x.detach()");
  });
}

Tensor record(const char* op, Tensor y, std::initializer_list<Tensor> inputs, Backward backward) {
  return record(op, std::move(y), std::span<const Tensor>(inputs.begin(), inputs.size()), std::move(backward));
}

Tensor record(const char* op, Tensor y, std::span<const Tensor> inputs, Backward backward) {
  if (debug().any()) watch(op, "", y);
  if (!recording(inputs)) return y;
  Tensor out = y.detach();
  out.set_node(make_node(op, inputs, std::move(backward)), true);
  return out;
}

Tensor record_segment(const char* op, Tensor y, const std::vector<Tensor>& inputs, Backward backward) {
  if (!recording_on) return y;
  Tensor out = y.detach();
  out.set_node(make_node(op, inputs, std::move(backward)), true);
  return out;
}

std::vector<Tensor> record_many(const char* op, std::vector<Tensor> ys, std::initializer_list<Tensor> inputs,
                                BackwardMany backward) {
  if (debug().any())
    for (size_t i = 0; i < ys.size(); ++i) watch(op, "result " + std::to_string(i), ys[i]);
  if (!recording(inputs)) return ys;
  // Each result has a node that drops its gradient into a shared tray; their common input node empties the tray. The
  // tray node's own "gradient" is a dummy that only tells the walk that some result was used.
  auto tray = std::make_shared<std::vector<Tensor>>(ys.size());
  auto join = make_node(op, inputs, [tray, backward = std::move(backward)](const Tensor&) {
    std::vector<Tensor> dys = std::move(*tray);
    return backward(dys);
  });
  std::vector<Tensor> outs;
  for (size_t i = 0; i < ys.size(); ++i) {
    auto node = make_node(op, std::initializer_list<Tensor>{}, [tray, i](const Tensor& dy) -> Grads {
      (*tray)[i] = dy;
      return {empty({0}, dy.dtype(), dy.device())};
    });
    node->inputs.push_back(join);
    node->shapes.push_back({0});
    outs.push_back(ys[i].detach());
    outs.back().set_node(std::move(node), true);
  }
  return outs;
}

Tensor& require_grad(Tensor& x) {
  check(is_float(x.dtype()), "require_grad", [&] { return "a tensor of " + str(x.dtype()) + " has no gradient"; });
  check(!x.has_history(), "require_grad", [] { return std::string("the tensor is the result of a recorded op"); });
  if (!x.node()) x.set_node(std::make_shared<Node>(), false);
  return x;
}

namespace {
Node& leaf_node(const Tensor& x, const char* op) {
  check(requires_grad(x) && !x.has_history(), op,
        [] { return std::string("needs a leaf made by require_grad() (a parameter)"); });
  return *x.node();
}
}  // namespace

Tensor grad(const Tensor& leaf) { return leaf_node(leaf, "grad").gradient; }
void zero_grad(const Tensor& leaf) { leaf_node(leaf, "zero_grad").gradient = Tensor(); }
void set_grad(const Tensor& leaf, Tensor gradient) {
  check(gradient.shape() == leaf.shape(), "set_grad",
        [&] { return "the gradient has shape " + str(gradient.shape()) + ", the parameter " + str(leaf.shape()); });
  leaf_node(leaf, "set_grad").gradient = std::move(gradient);
}
void on_grad(const Tensor& leaf, std::function<void(const Tensor&)> hook) {
  leaf_node(leaf, "on_grad").hook = std::move(hook);
}

void backward(const Tensor& y, Tensor dy) {
  check(requires_grad(y), "backward",
        [] { return std::string("the tensor has no history: nothing it depends on wants a gradient"); });
  if (!dy) {
    check(y.numel() == 1, "backward", [&] { return "needs a gradient for a result of shape " + str(y.shape()); });
    dy = full(y.shape(), 1.0, y.dtype(), y.device());
  }
  check(dy.shape() == y.shape() && dy.dtype() == y.dtype(), "backward", [&] {
    return "the gradient is " + str(dy.dtype()) + " " + str(dy.shape()) + ", the result " + str(y.dtype()) + " " +
           str(y.shape());
  });
  NoGrad off;
  MemoryScope scope(MemoryUse::workspace);
  std::shared_ptr<Node> root = y.node();
  std::unordered_map<Node*, int> consumers = count_consumers(root.get());
  std::unordered_map<Node*, Tensor> arrived;
  arrived[root.get()] = std::move(dy);
  std::vector<std::shared_ptr<Node>> ready{root};
  while (!ready.empty()) {
    std::shared_ptr<Node> node = std::move(ready.back());
    ready.pop_back();
    Tensor g = std::move(arrived[node.get()]);
    arrived.erase(node.get());
    if (!node->backward) {  // a leaf
      if (g) {
        accumulate(node->gradient, std::move(g));
        count_as(node->gradient, MemoryUse::gradients);
        if (node->hook) node->hook(node->gradient);
      }
      continue;
    }
    // A node is ready when all its consumers have run, even if none of them sent a gradient: then it passes on nothing.
    Grads grads = g ? node->backward(g) : Grads(node->inputs.size());
    g = Tensor();
    check(grads.size() == node->inputs.size(), node->op, [&] {
      return "its derivative returned " + std::to_string(grads.size()) + " gradients for " +
             std::to_string(node->inputs.size()) + " inputs";
    });
    node->used = true;
    node->backward = nullptr;  // frees what the closure saved
    std::vector<std::shared_ptr<Node>> inputs = std::move(node->inputs);
    node->inputs.clear();
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i]) continue;
      if (grads[i]) {
        check(grads[i].shape() == node->shapes[i], node->op, [&] {
          return "its derivative has shape " + str(grads[i].shape()) + " for input " + std::to_string(i) +
                 " of shape " + str(node->shapes[i]);
        });
        if (debug().any()) watch(node->op, "derivative for input " + std::to_string(i), grads[i]);
        accumulate(arrived[inputs[i].get()], std::move(grads[i]));
      }
      if (--consumers[inputs[i].get()] == 0) ready.push_back(std::move(inputs[i]));
    }
  }
}

}  // namespace braid
