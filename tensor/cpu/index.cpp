// Reading and writing by ids. Ids are in range (the op checked them).
#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "braid/tensor/base/integers.h"
#include "braid/tensor/kernels/index.h"
#include "braid/tensor/parallel.h"

namespace braid::cpu {

namespace {

// y[i] = table[ids[i]], rows of any element type
void index_select(In table, In ids, Out y) {
  int64_t count = ids.numel(), bytes = count == 0 ? 0 : y.numel() / count * size_of(y.dtype());
  if (bytes == 0) return;
  const char* from = static_cast<const char*>(table.raw());
  char* to = static_cast<char*>(y.mutable_raw());
  visit_index(ids.dtype(), "index_select", [&]<class I>() {
    const I* id = ids.data<I>();
    parallel_for(count, grain_for(bytes / 4), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        std::memcpy(to + i * bytes, from + static_cast<int64_t>(id[i]) * bytes, static_cast<size_t>(bytes));
      }
    });
  });
}

// The positions in a list of ids, ordered by id and then by position. Run r is those of one id, id[r]: entries first[r]
// to first[r + 1] of the order.
struct Runs {
  std::vector<int64_t> order, id, first;
};

// Counts the ids of each row, or sorts where that would pass over far more rows than there are ids.
template <class I>
Runs runs_of(const I* id, int64_t count, int64_t rows) {
  Runs runs;
  runs.order.resize(static_cast<size_t>(count));
  constexpr int64_t kRowsPerId = 16;
  if (rows / kRowsPerId <= count) {
    std::vector<int64_t> next(static_cast<size_t>(rows), 0);
    for (int64_t i = 0; i < count; ++i) ++next[static_cast<size_t>(id[i])];
    int64_t before = 0;
    for (int64_t v = 0; v < rows; ++v) {
      const int64_t n = std::exchange(next[static_cast<size_t>(v)], before);
      if (n == 0) continue;
      runs.id.push_back(v);
      runs.first.push_back(before);
      before += n;
    }
    for (int64_t i = 0; i < count; ++i) runs.order[static_cast<size_t>(next[static_cast<size_t>(id[i])]++)] = i;
  } else {
    std::iota(runs.order.begin(), runs.order.end(), int64_t{0});
    std::sort(runs.order.begin(), runs.order.end(),
              [id](int64_t i, int64_t j) { return id[i] != id[j] ? id[i] < id[j] : i < j; });
    for (int64_t k = 0; k < count; ++k) {
      const auto v = static_cast<int64_t>(id[runs.order[static_cast<size_t>(k)]]);
      if (!runs.id.empty() && runs.id.back() == v) continue;
      runs.id.push_back(v);
      runs.first.push_back(k);
    }
  }
  runs.first.push_back(count);
  return runs;
}

// dtable[v] += sum over the i with ids[i] = v, in order, of dy[i]. Each piece of a row of the table has one writer, and
// 16-bit types are rounded once.
void index_add(In dy, In ids, Out dtable) {
  int64_t count = ids.numel(), rows = dtable.dim(0);
  if (count == 0 || dtable.numel() == 0) return;
  int64_t width = dtable.numel() / rows;
  Runs runs;
  visit_index(ids.dtype(), "index_add", [&]<class I>() { runs = runs_of(ids.data<I>(), count, rows); });
  constexpr int64_t kPiece = 256;
  const int64_t pieces = detail::ceil_div(width, kPiece), units = std::ssize(runs.id) * pieces;
  visit_float(dy.dtype(), "index_add", [&]<class T>() {
    using A = Accumulate<T>;
    const T* from = dy.data<T>();
    T* to = dtable.mutable_data<T>();
    parallel_for(units, grain_for(count * width / units + 4), [&](int64_t begin, int64_t end) {
      for (int64_t unit = begin; unit < end; ++unit) {
        const auto run = static_cast<size_t>(unit / pieces);
        int64_t column = unit % pieces * kPiece, n = std::min(kPiece, width - column);
        int64_t i = runs.first[run], last = runs.first[run + 1];
        A sum[kPiece];
        T* target = to + runs.id[run] * width + column;
        for (int64_t j = 0; j < n; ++j) sum[j] = A(target[j]);
        for (; i < last; ++i) {
          const T* source = from + runs.order[static_cast<size_t>(i)] * width + column;
          for (int64_t j = 0; j < n; ++j) sum[j] += A(source[j]);
        }
        for (int64_t j = 0; j < n; ++j) target[j] = T(sum[j]);
      }
    });
  });
}

// y[r] = x[r, ids[r]]
void gather(In x, In ids, Out y) {
  int64_t pitch = x.rank() == 2 ? x.strides()[0] : x.dim(-1);
  visit_any(x.dtype(), [&]<class T>() {
    visit_index(ids.dtype(), "gather", [&]<class I>() {
      const T* in = x.data<T>();
      const I* id = ids.data<I>();
      T* out = y.mutable_data<T>();
      parallel_for(ids.numel(), grain_for(8), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) out[r] = in[r * pitch + static_cast<int64_t>(id[r])];
      });
    });
  });
}

// dx[r, j] = dy[r] where j = ids[r], else 0
void scatter(In dy, In ids, Out dx) {
  int64_t n = dx.dim(-1);
  visit_any(dy.dtype(), [&]<class T>() {
    visit_index(ids.dtype(), "scatter", [&]<class I>() {
      const T* in = dy.data<T>();
      const I* id = ids.data<I>();
      T* out = dx.mutable_data<T>();
      parallel_for(ids.numel(), grain_for(n), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          std::fill_n(out + r * n, n, T(0));
          out[r * n + static_cast<int64_t>(id[r])] = in[r];
        }
      });
    });
  });
}

// y[positions[i]] = values[i], y as one axis
void put(In values, In positions, Out y) {
  visit_any(y.dtype(), [&]<class T>() {
    visit_index(positions.dtype(), "index_put", [&]<class I>() {
      const T* in = values.data<T>();
      const I* position = positions.data<I>();
      T* out = y.mutable_data<T>();
      parallel_for(positions.numel(), grain_for(8), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) out[static_cast<int64_t>(position[i])] = in[i];
      });
    });
  });
}

// The smallest and the largest id; (0, -1) when there is none.
void min_max(In ids, Out low_high) {
  int64_t* out = low_high.mutable_data<int64_t>();
  out[0] = 0;
  out[1] = -1;
  if (ids.numel() == 0) return;
  visit_index(ids.dtype(), "min_max", [&]<class I>() {
    const I* id = ids.data<I>();
    auto [low, high] = std::minmax_element(id, id + ids.numel());
    out[0] = static_cast<int64_t>(*low);
    out[1] = static_cast<int64_t>(*high);
  });
}

}  // namespace

constinit const IndexKernels index_kernels{
    .select = index_select,
    .add = index_add,
    .gather = gather,
    .scatter = scatter,
    .put = put,
    .min_max = min_max,
};

}  // namespace braid::cpu
