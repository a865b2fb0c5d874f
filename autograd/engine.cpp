// The backward walk. Iterative throughout: a chain of a million ops must not overflow the stack, neither
// in the walk nor when the graph is freed.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "braid/autograd/debug.h"
#include "braid/autograd/detail/accumulate.h"
#include "braid/autograd/detail/segment.h"
#include "braid/tensor/base/recording.h"

namespace braid {

namespace {

void check_not_written(const Node& node) {
  const char* advice = " written in place after the op had saved it; write after backward(), or give the op a copy";
  for (size_t i = 0; i < node.inputs.size(); ++i)
    check(node.inputs[i].saved.holds(), node.op, [&] { return str("input ", i, " was", advice); });
  check(node.result.holds(), node.op, [&] { return str("its result was", advice); });
}

// One pass: counts the consumers of each node that it meets, and runs a node when all of them have run.
class Walk {
 public:
  // To every leaf.
  explicit Walk(BackwardOptions options) : keep_(options.keep) {}

  // To the nodes of xs alone. What lies on no way from y to them is skipped.
  Walk(const Tensor& y, const std::vector<Tensor>& xs, const GradOptions& options)
      : keep_(options.keep || options.create_graph), create_graph_(options.create_graph) {
    for (const Tensor& x : xs) wanted_[x.node().get()];
    skip_all_but_ways_to_wanted(y.node().get());
  }

  // Walks back from y. Inside the closure of a segment y is its result, computed again, and the graph behind it joins
  // the pass: the ops that now use what the segment captured take the place of the segment as its consumers.
  void from(const Tensor& y, Tensor dy, const std::vector<Tensor>& captured) {
    const ScopedValue<bool> recording(detail::recording, create_graph_);
    const MemoryScope scope(create_graph_ ? MemoryUse::activations : MemoryUse::workspace);
    Ready ready;
    count(y.node().get());
    for (const Tensor& x : captured) {
      for (Node::Input& input : *running_) {
        if (input.node == x.node()) send(std::exchange(input.node, nullptr), {}, ready);
      }
    }
    send(y.node(), std::move(dy), ready);
    run(ready);
  }

  Tensor gradient(const Tensor& x) const { return wanted_.at(x.node().get()); }

  bool keeps() const { return keep_; }
  Grads& of_results(Node* op) { return of_results_[op]; }

  static thread_local Walk* current;  // whose closure this thread executes

 private:
  using Ready = std::vector<std::shared_ptr<Node>>;

  void skip_all_but_ways_to_wanted(Node* root) {
    std::vector<Node*> stack{root};
    std::unordered_set<Node*> met, done;
    while (!stack.empty()) {
      Node* node = stack.back();
      if (met.insert(node).second) {  // its inputs first
        for (const Node::Input& input : node->inputs) {
          if (input.node && !met.contains(input.node.get())) stack.push_back(input.node.get());
        }
        continue;
      }
      stack.pop_back();
      if (done.insert(node).second && !wanted_.contains(node) && !leads_to_wanted(*node)) skipped_.insert(node);
    }
  }

  bool leads_to_wanted(const Node& node) const {
    return std::ranges::any_of(
        node.inputs, [&](const Node::Input& input) { return input.node && !skipped_.contains(input.node.get()); });
  }

  // One more consumer of this node; a node met for the first time is one of its own inputs.
  void count(Node* root) {
    std::vector<Node*> stack{root};
    while (!stack.empty()) {
      Node* node = stack.back();
      stack.pop_back();
      if (skipped_.contains(node)) continue;
      check(!node->used, node->op,
            "history already used: backward() was called twice through this op; run the forward pass again, or pass "
            "keep = true to the first call");
      if (++consumers_[node] > 1) continue;
      for (const Node::Input& input : node->inputs) {
        if (input.node) stack.push_back(input.node.get());
      }
    }
  }

  // A consumer of the node has run and sent this gradient, or none.
  void send(std::shared_ptr<Node> node, Tensor g, Ready& ready) {
    if (skipped_.contains(node.get())) return;
    if (g) detail::accumulate(arrived_[node.get()], std::move(g));
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
      const auto wanted = wanted_.find(node.get());
      if (wanted != wanted_.end()) {
        wanted->second = g;
        if (leads_to_wanted(*node)) run(*node, std::move(g), ready);
      } else if (!node->is_leaf()) {
        run(*node, std::move(g), ready);
      } else if (g) {
        detail::accumulate_in_leaf(*node, std::move(g));
      }
    }
  }

  // A node is run when all its consumers have, even if none of them sent a gradient: then it passes on nothing.
  void run(Node& node, Tensor g, Ready& ready) {
    check_not_written(node);
    const LayerScope layer(node.layer);
    std::vector<Node::Input> inputs;
    if (keep_) inputs = node.inputs;
    Grads grads(node.inputs.size());
    if (g) {
      check(!create_graph_ || node.differentiable, node.op,
            "has no second derivative: its derivative cannot be recorded (create_graph); in an op of your own, mark a "
            "closure that computes with ops by differentiable()");
      const ScopedValue<Walk*> walk(current, this);
      const ScopedValue<std::vector<Node::Input>*> running(running_, keep_ ? &inputs : &node.inputs);
      grads = node.backward(g);
    }
    g = Tensor();
    check(grads.size() == node.inputs.size(), node.op, [&] {
      return str("its derivative returned ", grads.size(), " gradients for ", node.inputs.size(),
                 " inputs; return one for each, an empty Tensor where there is none");
    });
    if (!keep_) {
      node.used = true;
      node.backward = nullptr;  // frees what the closure saved
      node.recomputed = nullptr;
      inputs = std::exchange(node.inputs, {});
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].node) continue;
      if (grads[i]) {
        inputs[i].check_gradient(node.op, i, grads[i]);
        if (watching()) watch(node.op, str("derivative for input ", i), grads[i]);
        // A closure may record for a use of its own (EnableGrad); its gradients are values all the same.
        if (!create_graph_ && requires_grad(grads[i])) grads[i] = grads[i].detach();
      }
      send(std::move(inputs[i].node), std::move(grads[i]), ready);
    }
  }

  bool keep_ = false, create_graph_ = false;
  std::unordered_map<Node*, Tensor> wanted_;     // and their gradients
  std::unordered_set<Node*> skipped_;            // of the graph behind y
  std::unordered_map<Node*, int> consumers_;     // that have not run yet
  std::unordered_map<Node*, Tensor> arrived_;    // sums of gradients
  std::unordered_map<Node*, Grads> of_results_;  // of an op, whose node has not run yet
  std::vector<Node::Input>* running_ = nullptr;  // the inputs of the node whose closure is executed
};

constinit thread_local Walk* Walk::current = nullptr;

// dy, or its default; checked against y.
Tensor start(const char* op, const Tensor& y, Tensor dy) {
  check(requires_grad(y), op,
        "the tensor has no history: nothing it depends on requires a gradient; call require_grad() on a leaf before "
        "the forward pass, which must not run under NoGrad (a gradient has one if grad() got create_graph)");
  if (!dy) {
    check(y.numel() == 1, op, [&] {
      return str("needs a gradient for a result of shape ", y.shape(),
                 ": pass dy of that shape, or reduce it by sum()");
    });
    dy = full(y.shape(), 1.0, y.dtype(), y.device());
  }
  check(dy.shape() == y.shape() && dy.dtype() == y.dtype(), op, [&] {
    return str("the gradient is ", dy.dtype(), " ", dy.shape(), ", the result ", y.dtype(), " ", y.shape(),
               "; both must agree");
  });
  return dy;
}
}  // namespace

void backward(const Tensor& y, Tensor dy, BackwardOptions options) {
  dy = start("backward", y, std::move(dy));
  Walk(options).from(y, std::move(dy), {});
}

std::vector<Tensor> grad(const Tensor& y, const std::vector<Tensor>& xs, GradOptions options) {
  Tensor dy = start("grad", y, std::move(options.dy));
  for (size_t i = 0; i < xs.size(); ++i)
    check(requires_grad(xs[i]), "grad", [&] {
      return str("xs[", i, "] does not require a gradient; call require_grad() on it before the forward pass");
    });
  std::vector<Tensor> grads;
  {
    Walk walk(y, xs, options);
    walk.from(y, std::move(dy), {});
    for (const Tensor& x : xs) grads.push_back(walk.gradient(x));
  }
  for (size_t i = 0; i < xs.size(); ++i) {
    check(grads[i] || options.allow_unused, "grad",
          [&] { return str("y does not depend on xs[", i, "]; pass allow_unused = true for an empty result there"); });
    if (grads[i] && !options.create_graph) grads[i] = detail::own(std::move(grads[i]));
  }
  return grads;
}

bool detail::in_closure() { return Walk::current != nullptr; }
bool detail::history_is_kept() { return Walk::current && Walk::current->keeps(); }
Grads& detail::arrived_at(Node* op) { return Walk::current->of_results(op); }

void detail::backward_in_segment(const Tensor& y, const Tensor& dy, const std::vector<Tensor>& captured) {
  Walk::current->from(y, dy, captured);
}

}  // namespace braid
