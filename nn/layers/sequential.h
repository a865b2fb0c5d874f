// Layers applied one after the other.
#pragma once
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "braid/nn/layers/dropout.h"
#include "braid/nn/module.h"

namespace braid::nn {

// Sequential net(Linear(2, 32, options, key), gelu, Dropout(0.1), Linear(32, 1, options, key));
// y = net(x);   y = net(x, Mode::train, step_key);
//
// A layer is anything that maps a Tensor to a Tensor: a module, an op or a lambda; it may also take the mode, or the
// mode and a key: layer i gets child(key, i). Modules are visited under their positions "0", "1", ...; the others have
// no parameters.
class Sequential final : public Module {
 public:
  template <class Layer>
  static constexpr bool takes_key = std::is_invocable_r_v<Tensor, const Layer&, const Tensor&, Mode, RandomKey>;
  template <class Layer>
  static constexpr bool takes_mode = std::is_invocable_r_v<Tensor, const Layer&, const Tensor&, Mode>;
  template <class Layer>
  static constexpr bool is_layer =
      takes_key<Layer> || takes_mode<Layer> || std::is_invocable_r_v<Tensor, const Layer&, const Tensor&>;

  Sequential() = default;
  template <class... Layers>
  requires(is_layer<Layers>&&...) explicit Sequential(Layers... layers) { (append(std::move(layers)), ...); }

  template <class Layer>
  requires(is_layer<Layer>) void append(Layer layer) {
    layers_.push_back(std::make_unique<Holder<Layer>>(std::move(layer)));
  }

  Tensor operator()(const Tensor& x) const { return (*this)(x, Mode::eval, {}); }
  Tensor operator()(Tensor x, Mode mode, RandomKey key) const {
    for (size_t i = 0; i < layers_.size(); ++i) x = layers_[i]->forward(x, mode, key, i);
    return x;
  }

  void visit(Visitor& v) const override {
    for (size_t i = 0; i < layers_.size(); ++i) layers_[i]->visit(std::to_string(i), v);
  }

 private:
  struct AnyLayer {
    virtual ~AnyLayer() = default;
    virtual Tensor forward(const Tensor& x, Mode mode, RandomKey key, size_t position) const = 0;
    virtual void visit(const std::string& name, Visitor& v) const = 0;
  };
  template <class Layer>
  struct Holder final : AnyLayer {
    explicit Holder(Layer l) : layer(std::move(l)) {}
    Tensor forward(const Tensor& x, [[maybe_unused]] Mode mode, [[maybe_unused]] RandomKey key,
                   [[maybe_unused]] size_t position) const override {
      if constexpr (takes_key<Layer>)
        return layer(x, mode, child(key, position));
      else if constexpr (takes_mode<Layer>)
        return layer(x, mode);
      else
        return layer(x);
    }
    void visit(const std::string& name, Visitor& v) const override {
      if constexpr (std::is_base_of_v<Module, Layer>) v(name, layer);
    }
    Layer layer;
  };

  std::vector<std::unique_ptr<AnyLayer>> layers_;
};

}  // namespace braid::nn
