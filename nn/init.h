// The initialisation of a parameter. make() takes a key, so the values depend only on the seed and on the parameter's
// name, not on the order of construction.
#pragma once
#include <string>

#include "braid/tensor/random.h"
#include "braid/tensor/scoped_value.h"
#include "braid/tensor/tensor.h"

namespace braid::nn {

// A weight has the shape (out, in, k...): fan-in is in k..., fan-out is out k....
struct Init {
  enum class Kind : uint8_t {
    none,
    constant,
    normal,
    xavier_uniform,
    xavier_normal,
    kaiming_uniform,
    kaiming_normal,
    truncated_normal,
    orthogonal,
    identity
  };
  Kind kind = Kind::xavier_uniform;
  double value = 1;      // the constant, the standard deviation, or a gain
  bool fan_out = false;  // of kaiming: fan-out instead of fan-in, which keeps the variance of gradients

  static constexpr double kReluGain = 1.41421356237309505, kLinearGain = 0.57735026918962576;

  // Contents undefined: for large parameters that are about to be loaded. Those that start at a constant, biases and
  // the weights of norms, are filled anyway.
  static Init none() { return {Kind::none, 0}; }
  static Init constant(double c) { return {Kind::constant, c}; }
  static Init zeros() { return constant(0); }
  static Init ones() { return constant(1); }
  static Init normal(double deviation) { return {Kind::normal, deviation}; }
  // Normal, without values beyond 2 deviations: they are drawn as if by drawing again.
  static Init truncated_normal(double deviation) { return {Kind::truncated_normal, deviation}; }
  // Uniform in +-gain sqrt(6 / (fan-in + fan-out)); normal with deviation gain sqrt(2 / (fan-in + fan-out)).
  static Init xavier_uniform(double gain = 1) { return {Kind::xavier_uniform, gain}; }
  static Init xavier_normal(double gain = 1) { return {Kind::xavier_normal, gain}; }
  // Uniform in +-gain sqrt(3 / fan); normal with deviation gain / sqrt(fan). kReluGain is for ReLU. kLinearGain gives
  // +-1 / sqrt(fan), with which PyTorch starts its layers.
  static Init kaiming_uniform(double gain = kReluGain, bool fan_out = false) {
    return {Kind::kaiming_uniform, gain, fan_out};
  }
  static Init kaiming_normal(double gain = kReluGain, bool fan_out = false) {
    return {Kind::kaiming_normal, gain, fan_out};
  }
  // gain times a matrix (out, in k...) with orthonormal rows, or columns where it has more rows, uniformly distributed.
  static Init orthogonal(double gain = 1) { return {Kind::orthogonal, gain}; }
  static Init identity() { return {Kind::identity, 1}; }  // of a matrix; not square: 1 on the diagonal, else 0
  // By the names above, "kaiming_normal", with their default gain; deviations are 0.02. Error(setting) lists the names.
  static Init named(const std::string& name);

  Tensor make(const Shape& shape, RandomKey key, DType dtype = DType::f32) const;
};

namespace detail {
extern constinit thread_local bool shape_only;
}

// Modules made by this thread while it lives have parameters on kMeta: names, shapes and types without memory.
class ShapeOnlyScope {
 public:
  static bool active() { return detail::shape_only; }  // on this thread: tables of constants need not be computed

 private:
  ScopedValue<bool> on_{detail::shape_only, true};
};

}  // namespace braid::nn
