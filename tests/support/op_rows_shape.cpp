#include "tests/support/op_table.h"

namespace braid::test {

namespace {

// y[at] = x[source(at)] for every place `at` of y.
Array gathered(const Array& x, const Shape& shape, const std::function<Shape(const Shape& at)>& source) {
  Array y{shape, {}};
  Strides sx = contiguous_strides(x.shape), sy = contiguous_strides(shape);
  for (int64_t i = 0; i < numel(shape); ++i) {
    Shape at;
    for (int a = 0; a < shape.rank(); ++a) at.push_back(i / sy[a] % shape[a]);
    Shape from = source(at);
    int64_t j = 0;
    for (int a = 0; a < from.rank(); ++a) j += from[a] * sx[a];
    y.values.push_back(x.values[static_cast<size_t>(j)]);
  }
  return y;
}

// The same values in row-major order under another shape.
Array renamed(const Array& x, const Shape& shape) { return {shape, x.values}; }

const std::vector<std::vector<Shape>> kMovedShapes{{{3, 5}}, {{2, 3, 4}},          {{1, 1}},
                                                   {{0, 4}}, {{2, 1, 3, 1, 2, 2}}, {{17, 33}}};

}  // namespace

std::vector<OpRow> shape_rows() {
  std::vector<OpRow> table{
      {.name = "reshape",
       .op =
           [](const auto& in) {
             return reshape(in[0], {2, -1});
           },
       .reference =
           [](const auto& in) {
             return renamed(in[0], {2, numel(in[0].shape) / 2});
           },
       .cases = {{{2, 3}}, {{4, 5}}, {{2, 1, 3, 1, 2, 2}}, {{6}}, {{0, 3}}}},
      {.name = "reshape:scalar",
       .op = [](const auto& in) { return reshape(in[0], {}); },
       .reference = [](const auto& in) { return renamed(in[0], {}); },
       .cases = {{{1, 1}}, {{}}}},
      {.name = "transpose",
       .op = [](const auto& in) { return transpose(in[0]); },
       .reference =
           [](const auto& in) {
             Shape shape = in[0].shape;
             std::swap(shape[-1], shape[-2]);
             return gathered(in[0], shape, [](Shape at) {
               std::swap(at[-1], at[-2]);
               return at;
             });
           },
       .cases = kMovedShapes},
      {.name = "transpose:axes",
       .op = [](const auto& in) { return transpose(in[0], 0, 2); },
       .reference =
           [](const auto& in) {
             Shape shape = in[0].shape;
             std::swap(shape[0], shape[2]);
             return gathered(in[0], shape, [](Shape at) {
               std::swap(at[0], at[2]);
               return at;
             });
           },
       .cases = {{{2, 3, 4}}, {{2, 1, 3, 1, 2, 2}}}},
      {.name = "permute",
       .op =
           [](const auto& in) {
             return permute(in[0], {2, 0, -2});
           },
       .reference =
           [](const auto& in) {
             const Shape& s = in[0].shape;
             return gathered(in[0], {s[2], s[0], s[1]}, [](const Shape& at) { return Shape{at[1], at[2], at[0]}; });
           },
       .cases = {{{2, 3, 4}}, {{1, 5, 1}}, {{33, 2, 17}}, {{2, 0, 3}}}},
      {.name = "expand",
       .op =
           [](const auto& in) {
             return expand(in[0], {4, 3, 5});
           },
       .reference =
           [](const auto& in) {
             return zip(in[0], {{4, 3, 5}, std::vector<double>(60)}, [](double x, double) { return x; });
           },
       .cases = {{{3, 5}}, {{1, 5}}, {{4, 1, 1}}, {{5}}, {{}}, {{4, 3, 5}}}},
      {.name = "squeeze",
       .op = [](const auto& in) { return squeeze(in[0], 1); },
       .reference =
           [](const auto& in) {
             Shape shape;
             for (int a = 0; a < in[0].shape.rank(); ++a) {
               if (a != 1) shape.push_back(in[0].shape[a]);
             }
             return renamed(in[0], shape);
           },
       .cases = {{{3, 1}}, {{3, 1, 5}}, {{1, 1}}, {{2, 1, 0}}}},
      {.name = "unsqueeze",
       .op = [](const auto& in) { return unsqueeze(in[0], -1); },
       .reference =
           [](const auto& in) {
             Shape shape = in[0].shape;
             shape.push_back(1);
             return renamed(in[0], shape);
           },
       .cases = {{{}}, {{3}}, {{2, 5}}, {{0}}}},
      {.name = "slice",
       .op = [](const auto& in) { return slice(in[0], -1, 1, 3); },
       .reference =
           [](const auto& in) {
             Shape shape = in[0].shape;
             shape[-1] = 2;
             return gathered(in[0], shape, [](Shape at) {
               at[-1] += 1;
               return at;
             });
           },
       .cases = {{{4}}, {{2, 3}}, {{3, 5}}, {{0, 3}}, {{2, 1, 3, 1, 2, 4}}}},
      {.name = "slice:rows",
       .op = [](const auto& in) { return slice(in[0], 0, 0, 2); },
       .reference =
           [](const auto& in) {
             Shape shape = in[0].shape;
             shape[0] = 2;
             return gathered(in[0], shape, [](const Shape& at) { return at; });
           },
       .cases = {{{2, 3}}, {{5, 4}}, {{3, 0}}}},
      {.name = "slice:nothing",
       .op = [](const auto& in) { return slice(in[0], 0, 2, 2); },
       .reference =
           [](const auto& in) {
             return Array{{0, in[0].shape[1]}, {}};
           },
       .cases = {{{3, 4}}}},
      {.name = "contiguous",
       .op = [](const auto& in) { return contiguous(transpose(in[0])); },
       .reference =
           [](const auto& in) {
             return gathered(in[0], {in[0].shape[1], in[0].shape[0]}, [](const Shape& at) {
               return Shape{at[1], at[0]};
             });
           },
       .cases = {{{3, 5}}, {{1, 4}}, {{33, 65}}, {{0, 4}}}},
      {.name = "concat",
       .op =
           [](const auto& in) {
             return concat({in[0], in[1], in[0]}, 1);
           },
       .reference =
           [](const auto& in) {
             const Array &x = in[0], &y = in[1];
             Array z{x.shape, {}};
             z.shape[1] = 2 * x.shape[1] + y.shape[1];
             size_t step = 1;
             for (int a = 2; a < x.shape.rank(); ++a) step *= static_cast<size_t>(x.shape[a]);
             size_t nx = static_cast<size_t>(x.shape[1]) * step, ny = static_cast<size_t>(y.shape[1]) * step;
             for (size_t r = 0; r < static_cast<size_t>(x.shape[0]); ++r) {
               for (const Array* part : {&x, &y, &x}) {
                 size_t n = part == &x ? nx : ny;
                 for (size_t i = 0; i < n; ++i) z.values.push_back(part->values[r * n + i]);
               }
             }
             return z;
           },
       .cases = {{{2, 3}, {2, 5}}, {{3, 2, 4}, {3, 1, 4}}, {{2, 0}, {2, 3}}, {{0, 2}, {0, 1}}}},
      {.name = "stack",
       .op =
           [](const auto& in) {
             return stack({in[0], in[1]});
           },
       .reference =
           [](const auto& in) {
             Array z{{2}, in[0].values};
             for (int a = 0; a < in[0].shape.rank(); ++a) z.shape.push_back(in[0].shape[a]);
             z.values.insert(z.values.end(), in[1].values.begin(), in[1].values.end());
             return z;
           },
       .cases = {{{2, 3}, {2, 3}}, {{}, {}}, {{0, 2}, {0, 2}}, {{2, 3, 4}, {2, 3, 4}}}},
      {.name = "stack:last",
       .op =
           [](const auto& in) {
             return stack({in[0], in[1]}, -1);
           },
       .reference =
           [](const auto& in) {
             Array z{in[0].shape, {}};
             z.shape.push_back(2);
             for (size_t i = 0; i < in[0].values.size(); ++i) {
               z.values.push_back(in[0].values[i]);
               z.values.push_back(in[1].values[i]);
             }
             return z;
           },
       .cases = {{{2, 3}, {2, 3}}, {{4}, {4}}}},
      // The middle part is not used: its gradient is absent and must count as 0.
      {.name = "split",
       .op =
           [](const auto& in) {
             std::vector<Tensor> parts = split(in[0], {1, 3, 2}, -1);
             return concat({parts[2], scale(parts[0], 2)}, -1);
           },
       .reference =
           [](const auto& in) {
             Shape shape = in[0].shape;
             shape[-1] = 3;
             Array y = gathered(in[0], shape, [](Shape at) {
               at[-1] = at[-1] < 2 ? 4 + at[-1] : 0;
               return at;
             });
             for (size_t i = 2; i < y.values.size(); i += 3) y.values[i] *= 2;
             return y;
           },
       .cases = {{{6}}, {{3, 6}}, {{2, 2, 6}}, {{0, 6}}}},
  };
  for (OpRow& row : table) row.gradient_tolerance = 1e-9;
  return table;
}

}  // namespace braid::test
