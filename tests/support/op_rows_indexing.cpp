// Rows of autograd/indexing.h: references pick and add by loops over the elements.
#include "braid/autograd/indexing.h"

#include "tests/support/op_table.h"

namespace braid::test {

namespace {

// y of `shape` with y[i] = x[from(i)], i and from(i) positions in the flat arrays.
Array picked(const Array& x, const Shape& shape, const std::function<int64_t(int64_t)>& from) {
  Array y{shape, {}};
  for (int64_t i = 0; i < numel(shape); ++i) y.values.push_back(x.values[static_cast<size_t>(from(i))]);
  return y;
}

// The id of element i of x (3, 4) along axis 1: 2 2 0 3, the next row one further.
int64_t id_of(int64_t i) {
  const int64_t first[] = {2, 2, 0, 3};
  return (first[i % 4] + i / 4) % 4;
}
Tensor ids_of_rows() {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < 12; ++i) ids.push_back(id_of(i));
  return from_vector(ids, {3, 4});
}

// x (3, 4) with values put or added at these ids; without `sum` the last one counts.
Array put(const std::vector<Array>& in, bool sum) {
  Array y = in[0];
  for (int64_t i = 0; i < 12; ++i) {
    double& target = y.values[static_cast<size_t>(i / 4 * 4 + id_of(i))];
    const double value = in[1].values[static_cast<size_t>(i)];
    target = sum ? target + value : value;
  }
  return y;
}

}  // namespace

std::vector<OpRow> indexing_rows() {
  const auto one = [](const char* name, std::function<Tensor(const Tensor&)> op, std::function<Array(const Array&)> f) {
    return OpRow{.name = name,
                 .op = [op](const auto& in) { return op(in[0]); },
                 .reference = [f](const auto& in) { return f(in[0]); },
                 .cases = {{{3, 4}}}};
  };
  std::vector<OpRow> table{
      one(
          "index",
          [](const Tensor& x) {
            return index(x, {-1, Slice{1, 3}});
          },
          [](const Array& x) { return picked(x, {2}, [](int64_t i) { return 8 + 1 + i; }); }),
      one(
          "index:steps",
          [](const Tensor& x) {
            return index(x, {Slice{.step = -2}, ellipsis, Slice{.begin = 1, .step = 2}});
          },
          [](const Array& x) {  // rows 2 and 0, columns 1 and 3
            return picked(x, {2, 2}, [](int64_t i) { return (i / 2 == 0 ? 2 : 0) * 4 + 1 + i % 2 * 2; });
          }),
      one(
          "index:ids",
          [](const Tensor& x) {
            return index(x, {from_vector(std::vector<int64_t>{2, 0, 2}, {3}), Slice{0, 2}});
          },
          [](const Array& x) {
            const int64_t rows[] = {2, 0, 2};
            return picked(x, {3, 2}, [&](int64_t i) { return rows[i / 2] * 4 + i % 2; });
          }),
      one(
          "take_along_axis", [](const Tensor& x) { return take_along_axis(x, ids_of_rows(), 1); },
          [](const Array& x) {
            return picked(x, {3, 4}, [](int64_t i) { return i / 4 * 4 + id_of(i); });
          }),
      one(
          "gather:axis", [](const Tensor& x) { return gather(x, ids_of_rows(), -1); },
          [](const Array& x) {
            return picked(x, {3, 4}, [](int64_t i) { return i / 4 * 4 + id_of(i); });
          }),
      one(
          "index_select:axis",
          [](const Tensor& x) {
            return index_select(x, from_vector(std::vector<int64_t>{3, 3, -4}, {3}), 1);
          },
          [](const Array& x) {
            const int64_t columns[] = {3, 3, 0};
            return picked(x, {3, 3}, [&](int64_t i) { return i / 3 * 4 + columns[i % 3]; });
          }),
      one(
          "take",
          [](const Tensor& x) {
            return take(x, from_vector(std::vector<int64_t>{5, 5, -1}, {3}));
          },
          [](const Array& x) {
            const int64_t at[] = {5, 5, 11};
            return picked(x, {3}, [&](int64_t i) { return at[i]; });
          }),
      one(
          "masked_select",
          [](const Tensor& x) {
            return masked_select(x, from_vector(std::vector<uint8_t>{0, 1, 0, 1}, {4}));
          },
          [](const Array& x) { return picked(x, {6}, [](int64_t i) { return i / 2 * 4 + 1 + i % 2 * 2; }); }),
  };
  const auto two = [](const char* name, std::function<Tensor(const std::vector<Tensor>&)> op, bool sum) {
    return OpRow{.name = name,
                 .op = op,
                 .reference = [sum](const auto& in) { return put(in, sum); },
                 .cases = {{{3, 4}, {3, 4}}},
                 .roundings = 3};
  };
  table.push_back(two(
      "scatter", [](const auto& in) { return scatter(in[0], ids_of_rows(), in[1], 1); }, false));
  table.push_back(two(
      "scatter_add", [](const auto& in) { return scatter_add(in[0], ids_of_rows(), in[1], 1); }, true));
  table.push_back({.name = "masked_scatter",
                   .op =
                       [](const auto& in) {
                         return masked_scatter(in[0], from_vector(std::vector<uint8_t>{0, 1, 0, 1}, {4}), in[1]);
                       },
                   .reference =
                       [](const auto& in) {  // columns 1 and 3 of each row, in order
                         Array y = in[0];
                         for (size_t i = 0; i < 6; ++i) y.values[i / 2 * 4 + 1 + i % 2 * 2] = in[1].values[i];
                         return y;
                       },
                   .cases = {{{3, 4}, {6}}}});
  const auto rows_and_ids = [] {  // the same positions as an index
    return std::vector<Index>{from_vector(std::vector<int64_t>{0, 1, 2}, {3, 1}), ids_of_rows()};
  };
  table.push_back(two(
      "index_put", [=](const auto& in) { return index_put(in[0], rows_and_ids(), in[1]); }, false));
  table.push_back(two(
      "index_add", [=](const auto& in) { return index_add(in[0], rows_and_ids(), in[1]); }, true));
  return table;
}

}  // namespace braid::test
