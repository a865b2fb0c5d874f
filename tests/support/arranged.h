// Rows of ops that rearrange: references take each element of the result from its place in the input.
#pragma once
#include <optional>

#include "tests/support/op_table.h"

namespace braid::test {

using Source = std::function<std::optional<Shape>(Shape at)>;

inline double element(const Array& x, const Shape& at) {
  int64_t i = 0;
  for (int a = 0; a < at.rank(); ++a) i = i * x.shape[a] + at[a];
  return x.values[static_cast<size_t>(i)];
}

// y[at] = x[source(at)], or 0 where there is no source.
inline Array arranged(const Array& x, const Shape& shape, const Source& source) {
  Array y{shape, {}};
  const Strides steps = contiguous_strides(shape);
  for (int64_t i = 0; i < numel(shape); ++i) {
    Shape at;
    for (int a = 0; a < shape.rank(); ++a) at.push_back(i / steps[a] % shape[a]);
    const std::optional<Shape> from = source(at);
    y.values.push_back(from ? element(x, *from) : 0);
  }
  return y;
}

inline Shape resized(Shape shape, int axis, int64_t size) {
  shape[axis] = size;
  return shape;
}

// The same shape, or another one, of the first input.
inline OpRow arrange_row(const std::string& name, std::function<Tensor(const Tensor&)> op,
                         std::function<Shape(const Shape&)> shape,
                         std::function<std::optional<Shape>(Shape, const Shape&)> from, std::vector<Shape> cases) {
  std::vector<std::vector<Shape>> inputs;
  for (const Shape& s : cases) inputs.push_back({s});
  return {.name = name,
          .op = [op](const auto& in) { return op(in[0]); },
          .reference =
              [=](const auto& in) {
                const Shape& of = in[0].shape;
                return arranged(in[0], shape(of), [&](Shape at) { return from(at, of); });
              },
          .cases = std::move(inputs),
          .gradient_tolerance = 1e-9};
}

inline Shape same_shape(const Shape& shape) { return shape; }

}  // namespace braid::test
