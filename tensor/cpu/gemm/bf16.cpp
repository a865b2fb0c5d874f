#include "braid/tensor/cpu/gemm/bf16.h"

#include <algorithm>
#include <new>
#include <vector>

#include "braid/tensor/base/integers.h"
#include "braid/tensor/base/processor.h"
#include "braid/tensor/base/variants.h"
#include "braid/tensor/tensor.h"

namespace braid::cpu {

extern const Bf16Kernels avx512_bf16_products, amx_products;

namespace {

using detail::ceil_div, detail::round_up;

// A tile of y. The rows of x that it packs, a block deep, stay in the second-level cache while the columns of z pass
// by. Where the depth takes several blocks, the tile's sums wait in f32: fewer columns.
constexpr int64_t kTileRows = 336, kTileColumns = 16 * kBf16Columns;
// Most words of packed columns that all tiles of a product share.
constexpr int64_t kSharedWords = int64_t{16} << 20;
// Rows of x that do not pay for packing W where a kernel reads it as it lies.
constexpr int64_t kRowsInPlace = 256;

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

// Large tiles, and smaller ones where that leaves too few for a thread and each has work enough to pay for its
// packing; then as many to each thread. No bit depends on the cut (bf16_kernels.h). Rows are cut first: a tile packs
// its own, while columns were packed once for all. One tile of rows is not cut: each thread packs columns of its own
// and all rows, which costs less than to wait for columns that others pack.
Tiles tiles_of(const Bf16Kernels& kernels, int64_t count, int64_t m, int64_t n, int64_t k) {
  const int64_t rows = kernels.rows;
  constexpr int64_t least = 42;
  const bool share = count == 1 && n * k / 2 <= kSharedWords;
  Tiles t{{m, rows, ceil_div(m, kTileRows / rows * rows)},
          {n, kBf16Columns, k <= kernels.slice * kernels.slices && share ? 1 : ceil_div(n, kTileColumns)},
          share};
  const int64_t workers = threads();
  const double work = double(m) * double(n) * double(k);
  if (share && workers > 1 && t.rows.count == 1 && n / 64 >= workers) {
    t.columns.count = std::max(t.columns.count, std::clamp<int64_t>(static_cast<int64_t>(work / 1e6), 1, workers));
    return t;
  }
  const auto tall = [&] { return m / t.rows.count >= 2 * least; };
  while (workers > 1 && count * t.count() < kernels.tiles * workers && work / double(t.count()) > 4e6) {
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

void finish(const Bf16Kernels& kernels, int64_t rows, int64_t columns, const float* c, const float* bias,
            bool accumulate, float* y, int64_t ldy) {
  kernels.finish_f32(rows, columns, c, bias, accumulate, y, ldy);
}
void finish(const Bf16Kernels& kernels, int64_t rows, int64_t columns, const float* c, const float* bias,
            bool accumulate, bfloat16* y, int64_t ldy) {
  kernels.finish_bf16(rows, columns, c, bias, accumulate, &y->bits, ldy);
}

// The depth in slices, of which some make a block (bf16_kernels.h). Each is a multiple of what the kernels pack; the
// last may be less deep.
struct Slices {
  int64_t k, unit, count, depth, per_block;
  Slices(const Bf16Kernels& kernels, int64_t all)
      : k(all),
        unit(kernels.depths),
        count(ceil_div(k, kernels.slice)),
        depth(round_up(ceil_div(k, count), unit)),
        per_block(std::min(count, kernels.slices)) {}
  int64_t begin(int64_t slice) const { return slice * depth; }
  int64_t size(int64_t slice) const { return std::min(depth, k - begin(slice)); }
  bool last(int64_t slice) const { return slice + 1 == count; }
  // Words of so many panels of columns in a slice, and before a slice of so many panels.
  int64_t panels(int64_t slice, int64_t n) const { return ceil_div(round_up(size(slice), unit), 2) * kBf16Columns * n; }
  int64_t before(int64_t slice, int64_t n) const { return begin(slice) / 2 * kBf16Columns * n; }
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
  // Block by block of the depth: its rows are packed once and stay in the second-level cache, while groups of panels of
  // columns pass by, slice by slice, one panel of which stays in the first-level cache.
  void multiply(const uint32_t* packed) const {
    const Slices slices(kernels, p.k);
    const int64_t row_panels = ceil_div(m, kernels.rows), panels = ceil_div(n, kBf16Columns);
    const int64_t group = std::min(panels, kernels.panels);
    // Sums wait where more slices follow: those of a group, or of the tile where more blocks follow.
    const bool one_block = slices.per_block == slices.count;
    const int64_t waiting = slices.count == 1 ? 1 : row_panels * (one_block ? group : panels);
    const int64_t a_slice = row_panels * kernels.row_panel, a_words = a_slice * slices.per_block;
    const int64_t own_words = packed ? 0 : slices.panels(0, group), c_words = waiting * kernels.rows * kBf16Columns;
    thread_local Scratch scratch;
    auto* a = static_cast<uint32_t*>(scratch.at_least(static_cast<size_t>(a_words + own_words + c_words) * 4));
    uint32_t* const own = a + a_words;
    float* const c = reinterpret_cast<float*>(own + own_words);
    for (int64_t block = 0; block < slices.count; block += slices.per_block) {
      const int64_t end = std::min(block + slices.per_block, slices.count);
      bool by_vector = false;
      for (int64_t slice = block; slice < end; ++slice) {
        const bfloat16* x = at.x + i * p.x_row + slices.begin(slice) * p.x_depth;
        by_vector =
            kernels.pack_rows(&x->bits, p.x_row, p.x_depth, m, slices.size(slice), a + (slice - block) * a_slice);
      }
      for (int64_t first = 0; first < panels; first += group) {
        const int64_t last = std::min(first + group, panels), column = first * kBf16Columns;
        for (int64_t slice = block; slice < end; ++slice) {
          if (!packed)
            pack_columns(kernels, p, at.z, j + column, std::min(n, last * kBf16Columns) - column, slices.begin(slice),
                         slices.size(slice), own);
          const uint32_t* b = packed ? packed + slices.before(slice, ceil_div(p.n, kBf16Columns)) +
                                           slices.panels(slice, j / kBf16Columns + first)
                                     : own;
          for (int64_t panel = first; panel < last; ++panel)
            multiply_panel(slices, slice, panel, a + (slice - block) * a_slice, by_vector,
                           b + slices.panels(slice, panel - first),
                           c + (waiting == 1 ? 0
                                : one_block  ? panel - first
                                             : panel) *
                                   c_panel());
        }
      }
    }
  }

  // One slice of a panel of columns with all panels of rows. c: its sums, those of a panel of rows after the other; one
  // after the other in the same place where no slice follows.
  void multiply_panel(const Slices& slices, int64_t slice, int64_t panel, const uint32_t* a, bool by_vector,
                      const uint32_t* b, float* c) const {
    const int64_t column = panel * kBf16Columns, columns = std::min(kBf16Columns, n - column);
    for (int64_t row = 0; row < m; row += kernels.rows, a += kernels.row_panel) {
      const int64_t rows = std::min(kernels.rows, m - row);
      kernels.multiply(rows, columns, slices.size(slice), a, by_vector, b, slice == 0, c);
      if (slices.last(slice))
        finish(kernels, rows, columns, c, bias ? bias + j + column : nullptr, p.accumulate,
               y + (i + row) * p.n + j + column, p.n);
      if (slices.count > 1) c += kernels.rows * kBf16Columns;
    }
  }
  int64_t c_panel() const { return ceil_div(m, kernels.rows) * kernels.rows * kBf16Columns; }

  static void pack_columns(const Bf16Kernels& kernels, const Bf16Products<Y>& p, const bfloat16* z, int64_t j,
                           int64_t n, int64_t k, int64_t depth, uint32_t* panels) {
    kernels.pack_columns(&(z + j * p.z_column + k * p.z_depth)->bits, p.z_column, p.z_depth, n, depth, panels);
  }
};

// All columns of z, packed slice by slice.
template <class Y>
Tensor pack_all_columns(const Bf16Kernels& kernels, const Bf16Products<Y>& p, const bfloat16* z) {
  const Slices slices(kernels, p.k);
  const int64_t panels = ceil_div(p.n, kBf16Columns);
  Tensor packed = empty({slices.before(slices.count, panels)}, DType::i32);
  auto* words = reinterpret_cast<uint32_t*>(packed.mutable_data<int32_t>());
  parallel_for(slices.count * panels, grain_for(slices.depth * kBf16Columns / 4), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t slice = task / panels, panel = task % panels, j = panel * kBf16Columns;
      Tile<Y>::pack_columns(kernels, p, z, j, std::min(kBf16Columns, p.n - j), slices.begin(slice), slices.size(slice),
                            words + slices.before(slice, panels) + slices.panels(slice, panel));
    }
  });
  return packed;
}

// A few rows: every row of W is read once, where it lies; blocks of x take turns with some of them.
template <class Y>
void multiply_few(const Bf16Kernels& kernels, const Bf16Products<Y>& p, const float* bias,
                  FunctionRef<Bf16Operands(int64_t i)> operands) {
  const int64_t size = round_up(p.k, kernels.depths) / 2 * kBf16Columns, groups = ceil_div(p.n, kBf16Columns);
  const int64_t blocks = ceil_div(p.m, kBf16Columns);
  Tensor rows = empty({p.count * blocks * size}, DType::i32);
  auto* panels = reinterpret_cast<uint32_t*>(rows.mutable_data<int32_t>());
  const auto rows_of = [&](int64_t block) { return std::min(kBf16Columns, p.m - block * kBf16Columns); };
  parallel_for(p.count * blocks, grain_for(size), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t block = i % blocks;
      const bfloat16* x = operands(i / blocks).x + block * kBf16Columns * p.x_row;
      kernels.pack_columns(&x->bits, p.x_row, p.x_depth, rows_of(block), p.k, panels + i * size);
    }
  });
  // Reading W once counts as multiplying it by eight rows.
  parallel_for(p.count * groups, grain_for((p.m + 8) * kBf16Columns * p.k / 8), [&](int64_t begin, int64_t end) {
    alignas(64) float c[kBf16Columns * kBf16Columns];
    if (kernels.enter) kernels.enter();
    for (int64_t task = begin; task < end; ++task) {
      const int64_t product = task / groups, j = task % groups * kBf16Columns, n = std::min(kBf16Columns, p.n - j);
      const uint16_t* w = &(operands(product).z + j * p.z_column)->bits;
      Y* y = p.y + product * p.m * p.n + j;
      for (int64_t block = 0; block < blocks; ++block, y += kBf16Columns * p.n) {
        const int64_t m = rows_of(block);
        kernels.multiply_few(m, n, p.k, panels + (product * blocks + block) * size, w, p.z_column, c);
        finish(kernels, m, n, c, bias ? bias + j : nullptr, p.accumulate, y, p.n);
      }
    }
    if (kernels.leave) kernels.leave();
  });
}

detail::Variants<Bf16Kernels>& known() {
  static constexpr Bf16Kernels none{.name = "f32"};
  static detail::Variants<Bf16Kernels> known([] {
    std::vector<const Bf16Kernels*> found;
#ifdef BRAID_GEMM_AVX512_BF16
    if (detail::has_avx512_bf16()) found.push_back(&avx512_bf16_products);
#endif
    found.insert(detail::prefers_avx512_bf16() ? found.end() : found.begin(), &none);
#ifdef BRAID_GEMM_AMX
    if (detail::has_amx()) found.insert(found.begin(), &amx_products);
#endif
    return found;
  }());
  return known;
}

}  // namespace

template <class Y>
void multiply_bf16(const Bf16Products<Y>& p, FunctionRef<Bf16Operands(int64_t i)> operands) {
  const Bf16Kernels& kernels = bf16_kernels();
  std::vector<float> bias(static_cast<size_t>(p.bias ? p.n : 0));
  for (size_t j = 0; j < bias.size(); ++j) bias[j] = static_cast<float>(p.bias[j]);
  if (kernels.multiply_few && p.m <= kRowsInPlace && (p.z_depth == 1 || p.k == 1))
    return multiply_few(kernels, p, p.bias ? bias.data() : nullptr, operands);
  const Tiles tiles = tiles_of(kernels, p.count, p.m, p.n, p.k);
  Tensor columns;  // packed once for all tiles of a product
  if (tiles.share_columns && tiles.rows.count > 1) columns = pack_all_columns(kernels, p, operands(0).z);
  const auto* packed = columns ? reinterpret_cast<const uint32_t*>(columns.data<int32_t>()) : nullptr;
  const double work = double(p.m) * double(p.n) * double(p.k) / double(tiles.count());
  parallel_for(p.count * tiles.count(), std::max<int64_t>(1, int64_t(2e5 / work)), [&](int64_t begin, int64_t end) {
    if (kernels.enter) kernels.enter();
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
    if (kernels.leave) kernels.leave();
  });
}
template void multiply_bf16(const Bf16Products<float>&, FunctionRef<Bf16Operands(int64_t)>);
template void multiply_bf16(const Bf16Products<bfloat16>&, FunctionRef<Bf16Operands(int64_t)>);

int64_t bf16_own_columns(int64_t count, int64_t m, int64_t n, int64_t k) {
  const Tiles t = tiles_of(bf16_kernels(), count, m, n, k);
  const int64_t tile = round_up(ceil_div(n, t.columns.count), kBf16Columns);
  return t.share_columns && t.rows.count > 1 ? 0 : std::min({n, tile, bf16_kernels().panels * kBf16Columns});
}

std::span<const Bf16Kernels* const> bf16_variants() { return known().all(); }
const Bf16Kernels& bf16_kernels() { return known().in_use(); }
bool use_bf16_variant(std::string_view name) { return known().use(name); }

}  // namespace braid::cpu
