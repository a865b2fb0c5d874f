// Rows of autograd/manipulate.h: diagonals, axes, parts.
#include <algorithm>

#include "braid/autograd/manipulate.h"
#include "tests/support/arranged.h"

namespace braid::test {

namespace {

// Where an element of the matrices at[..., i, j] stands from the main diagonal.
int64_t column_minus_row(const Shape& at) { return at[-1] - at[-2]; }

std::vector<OpRow> diagonal_rows() {
  const std::vector<Shape> matrices{{3, 3}, {2, 4}, {5, 2}, {2, 3, 4}, {0, 3}, {3, 0}};
  const auto up_to_rank = [](const Shape& of, int rank) {
    Shape shape;
    for (int a = 0; a < rank; ++a) shape.push_back(of[a]);
    return shape;
  };
  return {
      arrange_row(
          "tril", [](const Tensor& x) { return tril(x); }, same_shape,
          [](Shape at, const Shape&) { return column_minus_row(at) <= 0 ? std::optional(at) : std::nullopt; },
          matrices),
      arrange_row(
          "triu:1", [](const Tensor& x) { return triu(x, 1); }, same_shape,
          [](Shape at, const Shape&) { return column_minus_row(at) >= 1 ? std::optional(at) : std::nullopt; },
          matrices),
      arrange_row(
          "triu:-1", [](const Tensor& x) { return triu(x, -1); }, same_shape,
          [](Shape at, const Shape&) { return column_minus_row(at) >= -1 ? std::optional(at) : std::nullopt; },
          matrices),
      arrange_row(
          "diagonal", [](const Tensor& x) { return diagonal(x, 1); },
          [=](const Shape& of) {
            Shape shape = up_to_rank(of, of.rank() - 1);
            shape[-1] = std::max(int64_t{0}, std::min(of[-2], of[-1] - 1));
            return shape;
          },
          [](Shape at, const Shape&) {
            at.push_back(at[-1] + 1);
            return at;
          },
          {{3, 3}, {2, 4}, {5, 2}, {2, 3, 4}, {0, 3}, {3, 1}}),
      arrange_row(
          "diagonal:axes", [](const Tensor& x) { return diagonal(x, -1, 0, 2); },
          [](const Shape& of) {
            return Shape{of[1], std::min(of[0] - 1, of[2])};
          },
          [](Shape at, const Shape&) {
            return Shape{at[1] + 1, at[0], at[1]};
          },
          {{3, 2, 3}, {4, 1, 2}, {2, 3, 5}}),
      arrange_row(
          "diag_embed", [](const Tensor& x) { return diag_embed(x, -2); },
          [](const Shape& of) {
            Shape shape = resized(of, -1, of[-1] + 2);
            shape.push_back(shape[-1]);
            return shape;
          },
          [=](Shape at, const Shape& of) {
            const bool on = column_minus_row(at) == -2;
            Shape from = up_to_rank(at, of.rank());
            from[-1] = at[-1];
            return on ? std::optional(from) : std::nullopt;
          },
          {{3}, {2, 4}, {0}, {2, 1, 3, 2}}),
      arrange_row(
          "diag", [](const Tensor& x) { return diag(x); },
          [](const Shape& of) {
            return Shape{of[0], of[0]};
          },
          [](Shape at, const Shape&) { return at[0] == at[1] ? std::optional(Shape{at[0]}) : std::nullopt; },
          {{3}, {1}}),
      {.name = "trace",
       .op = [](const auto& in) { return trace(in[0]); },
       .reference =
           [=](const auto& in) {
             const Array& x = in[0];
             Array y{up_to_rank(x.shape, x.shape.rank() - 2), {}};
             const int64_t rows = x.shape[-2], columns = x.shape[-1];
             for (int64_t m = 0; m < numel(y.shape); ++m) {
               double sum = 0;
               for (int64_t i = 0; i < std::min(rows, columns); ++i)
                 sum += x.values[static_cast<size_t>((m * rows + i) * columns + i)];
               y.values.push_back(sum);
             }
             return y;
           },
       .cases = {{{3, 3}}, {{2, 4}}, {{2, 3, 2}}, {{0, 0}}}},
      {.name = "block_diag",
       .op =
           [](const auto& in) {
             return block_diag({in[0], in[1]});
           },
       .reference =
           [](const auto& in) {
             const Shape &a = in[0].shape, &b = in[1].shape;
             const Array joined{{a[0] + b[0], a[1] + b[1]}, {}};
             Array y = arranged(in[0], joined.shape, [&](Shape at) {
               return at[0] < a[0] && at[1] < a[1] ? std::optional(at) : std::nullopt;
             });
             const Array other = arranged(in[1], joined.shape, [&](Shape at) -> std::optional<Shape> {
               if (at[0] < a[0] || at[1] < a[1]) return std::nullopt;
               return Shape{at[0] - a[0], at[1] - a[1]};
             });
             return zip(y, other, [](double p, double q) { return p + q; });
           },
       .cases = {{{2, 3}, {3, 1}}, {{1, 1}, {2, 2}}, {{0, 2}, {1, 0}}}},
      {.name = "kron",
       .op = [](const auto& in) { return kron(in[0], in[1]); },
       .reference =
           [](const auto& in) {
             const Shape &a = in[0].shape, &b = in[1].shape;
             const Shape shape{a[0] * b[0], a[1] * b[1]};
             const Array x = arranged(in[0], shape, [&](const Shape& at) { return Shape{at[0] / b[0], at[1] / b[1]}; });
             const Array y = arranged(in[1], shape, [&](const Shape& at) { return Shape{at[0] % b[0], at[1] % b[1]}; });
             return zip(x, y, [](double p, double q) { return p * q; });
           },
       .cases = {{{2, 3}, {3, 2}}, {{1, 1}, {2, 2}}, {{0, 2}, {1, 2}}}},
  };
}

// Ops that name or part axes: each against the reshape, permutation or slice that it is.
std::vector<OpRow> axis_rows() {
  const auto renamed = [](const std::string& name, std::function<Tensor(const Tensor&)> op,
                          std::function<Shape(const Shape&)> shape, std::vector<Shape> cases) {
    std::vector<std::vector<Shape>> inputs;
    for (const Shape& s : cases) inputs.push_back({s});
    return OpRow{.name = name,
                 .op = [op](const auto& in) { return op(in[0]); },
                 .reference =
                     [shape](const auto& in) {
                       return Array{shape(in[0].shape), in[0].values};
                     },
                 .cases = inputs,
                 .gradient_tolerance = 1e-9};
  };
  return {
      renamed(
          "flatten", [](const Tensor& x) { return flatten(x, 1); },
          [](const Shape& of) {
            return Shape{of[0], numel(of) / std::max(of[0], int64_t{1})};
          },
          {{2, 3, 4}, {2, 1}, {5, 2, 2, 2}}),
      renamed(
          "flatten:inner", [](const Tensor& x) { return flatten(x, 0, -2); },
          [](const Shape& of) {
            return Shape{of[0] * of[1], of[2]};
          },
          {{2, 3, 4}, {0, 2, 3}}),
      renamed(
          "unflatten",
          [](const Tensor& x) {
            return unflatten(x, -1, {2, -1});
          },
          [](const Shape& of) {
            return Shape{of[0], 2, of[1] / 2};
          },
          {{3, 4}, {1, 6}, {0, 2}}),
      renamed("ravel", ravel, [](const Shape& of) { return Shape{numel(of)}; }, {{}, {3}, {2, 3}, {0, 3}}),
      renamed(
          "squeeze:all", [](const Tensor& x) { return squeeze(x); },
          [](const Shape& of) {
            Shape left;
            for (const int64_t n : of)
              if (n != 1) left.push_back(n);
            return left;
          },
          {{1, 3, 1, 2}, {1, 1}, {2, 3}, {1, 0}}),
      renamed("atleast_3d", atleast_3d,
              [](const Shape& of) {
                return of.rank() == 1 ? Shape{1, of[0], 1} : Shape{1, 1, 1};
              },
              {{3}, {}}),
      renamed("atleast_2d", atleast_2d,
              [](const Shape& of) {
                return Shape{1, of[0]};
              },
              {{3}, {0}}),
      arrange_row(
          "moveaxis", [](const Tensor& x) { return moveaxis(x, 0, -1); },
          [](const Shape& of) {
            return Shape{of[1], of[2], of[0]};
          },
          [](Shape at, const Shape&) {
            return Shape{at[2], at[0], at[1]};
          },
          {{2, 3, 4}, {2, 0, 3}}),
      arrange_row(
          "swapaxes", [](const Tensor& x) { return swapaxes(x, 0, -1); },
          [](const Shape& of) {
            return Shape{of[2], of[1], of[0]};
          },
          [](Shape at, const Shape&) {
            return Shape{at[2], at[1], at[0]};
          },
          {{2, 3, 4}}),
      arrange_row(
          "t", t,
          [](const Shape& of) {
            return of.rank() < 2 ? of : Shape{of[1], of[0]};
          },
          [](Shape at, const Shape& of) {
            return of.rank() < 2 ? at : Shape{at[1], at[0]};
          },
          {{2, 3}, {4}}),
      arrange_row(
          "narrow", [](const Tensor& x) { return narrow(x, -1, -3, 2); },
          [](const Shape& of) { return resized(of, -1, 2); },
          [](Shape at, const Shape& of) {
            at[-1] += of[-1] - 3;
            return at;
          },
          {{4}, {2, 3}, {3, 2, 5}}),
      // The last part first; the first is not used.
      arrange_row(
          "chunk",
          [](const Tensor& x) {
            const std::vector<Tensor> parts = chunk(x, 3);
            return concat({parts[2], parts[1]}, 0);
          },
          [](const Shape& of) { return resized(of, 0, 4); },
          [](Shape at, const Shape&) {
            at[0] = at[0] == 0 ? 6 : at[0] + 2;
            return at;
          },
          {{7}, {7, 2}}),
      arrange_row(
          "tensor_split",
          [](const Tensor& x) {
            const std::vector<Tensor> parts = tensor_split(x, 3, -1);
            return concat({parts[2], parts[0]}, -1);
          },
          [](const Shape& of) { return resized(of, -1, 5); },
          [](Shape at, const Shape&) {
            at[-1] = at[-1] < 2 ? at[-1] + 5 : at[-1] - 2;
            return at;
          },
          {{7}, {2, 7}}),
      arrange_row(
          "split_at",
          [](const Tensor& x) {
            const std::vector<Tensor> parts = split_at(x, {2, 2, 3});
            return concat({parts[3], parts[1], parts[0]}, 0);
          },
          [](const Shape& of) { return resized(of, 0, of[0] - 1); },
          [](Shape at, const Shape& of) {
            at[0] = at[0] < of[0] - 3 ? at[0] + 3 : at[0] - of[0] + 3;
            return at;
          },
          {{5}, {4, 2}}),
      arrange_row(
          "unbind",
          [](const Tensor& x) {
            const std::vector<Tensor> parts = unbind(x, 1);
            return stack({parts[2], parts[0]});
          },
          [](const Shape& of) {
            return Shape{2, of[0]};
          },
          [](Shape at, const Shape&) {
            return Shape{at[1], at[0] == 0 ? 2 : 0};
          },
          {{4, 3}, {1, 5}}),
      arrange_row(
          "hstack",
          [](const Tensor& x) {
            return hstack({x, x});
          },
          [](const Shape& of) { return resized(of, of.rank() == 1 ? 0 : 1, 2 * of[of.rank() == 1 ? 0 : 1]); },
          [](Shape at, const Shape& of) {
            const int a = of.rank() == 1 ? 0 : 1;
            at[a] %= of[a];
            return at;
          },
          {{3}, {2, 3}}),
      arrange_row(
          "vstack",
          [](const Tensor& x) {
            return vstack({x, x});
          },
          [](const Shape& of) {
            return of.rank() == 1 ? Shape{2, of[0]} : resized(of, 0, 2 * of[0]);
          },
          [](Shape at, const Shape& of) {
            if (of.rank() == 1) return Shape{at[1]};
            at[0] %= of[0];
            return at;
          },
          {{3}, {2, 3}}),
      arrange_row(
          "dstack",
          [](const Tensor& x) {
            return dstack({x, x});
          },
          [](const Shape& of) {
            return Shape{of[0], of[1], 2};
          },
          [](Shape at, const Shape&) {
            return Shape{at[0], at[1]};
          },
          {{2, 3}}),
      {.name = "meshgrid",
       .op =
           [](const auto& in) {
             const std::vector<Tensor> grids = meshgrid({in[0], in[1]});
             return mul(grids[0], grids[1]);
           },
       .reference =
           [](const auto& in) {
             const Array column{{in[0].shape[0], 1}, in[0].values};
             return zip(column, in[1], [](double p, double q) { return p * q; });
           },
       .cases = {{{3}, {4}}, {{1}, {2}}, {{0}, {2}}}},
      {.name = "broadcast_tensors",
       .op =
           [](const auto& in) {
             const std::vector<Tensor> wide = broadcast_tensors({in[0], in[1]});
             return stack({wide[0], wide[1]});
           },
       .reference =
           [](const auto& in) {
             const Array x = zip(in[0], in[1], [](double p, double) { return p; });
             Array y = zip(in[0], in[1], [](double, double q) { return q; });
             Array both{{2}, x.values};
             for (const int64_t n : x.shape) both.shape.push_back(n);
             both.values.insert(both.values.end(), y.values.begin(), y.values.end());
             return both;
           },
       .cases = {{{3, 1}, {4}}, {{2}, {}}}},
  };
}

}  // namespace

std::vector<OpRow> axes_rows() {
  std::vector<OpRow> all;
  for (auto part : {diagonal_rows, axis_rows})
    for (OpRow& row : part()) all.push_back(std::move(row));
  return all;
}

}  // namespace braid::test
