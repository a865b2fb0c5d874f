// The node of the graph that record() builds. For autograd/*.cpp only.
#pragma once
#include "braid/autograd/hooks.h"
#include "braid/autograd/saved.h"
#include "braid/tensor/layer_scope.h"

namespace braid {

// How often a buffer had been written in place when an op was recorded. It keeps no data alive: where the buffer is
// gone by the time of the backward pass, the closure has not saved it either.
struct SavedVersion {
  std::weak_ptr<const Storage> storage;
  uint32_t version = 0;

  SavedVersion() = default;
  explicit SavedVersion(const Tensor& x) : storage(x.shared_storage()), version(x.storage().version()) {}
  bool holds() const {
    const std::shared_ptr<const Storage> now = storage.lock();
    return !now || now->version() == version;
  }
};

namespace detail {
using GradHooks = std::vector<std::shared_ptr<const GradHook>>;

// A result that consumers compute again in their derivatives instead of saving it (saved.h).
struct Recomputed {
  const char* op = "";
  std::function<Tensor()> compute;
  std::vector<SavedVersion> inputs;  // what compute reads
  SavedVersion result;
  int views = 0;  // between the result of an op and this one
  Tensor value;   // once computed, until nothing holds this any more
};
}  // namespace detail

struct Node {
  struct Input {
    std::shared_ptr<Node> node;  // null where the input collects no gradient
    Shape shape;
    SavedVersion saved;  // unset when the closure holds no tensor
    DType dtype = DType::f32;

    // To catch a derivative of the wrong shape or type at its source: g is for input i of the op. f32 and 16 bits stand
    // for each other.
    void check_gradient(const char* name, size_t i, const Tensor& g) const {
      check(g.shape() == shape, name, [&] {
        return str("its derivative has shape ", g.shape(), " for input ", i, " of shape ", shape,
                   "; sum_to() sums over what an op has repeated");
      });
      check(is_float(g.dtype()) && accumulate_type(g.dtype()) == accumulate_type(dtype), name,
            [&] { return str("its derivative is ", g.dtype(), " for input ", i, " of ", dtype, "; cast() it"); });
    }
  };

  const char* op = "leaf";
  const char* layer = detail::running_layer;
  bool used = false;
  bool differentiable = false;  // the closure, see record.h
  std::vector<Input> inputs;
  SavedVersion result;
  Backward backward;  // empty for leaves
  std::shared_ptr<detail::Recomputed> recomputed;
  Tensor gradient;                                 // leaves only
  std::shared_ptr<const detail::GradHooks> hooks;  // leaves only; replaced as a whole, so that a pass can call them

  Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node() {
    backward = nullptr;  // first, so that handles it captured do not keep the inputs' nodes alive below
    recomputed = nullptr;
    free_chain(std::move(inputs));
  }

  bool is_leaf() const { return !used && !backward; }

 private:
  // Frees inputs without recursion: the inputs of a node that nothing else holds are queued before it is freed.
  static void free_chain(std::vector<Input> queue) {
    while (!queue.empty()) {
      std::shared_ptr<Node> node = std::move(queue.back().node);
      queue.pop_back();
      if (node && node.use_count() == 1) {
        node->backward = nullptr;
        node->recomputed = nullptr;
        for (Input& input : node->inputs) queue.push_back(std::move(input));
        node->inputs.clear();
      }
    }
  }
};

}  // namespace braid
