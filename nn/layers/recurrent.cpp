#include "braid/nn/layers/recurrent.h"

#include <cmath>
#include <string>

namespace braid::nn {

// Every parameter starts uniform in +-1 / sqrt(H).
Recurrent::Recurrent(const char* op, int64_t gates, int64_t in, int64_t width, const RecurrentOptions& o, RandomKey key)
    : op_(op), in_(in), width_(width), options_(o) {
  check(in >= 1 && width >= 1 && o.layers >= 1, op, [&] {
    return str("needs at least one input, one unit and one layer, got ", in, ", ", width, " and ", o.layers);
  });
  const int64_t directions = o.bidirectional ? 2 : 1;
  const double limit = 1 / std::sqrt(static_cast<double>(width));
  for (int64_t i = 0; i < o.layers * directions; ++i) {
    const RandomKey own = child(key, i);
    const int64_t inputs = i < directions ? in : directions * width;
    const auto make = [&](const Shape& shape, const char* name) {
      if (ShapeOnlyScope::active()) return parameter(empty(shape, DType::f32, kMeta));
      return parameter(affine(rand(shape, child(own, name)), 2 * limit, -limit));
    };
    Weights w{make({gates * width, inputs}, "weight_ih"), make({gates * width, width}, "weight_hh"), {}, {}};
    if (o.bias) {
      w.input_bias = make({gates * width}, "bias_ih");
      w.hidden_bias = make({gates * width}, "bias_hh");
    }
    weights_.push_back(w);
  }
}

void Recurrent::visit(Visitor& v) const {
  const size_t directions = options_.bidirectional ? 2 : 1;
  for (size_t i = 0; i < weights_.size(); ++i) {
    const std::string of = "_l" + std::to_string(i / directions) + (i % directions == 1 ? "_reverse" : "");
    v("weight_ih" + of, weights_[i].input);
    v("weight_hh" + of, weights_[i].hidden);
    v("bias_ih" + of, weights_[i].input_bias);
    v("bias_hh" + of, weights_[i].hidden_bias);
  }
}

Tensor Recurrent::run(Tensor x, Mode mode, RandomKey key, const Direction& direction) const {
  check(x.rank() == 3 && x.dim(2) == in_ && x.dim(1) >= 1, op_,
        [&] { return str("needs a sequence (B, T, ", in_, ") of at least one step, got ", x.shape()); });
  const Dropout drop(options_.dropout);
  const int64_t directions = options_.bidirectional ? 2 : 1;
  for (int64_t layer = 0; layer < options_.layers; ++layer) {
    std::vector<Tensor> results;
    for (int64_t d = 0; d < directions; ++d) {
      const int64_t index = layer * directions + d;
      const Weights& w = weights_[static_cast<size_t>(index)];
      results.push_back(direction(linear(x, w.input, w.input_bias), w, index, d == 1));
    }
    x = directions == 1 ? results[0] : concat(results, 2);
    if (layer + 1 < options_.layers) x = drop(x, mode, child(key, layer));
  }
  return x;
}

Tensor Recurrent::start(const Tensor& given, const Tensor& x) const {
  check(x.rank() == 3, op_, [&] { return str("needs a sequence (B, T, ", in_, "), got ", x.shape()); });
  const Shape shape{states(), x.dim(0), width_};
  if (!given) return zeros(shape, x.dtype(), x.device());
  check(given.shape() == shape, op_,
        [&] { return str("the states must be (layers x directions, B, H) = ", shape, ", got ", given.shape()); });
  return given;
}

}  // namespace braid::nn
