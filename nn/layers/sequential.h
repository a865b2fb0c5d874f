// Layers applied one after the other.
#pragma once
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "braid/nn/module.h"

namespace braid::nn {

// Sequential net(Linear(2, 32, options, key), gelu, Linear(32, 1, options, key));   y = net(x);
//
// A layer is anything that maps a Tensor to a Tensor: a module, an op or a lambda. Modules are visited under their
// positions "0", "1", ...; the others have no parameters.
class Sequential final : public Module {
 public:
  Sequential() = default;
  template <class... Layers>
  requires(std::is_invocable_r_v<Tensor, Layers, const Tensor&>&&...) explicit Sequential(Layers... layers) {
    (append(std::move(layers)), ...);
  }

  template <class Layer>
  void append(Layer layer) {
    layers_.push_back(std::make_unique<Holder<Layer>>(std::move(layer)));
  }

  Tensor operator()(Tensor x) const {
    for (const auto& layer : layers_) x = layer->forward(x);
    return x;
  }

  void visit(Visitor& v) const override {
    for (size_t i = 0; i < layers_.size(); ++i) layers_[i]->visit(std::to_string(i), v);
  }

 private:
  struct AnyLayer {
    virtual ~AnyLayer() = default;
    virtual Tensor forward(const Tensor& x) const = 0;
    virtual void visit(const std::string& name, Visitor& v) const = 0;
  };
  template <class Layer>
  struct Holder final : AnyLayer {
    explicit Holder(Layer l) : layer(std::move(l)) {}
    Tensor forward(const Tensor& x) const override { return layer(x); }
    void visit(const std::string& name, Visitor& v) const override {
      if constexpr (std::is_base_of_v<Module, Layer>) v(name, layer);
    }
    Layer layer;
  };

  std::vector<std::unique_ptr<AnyLayer>> layers_;
};

}  // namespace braid::nn
