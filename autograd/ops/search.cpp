// Searching sorted elements, counting equal ones.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "braid/autograd/detail/axes.h"
#include "braid/autograd/detail/check.h"
#include "braid/autograd/order.h"
#include "braid/autograd/reductions.h"
#include "braid/tensor/kernels/backend.h"

namespace braid {

namespace {

void check_ascending(const char* op, const Tensor& edges) {
  const int64_t n = edges.dim(-1);
  if (n < 2 || edges.numel() == 0) return;
  // NaN is above every number: a pair is out of order where it is not <=, unless the second is NaN.
  const Tensor first = edges.sliced(-1, 0, n - 1), second = edges.sliced(-1, 1, n);
  Tensor fine = le(first, second);
  if (is_float(edges.dtype())) {
    const Tensor missing = ne(second, second);
    fine = where(missing, missing, fine);
  }
  check(all(fine).item() == 1, op,
        [&] { return str("needs edges that ascend, got ", edges.shape(), " that do not; sort() them first"); });
}

Tensor positions(const char* op, const Tensor& edges, const Tensor& values, bool right) {
  check_same(op, edges, values);
  check(edges.rank() >= 1, op, [&] { return str("needs at least one axis of edges, got ", edges.shape()); });
  bool rows = edges.rank() == values.rank();
  for (int a = 0; rows && a < edges.rank() - 1; ++a) rows = edges.dim(a) == values.dim(a);
  check(edges.rank() == 1 || rows, op, [&] {
    return str("needs edges (n), or a row of edges for each row of values, got edges ", edges.shape(), " and values ",
               values.shape());
  });
  const Tensor sorted = edges.detach().contiguous();
  check_ascending(op, sorted);
  Tensor index = empty(values.shape(), DType::i64, values.device());
  backend(values.device()).order.search(sorted, values.detach().contiguous(), right, index);
  return index;
}

// ids as a list, and the number of bins that they need.
struct Ids {
  Tensor list;
  int64_t bins;
};
Ids flat_ids(const Tensor& ids, int64_t min_length) {
  check(!is_float(ids.dtype()), "bincount", [&] { return str("needs ids of i64, i32 or u8, got ", ids.dtype()); });
  check(min_length >= 0, "bincount", [&] { return str("needs a length of at least 0, got ", min_length); });
  const Tensor list = ids.contiguous().reshaped({ids.numel()});
  if (ids.numel() == 0) return {list, min_length};
  const auto least = static_cast<int64_t>(min(list).item());
  check(least >= 0, "bincount", [&] { return str("needs ids of at least 0, got ", least, "; subtract the smallest"); });
  return {list, std::max(min_length, static_cast<int64_t>(max(list).item()) + 1)};
}

// Kernels with ids take i64 and i32.
Tensor as_index(const Tensor& ids) { return is_index(ids.dtype()) ? ids : ids.to(DType::i32); }

// y[v] = sum of the weights w_i with ids_i = v   dw_i = dy[ids_i]
Tensor sums_of_equal(const Ids& ids, const Tensor& weights) {
  Tensor y = zeros({ids.bins}, weights.dtype(), weights.device());
  backend(weights.device()).index.add(weights.detach().contiguous(), ids.list, y);
  return record("bincount", y, {weights, ids.list}, differentiable([list = ids.list](const Tensor& dy) -> Grads {
                  return {index_select(dy, list), {}};
                }));
}

// How often 0 to bins - 1 occur in the ids of a list of n elements, f64, which is exact. ids(begin, end) are those of
// a part of the list, so that no more than a part of them, with its ones, is in memory.
template <class F>
Tensor counted(int64_t n, int64_t bins, Device device, F&& ids) {
  constexpr int64_t kPart = int64_t{1} << 22;
  const Tensor one = full({std::min(n, kPart)}, 1, DType::f64, device);
  Tensor counts = zeros({bins}, DType::f64, device);
  for (int64_t begin = 0; begin < n; begin += kPart) {
    const int64_t end = std::min(n, begin + kPart);
    backend(device).index.add(one.sliced(0, 0, end - begin), ids(begin, end), counts);
  }
  return counts;
}

Histogram counted_between(const Tensor& x, const Tensor& edges) {
  const int64_t bins = edges.dim(0) - 1;
  check_ascending("histogram", edges);
  const Tensor list = x.contiguous().reshaped({x.numel()}), last = edges.sliced(0, bins, bins + 1);
  Tensor at_end = zeros({}, DType::i64, x.device());
  const auto ids = [&](int64_t begin, int64_t end) {
    const Tensor values = list.sliced(0, begin, end).to(edges.dtype());
    Tensor found = empty(values.shape(), DType::i64, x.device());
    backend(x.device()).order.search(edges, values, true, found);
    at_end = add(at_end, sum(eq(values, last)));
    return found;
  };
  // Bin 0 and the last one are outside. The upper edge itself counts as outside there, and belongs to the last bin.
  Tensor counts = counted(x.numel(), bins + 2, x.device(), ids).sliced(0, 1, bins + 1).clone();
  counts.sliced(0, bins - 1, bins).add_(at_end.to(DType::f64).reshaped({1}));
  return {counts.to(DType::i64), edges};
}

template <class T>
UniqueValues unique_of(const Tensor& x) {
  const int64_t n = x.numel();
  const ValuesAndIndices order = sort(x.contiguous().reshaped({n}));
  const T* sorted = order.values.data<T>();
  const int64_t* index = order.indices.data<int64_t>();
  std::vector<T> values;
  std::vector<int64_t> counts;
  Tensor inverse = empty(x.shape(), DType::i64);
  int64_t* to = inverse.mutable_data<int64_t>();
  for (int64_t i = 0; i < n; ++i) {
    if (i == 0 || !(sorted[i] == sorted[i - 1])) {
      values.push_back(sorted[i]);
      counts.push_back(0);
    }
    ++counts.back();
    to[index[i]] = std::ssize(values) - 1;
  }
  const int64_t found = std::ssize(values);
  Tensor list = empty({found}, x.dtype());
  if (found > 0) std::memcpy(list.mutable_raw(), values.data(), values.size() * sizeof(T));
  return {list, inverse, from_vector(counts, {found})};
}

}  // namespace

Tensor searchsorted(const Tensor& edges, const Tensor& values, bool right) {
  const CalledOp called("searchsorted");
  return positions("searchsorted", edges, values, right);
}

Tensor bucketize(const Tensor& x, const Tensor& edges, bool right) {
  const CalledOp called("bucketize");
  check(edges.rank() == 1, "bucketize", [&] { return str("needs edges (n), got ", edges.shape()); });
  return positions("bucketize", edges, x, right);
}

// A value is present where the positions before and behind its equals differ.
Tensor isin(const Tensor& x, const Tensor& values) {
  const CalledOp called("isin");
  check_same("isin", x, values);
  const Tensor list = values.detach(), edges = sort(list.contiguous().reshaped({list.numel()})).values;
  const Tensor at = x.detach();
  const Tensor found = ne(positions("isin", edges, at, false), positions("isin", edges, at, true));
  return where(ne(at, at), zeros_like(found), found);
}

UniqueValues unique(const Tensor& x) {
  const CalledOp called("unique");
  no_gradient("unique", x);
  const Tensor host = x.to(kCpu);
  UniqueValues y;
  visit_any(x.dtype(), [&]<class T>() { y = unique_of<T>(host); });
  return {y.values.to(x.device()), y.inverse.to(x.device()), y.counts.to(x.device())};
}

Tensor bincount(const Tensor& ids, int64_t min_length) {
  const CalledOp called("bincount");
  const Ids flat = flat_ids(ids, min_length);
  const auto ids_of = [&](int64_t begin, int64_t end) { return as_index(flat.list.sliced(0, begin, end)); };
  return counted(ids.numel(), flat.bins, ids.device(), ids_of).to(DType::i64);
}

Tensor bincount(const Tensor& ids, const Tensor& weights, int64_t min_length) {
  const CalledOp called("bincount");
  check_float("bincount", weights);
  check(ids.shape() == weights.shape(), "bincount",
        [&] { return str("needs one weight per id, got ", weights.shape(), " for ids ", ids.shape()); });
  check(ids.device() == weights.device(), "bincount",
        [&] { return str("the weights are on ", weights.device(), ", the ids on ", ids.device()); });
  const Ids flat = flat_ids(ids, min_length);
  return sums_of_equal({as_index(flat.list), flat.bins}, reshape(weights, {weights.numel()}));
}

Histogram histogram(const Tensor& x, int64_t bins, double low, double high) {
  const CalledOp called("histogram");
  check_float("histogram", x);
  check(bins >= 1, "histogram", [&] { return str("needs at least one bin, got ", bins); });
  check(std::isfinite(low) && std::isfinite(high) && low < high, "histogram",
        [&] { return "needs low < high, both finite, got " + std::to_string(low) + " and " + std::to_string(high); });
  std::vector<double> edges;
  for (int64_t i = 0; i < bins; ++i)
    edges.push_back(low + (high - low) * (static_cast<double>(i) / static_cast<double>(bins)));
  edges.push_back(high);
  const DType type = accumulate_type(x.dtype());
  return counted_between(x.detach(), from_vector(edges, {bins + 1}).to(type).to(x.device()));
}

Histogram histogram(const Tensor& x, const Tensor& edges) {
  const CalledOp called("histogram");
  check_float("histogram", x);
  check_same("histogram", x, edges);
  check(edges.rank() == 1 && edges.dim(0) >= 2, "histogram",
        [&] { return str("needs edges (bins + 1), at least two, got ", edges.shape()); });
  return counted_between(x.detach(), edges.detach().to(accumulate_type(x.dtype())).contiguous());
}

}  // namespace braid
