// The initialisation of a parameter. make() takes a key, so the values depend only on the seed and on the parameter's
// name, not on the order of construction.
#pragma once
#include "braid/tensor/random.h"
#include "braid/tensor/scoped_value.h"
#include "braid/tensor/tensor.h"

namespace braid::nn {

struct Init {
  enum class Kind : uint8_t { none, constant, normal, xavier_uniform };
  Kind kind = Kind::xavier_uniform;
  double value = 0;  // the constant, or the standard deviation

  // Contents undefined: for large parameters that are about to be loaded. Those that start at a constant, biases and
  // the weights of norms, are filled anyway.
  static Init none() { return {Kind::none, 0}; }
  static Init constant(double c) { return {Kind::constant, c}; }
  static Init normal(double deviation) { return {Kind::normal, deviation}; }
  static Init xavier_uniform() { return {Kind::xavier_uniform, 0}; }  // +-sqrt(6 / (in + out)), for (out, in) matrices

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
