// Rows of autograd/manipulate.h: order, repetition, padding, windows.
#include <algorithm>

#include "braid/autograd/manipulate.h"
#include "braid/autograd/sample.h"
#include "tests/support/arranged.h"

namespace braid::test {

namespace {

std::vector<OpRow> order_of_entries_rows() {
  const std::vector<Shape> matrices{{3, 4}, {1, 5}, {2, 3, 2}, {0, 3}, {17, 5}};
  return {
      arrange_row(
          "flip", [](const Tensor& x) { return flip(x, 1); }, same_shape,
          [](Shape at, const Shape& of) {
            at[1] = of[1] - 1 - at[1];
            return at;
          },
          {{3, 4}, {1, 5}, {2, 3, 2}, {2, 0}, {0, 3}, {2, 1, 3, 1, 2, 2}}),
      arrange_row(
          "flip:axes",
          [](const Tensor& x) {
            return flip(x, {0, -1});
          },
          same_shape,
          [](Shape at, const Shape& of) {
            at[0] = of[0] - 1 - at[0];
            at[-1] = of[-1] - 1 - at[-1];
            return at;
          },
          matrices),
      arrange_row(
          "roll", [](const Tensor& x) { return roll(x, 2, -1); }, same_shape,
          [](Shape at, const Shape& of) {
            at[-1] = (at[-1] + 2 * of[-1] - 2) % of[-1];
            return at;
          },
          {{3, 4}, {5}, {2, 1}, {2, 2}, {2, 0}}),
      arrange_row(
          "roll:axes",
          [](const Tensor& x) {
            return roll(x, {-1, 4}, {0, 1});
          },
          same_shape,
          [](Shape at, const Shape& of) {
            at[0] = (at[0] + 1) % of[0];
            at[1] = (at[1] + 4 * of[1] - 4) % of[1];
            return at;
          },
          {{3, 4}, {1, 5}, {2, 3, 2}}),
      arrange_row(
          "rot90", [](const Tensor& x) { return rot90(x); },
          [](const Shape& of) {
            return Shape{of[1], of[0]};
          },
          [](Shape at, const Shape& of) {
            return Shape{at[1], of[1] - 1 - at[0]};
          },
          {{3, 4}, {1, 5}, {0, 3}}),
      arrange_row(
          "rot90:half", [](const Tensor& x) { return rot90(x, 2, 1, 2); }, same_shape,
          [](Shape at, const Shape& of) {
            return Shape{at[0], of[1] - 1 - at[1], of[2] - 1 - at[2]};
          },
          {{2, 3, 4}}),
      arrange_row(
          "rot90:back", [](const Tensor& x) { return rot90(x, -1); },
          [](const Shape& of) {
            return Shape{of[1], of[0]};
          },
          [](Shape at, const Shape& of) {
            return Shape{of[0] - 1 - at[1], at[0]};
          },
          {{3, 4}, {5, 1}}),
      arrange_row(
          "shuffle",
          [](const Tensor& x) {
            return shuffle(x, {1, 2}, 1);
          },
          same_shape,
          [](Shape at, const Shape& of) {
            at[1] = randperm(of[1], {1, 2}).to_vector<int64_t>()[static_cast<size_t>(at[1])];
            return at;
          },
          {{3, 4}, {2, 7, 2}}),
      arrange_row(
          "repeat", [](const Tensor& x) { return repeat(x, 3, 1); },
          [](const Shape& of) { return resized(of, 1, 3 * of[1]); },
          [](Shape at, const Shape&) {
            at[1] /= 3;
            return at;
          },
          {{3, 4}, {1, 1}, {2, 3, 2}, {2, 0}, {2, 1, 3, 1, 2, 2}}),
      arrange_row(
          "repeat:counts",
          [](const Tensor& x) {
            return repeat(x, {2, 0, 3}, -1);
          },
          [](const Shape& of) { return resized(of, -1, 5); },
          [](Shape at, const Shape&) {
            at[-1] = at[-1] < 2 ? 0 : 2;
            return at;
          },
          {{3}, {4, 3}, {0, 3}}),
      arrange_row(
          "tile",
          [](const Tensor& x) {
            return tile(x, {2, 3});
          },
          [](const Shape& of) {
            return of.rank() == 1 ? Shape{2, 3 * of[0]} : resized(resized(of, -2, 2 * of[-2]), -1, 3 * of[-1]);
          },
          [](Shape at, const Shape& of) {
            if (of.rank() == 1) return Shape{at[1] % of[0]};
            at[-2] %= of[-2];
            at[-1] %= of[-1];
            return at;
          },
          {{3}, {2, 4}, {3, 2, 2}, {0, 2}}),
      arrange_row(
          "broadcast_to",
          [](const Tensor& x) {
            return broadcast_to(x, {4, 3, 5});
          },
          [](const Shape&) {
            return Shape{4, 3, 5};
          },
          [](Shape at, const Shape& of) {
            return of.rank() == 1 ? Shape{at[2]} : Shape{at[1], 0};
          },
          {{5}, {3, 1}}),
  };
}

// Two before and three behind along the last axis.
OpRow padding_row(const std::string& name, Padding padding, std::function<int64_t(int64_t i, int64_t n)> index,
                  std::vector<Shape> cases) {
  return arrange_row(
      "pad:" + name,
      [padding](const Tensor& x) {
        return pad(x, {{-1, 2, 3}}, padding);
      },
      [](const Shape& of) { return resized(of, -1, of[-1] + 5); },
      [index](Shape at, const Shape& of) -> std::optional<Shape> {
        at[-1] = index(at[-1] - 2, of[-1]);
        if (at[-1] < 0) return std::nullopt;
        return at;
      },
      std::move(cases));
}

std::vector<OpRow> padding_rows() {
  return {
      padding_row("constant", Padding::constant, [](int64_t i, int64_t n) { return i < n ? i : -1; },
                  {{4}, {3, 2}, {2, 0}, {0, 2}, {2, 1, 3, 1, 2, 2}}),
      padding_row("replicate", Padding::replicate,
                  [](int64_t i, int64_t n) { return std::clamp(i, int64_t{0}, n - 1); }, {{4}, {3, 2}, {3, 1}, {0, 2}}),
      padding_row("circular", Padding::circular, [](int64_t i, int64_t n) { return (i + 4 * n) % n; },
                  {{4}, {3, 2}, {3, 1}}),
      padding_row("reflect", Padding::reflect,
                  [](int64_t i, int64_t n) {
                    while (n > 1 && (i < 0 || i >= n)) i = i < 0 ? -i : 2 * (n - 1) - i;
                    return n == 1 ? 0 : i;
                  },
                  {{4}, {3, 2}, {3, 1}, {2, 5}}),
      arrange_row(
          "pad:axes",
          [](const Tensor& x) {
            return pad(x, {{0, 1, 0}, {1, 0, 2}});
          },
          [](const Shape& of) {
            return Shape{of[0] + 1, of[1] + 2};
          },
          [](Shape at, const Shape& of) -> std::optional<Shape> {
            if (at[0] < 1 || at[1] >= of[1]) return std::nullopt;
            return Shape{at[0] - 1, at[1]};
          },
          {{2, 3}, {0, 2}}),
      arrange_row(
          "windows", [](const Tensor& x) { return windows(x, 1, 3, 2); },
          [](const Shape& of) {
            Shape shape = resized(of, 1, (of[1] - 3) / 2 + 1);
            shape.push_back(3);
            return shape;
          },
          [](Shape at, const Shape& of) {
            Shape from;
            for (int a = 0; a < of.rank(); ++a) from.push_back(at[a]);
            from[1] = 2 * at[1] + at[-1];
            return from;
          },
          {{2, 8}, {2, 3}, {2, 5, 3}, {0, 4}}),
      arrange_row(
          "windows:first", [](const Tensor& x) { return windows(x, 0, 2); },
          [](const Shape& of) {
            return Shape{of[0] - 1, of[1], 2};
          },
          [](Shape at, const Shape&) {
            return Shape{at[0] + at[2], at[1]};
          },
          {{5, 3}, {2, 1}}),
  };
}

}  // namespace

std::vector<OpRow> arrange_rows() {
  std::vector<OpRow> all;
  for (auto part : {order_of_entries_rows, padding_rows})
    for (OpRow& row : part()) all.push_back(std::move(row));
  return all;
}

}  // namespace braid::test
