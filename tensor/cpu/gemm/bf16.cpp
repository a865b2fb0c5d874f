#include "braid/tensor/cpu/gemm/bf16.h"

#include <algorithm>
#include <new>
#include <vector>

#include "braid/tensor/base/integers.h"
#include "braid/tensor/base/processor.h"
#include "braid/tensor/base/variants.h"
#include "braid/tensor/tensor.h"

namespace braid::cpu {

#ifdef BRAID_GEMM_AVX512_BF16
extern const Bf16Kernels avx512_bf16_products;
#endif

namespace {

using detail::ceil_div, detail::round_up;

// A tile of y. The rows of x that it packs (kBf16Depth deep) stay in the second-level cache while the columns of z pass
// by. Where the depth takes several slices, the tile's sums wait in f32: fewer columns.
constexpr int64_t kTileRows = 24 * kBf16Rows, kTileColumns = 16 * kBf16Columns;
// Most words of packed columns that all tiles of a product share.
constexpr int64_t kSharedWords = int64_t{16} << 20;

// `count` pieces of [0, size), of about the same number of whole `unit`s each.
struct Pieces {
  int64_t size, unit, count;
  int64_t at(int64_t i) const { return std::min(size, ceil_div(size, unit) * i / count * unit); }
};

struct Tiles {
  Pieces rows, columns;
  bool share_columns;  // packed once for all tiles, where there are several rows of them; else each packs its own
  int64_t count() const { return rows.count * columns.count; }
};

// Large tiles, and smaller ones where that leaves fewer than four a thread and each has work enough to pay for its
// packing; then as many to each thread. No bit depends on the cut (bf16_kernels.h). Rows are cut first: a tile packs
// its own, while columns were packed once for all.
Tiles tiles_of(int64_t count, int64_t m, int64_t n, int64_t k) {
  constexpr int64_t least = 3 * kBf16Rows;
  const bool share = count == 1 && n * k / 2 <= kSharedWords;
  Tiles t{{m, kBf16Rows, ceil_div(m, kTileRows)},
          {n, kBf16Columns, k <= kBf16Depth && share ? 1 : ceil_div(n, kTileColumns)},
          share};
  const int64_t workers = threads();
  const double work = double(m) * double(n) * double(k);
  const auto tall = [&] { return m / t.rows.count >= 2 * least; };
  while (workers > 1 && count * t.count() < 4 * workers && work / double(t.count()) > 4e6) {
    if (!tall() && n / t.columns.count < 128) break;
    ++(tall() ? t.rows : t.columns).count;
  }
  while (count * t.count() % workers != 0 && count * t.count() < 8 * workers && tall()) ++t.rows.count;
  return t;
}

// Memory of a thread that products take one after the other, at the beginning of a cache line.
class Scratch {
 public:
  ~Scratch() { release(); }
  void* at_least(size_t bytes) {
    if (bytes > bytes_) {
      release();
      memory_ = ::operator new (bytes, std::align_val_t{64});
      bytes_ = bytes;
    }
    return memory_;
  }

 private:
  void release() {
    ::operator delete (memory_, std::align_val_t{64});
    memory_ = nullptr, bytes_ = 0;
  }
  void* memory_ = nullptr;
  size_t bytes_ = 0;
};

void finish(const Bf16Kernels& kernels, int64_t rows, int64_t columns, const float* c, int64_t ldc, const float* bias,
            bool accumulate, float* y, int64_t ldy) {
  kernels.finish_f32(rows, columns, c, ldc, bias, accumulate, y, ldy);
}
void finish(const Bf16Kernels& kernels, int64_t rows, int64_t columns, const float* c, int64_t ldc, const float* bias,
            bool accumulate, bfloat16* y, int64_t ldy) {
  kernels.finish_bf16(rows, columns, c, ldc, bias, accumulate, &y->bits, ldy);
}

// The depth in slices, each an even number but the last.
struct Slices {
  int64_t k, count, depth;
  explicit Slices(int64_t all) : k(all), count(ceil_div(k, kBf16Depth)), depth(round_up(ceil_div(k, count), 2)) {}
  int64_t begin(int64_t slice) const { return slice * depth; }
  int64_t size(int64_t slice) const { return std::min(depth, k - begin(slice)); }
  // Words before a slice of so many panels of columns, and before one of its panels.
  int64_t words(int64_t slice, int64_t panels) const { return begin(slice) / 2 * panels * kBf16Columns; }
  int64_t panel(int64_t slice, int64_t panel) const { return ceil_div(size(slice), 2) * kBf16Columns * panel; }
};

// Rows [i, i + m) and columns [j, j + n) of one product.
template <class Y>
struct Tile {
  const Bf16Kernels& kernels;
  const Bf16Products<Y>& p;
  Bf16Operands at;
  const float* bias;
  int64_t i, m, j, n;
  Y* y;

  // packed: all columns of z, packed slice by slice; null: packed here.
  void multiply(const uint32_t* packed) const {
    const Slices slices(p.k);
    const int64_t row_panels = ceil_div(m, kBf16Rows), panels = ceil_div(n, kBf16Columns);
    const bool once = slices.count == 1;  // the sums need not wait for the next slice
    const int64_t ldc = once ? kBf16Columns : panels * kBf16Columns, c_rows = once ? kBf16Rows : m;
    const int64_t a_words = row_panels * kBf16RowPanel, b_words = packed ? 0 : slices.panel(0, panels);
    thread_local Scratch scratch;
    auto* a = static_cast<uint32_t*>(scratch.at_least(static_cast<size_t>(a_words + b_words + c_rows * ldc) * 4));
    uint32_t* own = a + a_words;
    float* c = reinterpret_cast<float*>(own + b_words);
    for (int64_t slice = 0; slice < slices.count; ++slice) {
      const int64_t k = slices.begin(slice), depth = slices.size(slice);
      const bool by_vector =
          kernels.pack_rows(&(at.x + i * p.x_row + k * p.x_depth)->bits, p.x_row, p.x_depth, m, depth, a);
      if (!packed) pack_columns(kernels, p, at.z, j, n, k, depth, own);
      const uint32_t* b =
          packed ? packed + slices.words(slice, ceil_div(p.n, kBf16Columns)) + slices.panel(slice, j / kBf16Columns)
                 : own;
      for (int64_t panel = 0; panel < panels; ++panel) {
        for (int64_t row = 0; row < m; row += kBf16Rows) {
          const int64_t column = panel * kBf16Columns;
          const int64_t rows = std::min(kBf16Rows, m - row), columns = std::min(kBf16Columns, n - column);
          float* sums = once ? c : c + row * ldc + column;
          kernels.multiply(rows, columns, ceil_div(depth, 2), a + row / kBf16Rows * kBf16RowPanel, by_vector,
                           b + slices.panel(slice, panel), slice == 0, sums, ldc);
          if (slice + 1 < slices.count) continue;
          finish(kernels, rows, columns, sums, ldc, bias ? bias + j + column : nullptr, p.accumulate,
                 y + (i + row) * p.n + j + column, p.n);
        }
      }
    }
  }

  static void pack_columns(const Bf16Kernels& kernels, const Bf16Products<Y>& p, const bfloat16* z, int64_t j,
                           int64_t n, int64_t k, int64_t depth, uint32_t* panels) {
    kernels.pack_columns(&(z + j * p.z_column + k * p.z_depth)->bits, p.z_column, p.z_depth, n, depth, panels);
  }
};

// All columns of z, packed slice by slice.
template <class Y>
Tensor pack_all_columns(const Bf16Kernels& kernels, const Bf16Products<Y>& p, const bfloat16* z) {
  const Slices slices(p.k);
  const int64_t panels = ceil_div(p.n, kBf16Columns);
  Tensor packed = empty({slices.words(slices.count, panels)}, DType::i32);
  auto* words = reinterpret_cast<uint32_t*>(packed.mutable_data<int32_t>());
  parallel_for(slices.count * panels, grain_for(slices.depth * kBf16Columns / 4), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t slice = task / panels, panel = task % panels, j = panel * kBf16Columns;
      Tile<Y>::pack_columns(kernels, p, z, j, std::min(kBf16Columns, p.n - j), slices.begin(slice), slices.size(slice),
                            words + slices.words(slice, panels) + slices.panel(slice, panel));
    }
  });
  return packed;
}

detail::Variants<Bf16Kernels>& known() {
  static constexpr Bf16Kernels none{.name = "f32"};
  static detail::Variants<Bf16Kernels> known([] {
    std::vector<const Bf16Kernels*> found;
#ifdef BRAID_GEMM_AVX512_BF16
    if (detail::has_avx512_bf16()) found.push_back(&avx512_bf16_products);
#endif
    found.insert(detail::prefers_avx512_bf16() ? found.end() : found.begin(), &none);
    return found;
  }());
  return known;
}

}  // namespace

template <class Y>
void multiply_bf16(const Bf16Products<Y>& p, FunctionRef<Bf16Operands(int64_t i)> operands) {
  const Bf16Kernels& kernels = bf16_kernels();
  const Tiles tiles = tiles_of(p.count, p.m, p.n, p.k);
  std::vector<float> bias(static_cast<size_t>(p.bias ? p.n : 0));
  for (size_t j = 0; j < bias.size(); ++j) bias[j] = static_cast<float>(p.bias[j]);
  Tensor columns;  // packed once for all tiles of a product
  if (tiles.share_columns && tiles.rows.count > 1) columns = pack_all_columns(kernels, p, operands(0).z);
  const auto* packed = columns ? reinterpret_cast<const uint32_t*>(columns.data<int32_t>()) : nullptr;
  const double work = double(p.m) * double(p.n) * double(p.k) / double(tiles.count());
  parallel_for(p.count * tiles.count(), std::max<int64_t>(1, int64_t(2e5 / work)), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t product = task / tiles.count(), place = task % tiles.count();
      const int64_t row = place / tiles.columns.count, column = place % tiles.columns.count;
      const int64_t i = tiles.rows.at(row), j = tiles.columns.at(column);
      const Tile<Y> tile{kernels,
                         p,
                         operands(product),
                         p.bias ? bias.data() : nullptr,
                         i,
                         tiles.rows.at(row + 1) - i,
                         j,
                         tiles.columns.at(column + 1) - j,
                         p.y + product * p.m * p.n};
      tile.multiply(packed);
    }
  });
}
template void multiply_bf16(const Bf16Products<float>&, FunctionRef<Bf16Operands(int64_t)>);
template void multiply_bf16(const Bf16Products<bfloat16>&, FunctionRef<Bf16Operands(int64_t)>);

int64_t bf16_own_columns(int64_t count, int64_t m, int64_t n, int64_t k) {
  const Tiles t = tiles_of(count, m, n, k);
  return t.share_columns && t.rows.count > 1 ? 0 : std::min(n, round_up(ceil_div(n, t.columns.count), kBf16Columns));
}

std::span<const Bf16Kernels* const> bf16_variants() { return known().all(); }
const Bf16Kernels& bf16_kernels() { return known().in_use(); }
bool use_bf16_variant(std::string_view name) { return known().use(name); }

}  // namespace braid::cpu
