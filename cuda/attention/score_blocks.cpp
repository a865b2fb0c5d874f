#include "braid/cuda/attention/score_blocks.h"

#include <algorithm>

#include "braid/tensor/base/integers.h"

namespace braid::cuda::attention::tensor_core {

namespace {

using detail::ceil_div;
using detail::round_up;

// Rows of a panel. A causal one computes half of its last square in vain, so it has an eighth of the rows: few products
// still, and 1/16 of the scores too many. A window has as many keys as rows beyond the window.
constexpr int64_t kSmallestPanel = 64, kLargestPanel = 512, kWindowRows = 128;
constexpr int64_t kTargetBlocks = 528;              // of threads: four for each multiprocessor of an H100
constexpr int64_t kLimit = (int64_t{1} << 31) - 1;  // the kernels count in 32 bits

int narrow(int64_t n) { return static_cast<int>(n); }

class Cut {
 public:
  Cut(const DcmhaInputs& x, const Cost& cost, int64_t workspace)
      : n_(x), mask_(x.mask), cost_(cost), workspace_(workspace), windowed_(mask_.causal && mask_.window > 0) {}

  std::vector<ScoreBlock> blocks() const {
    if (const std::vector<ScoreBlock> windows = window_blocks(); !windows.empty()) return windows;
    // A window that leaves out many keys: the keys of few rows are few.
    const bool narrow_keys = windowed_ && mask_.window + kWindowRows + 16 < n_.S;
    const int64_t panel = !mask_.causal ? n_.T
                          : narrow_keys ? kWindowRows
                                        : std::clamp(round_up(ceil_div(n_.T, 8), 16), kSmallestPanel, kLargestPanel);
    const auto columns_of = [&](int64_t rows) {  // the largest number that a block can need
      return narrow_keys ? std::min(round_up(n_.S, 16), round_up(mask_.window + rows + 16, 16)) : round_up(n_.S, 16);
    };
    const auto fits = [&](int64_t rows) { return samples_of(rows, ceil_div(rows, panel), columns_of(rows)) > 0; };
    int64_t rows = narrow_keys ? std::min(panel, n_.T) : n_.T;
    if (!fits(rows) && rows > panel) {
      rows = round_up(rows, panel);
      while (rows > panel && !fits(rows)) rows -= panel;
    }
    while (rows > 4 && !fits(rows)) rows = round_up(rows / 2, 4);
    const int64_t samples = balanced(samples_of(rows, ceil_div(rows, panel), columns_of(rows)));

    std::vector<ScoreBlock> blocks;
    for (const QueryBlock& block : split_queries(n_.B, n_.T, n_.S, mask_, samples, rows))
      blocks.push_back(panels_of(block, std::min(panel, rows)));
    return blocks;
  }

 private:
  // How many samples fit, of a block with these rows of each.
  int64_t samples_of(int64_t rows, int64_t panels, int64_t pitch) const {
    const int64_t key_blocks = ceil_div(pitch, int64_t{kBlockKeys}), scores = n_.N * rows * (pitch + 1);
    const int64_t bytes = 2 * cost_.buffers * scores + rows * key_blocks * cost_.row_sums +
                          panels * pitch * cost_.key_sums + 4 * rows * n_.N * n_.N;
    const int64_t largest = std::max({scores, rows * key_blocks * n_.N * n_.N, n_.T * n_.N});
    return std::min({workspace_ / bytes, kLimit / largest, 65535 / panels});
  }
  // The same number of blocks with about the same number of samples.
  int64_t balanced(int64_t samples) const {
    return ceil_div(n_.B, ceil_div(n_.B, std::clamp<int64_t>(samples, 1, n_.B)));
  }

  ScoreBlock common() const {
    ScoreBlock c{};
    c.heads = narrow(n_.N);
    c.queries = narrow(n_.T);
    c.keys = narrow(n_.S);
    return c;
  }
  static void set_segments(ScoreBlock& c) {
    int64_t blocks = 0;
    for (int p = 0; p < c.panels; ++p) blocks += int64_t{c.samples} * ceil_div(c.columns_of(p), kBlockKeys);
    const int64_t groups = (int64_t{c.panel_rows} * c.heads + 63) / 64;  // of rows that the kernels take at a time
    c.segments =
        narrow(std::clamp<int64_t>((kTargetBlocks + blocks / 2) / blocks, 1, std::max<int64_t>(1, groups / 8)));
  }

  // Windows that end with their rows, over the keys of the same tokens: panel p has rows [p R, (p + 1) R) and the keys
  // of these and of `before` tokens before them.
  std::vector<ScoreBlock> window_blocks() const {
    if (!windowed_ || mask_.offset != 0 || n_.T != n_.S) return {};
    const int64_t rows = std::min(kWindowRows, round_up(mask_.window, 16)), before = round_up(mask_.window - 1, rows);
    const int64_t columns = before + rows, panels = ceil_div(n_.T, rows);
    if (columns >= n_.T) return {};
    const int64_t fitting = samples_of(panels * rows, panels, columns);
    if (fitting < 1) return {};
    const int64_t samples = balanced(fitting);
    std::vector<ScoreBlock> blocks;
    for (int64_t first = 0; first < n_.B; first += samples) {
      ScoreBlock c = common();
      c.samples = narrow(std::min(samples, n_.B - first));
      c.first_sample = narrow(first);
      c.rows = narrow(n_.T);
      c.panels = narrow(panels);
      c.panel_rows = c.key_step = narrow(rows);
      c.first_key = narrow(-before);
      c.columns = c.pitch = narrow(columns);
      // One row of a panel further than its memory: so the keys [p R, (p + 1) R) of this and the next panels' rows are
      // the columns of one matrix.
      c.panel_stride = narrow(rows * (columns + 1));
      c.head_stride = c.panels * c.panel_stride;
      c.begin_shift = narrow(before - mask_.window + 1);
      c.end_shift = narrow(before + 1);
      set_segments(c);
      blocks.push_back(c);
    }
    return blocks;
  }

  ScoreBlock panels_of(const QueryBlock& block, int64_t panel) const {
    const int64_t T = n_.T, S = n_.S, max_shift = T + S;
    const int64_t begin_shift = windowed_ ? mask_.offset - mask_.window + 1 : -T;
    const int64_t end_shift = mask_.causal ? mask_.offset + 1 : S;
    const int64_t end = std::max<int64_t>(1, block.s0 + block.keys);  // at least one tile, even if it is masked
    const int64_t begin = std::min(block.s0, end - 1) / 16 * 16;
    ScoreBlock c = common();
    c.samples = narrow(block.samples);
    c.first_sample = narrow(block.b0);
    c.rows = narrow(block.rows);
    c.first_row = narrow(block.t0);
    c.panel_rows = narrow(std::min(panel, block.rows));
    c.panels = ceil_div(c.rows, c.panel_rows);
    c.first_key = narrow(begin);
    c.columns = c.pitch = narrow(round_up(end - begin, 16));
    if (c.panels > 1) {
      const int64_t first_end = std::clamp(block.t0 + panel + mask_.offset - begin, -max_shift, max_shift);
      c.columns = narrow(first_end > 0 ? round_up(first_end, 16) : first_end / 16 * 16);
      c.column_step = c.panel_rows;
    }
    c.panel_stride = c.panel_rows * c.pitch;
    c.head_stride = c.rows * c.pitch;
    c.begin_shift = narrow(std::clamp(begin_shift + block.t0 - begin, -max_shift, max_shift));
    c.end_shift = narrow(std::clamp(end_shift + block.t0 - begin, -max_shift, max_shift));
    set_segments(c);
    return c;
  }

  const Sizes n_;
  const AttentionMask mask_;
  const Cost cost_;
  const int64_t workspace_;
  const bool windowed_;
};

}  // namespace

int64_t scores_of(const ScoreBlock& c) {
  int64_t sum = 0;
  for (int p = 0; p < c.panels; ++p) sum += int64_t{c.windows() ? c.panel_rows : c.rows_of(p)} * c.columns_of(p);
  return sum * c.samples * c.heads;
}

int64_t unmasked_scores_of(const ScoreBlock& c) {
  const int group = 64 / c.heads;  // rows
  int64_t sum = 0;
  for (int p = 0; p < c.panels; ++p) {
    const int shift = c.shift_of(p);
    for (int begin = 0; begin < c.columns_of(p); begin += kBlockKeys) {
      const int end = std::min(begin + kBlockKeys, c.columns_of(p)), last = std::min(end, c.key_columns_of(p)) - 1;
      const int first = std::max(begin, -c.first_key_of(p));
      const int rows_begin = std::max(0, first - c.end_shift - shift + 1) / group * group;
      const int rows_end =
          std::min(c.rows_of(p), detail::round_up(std::max(0, last - c.begin_shift - shift + 1), group));
      if (first <= last && rows_end > rows_begin) sum += int64_t{rows_end - rows_begin} * (end - begin);
    }
  }
  return sum * c.samples * c.heads;
}

int64_t copied_scores_of(const ScoreBlock& c) {
  if (c.heads != 16) return unmasked_scores_of(c);
  int64_t sum = 0;
  for (int p = 0; p < c.panels; ++p) {
    for (int row = c.shift_of(p); row < c.shift_of(p) + c.rows_of(p); ++row) {
      const int begin = std::max(std::max(0, -c.first_key_of(p)), row + c.begin_shift);
      const int end = std::min(c.key_columns_of(p), row + c.end_shift);
      if (begin < end) sum += 8 * (ceil_div(end, 8) - begin / 8);
    }
  }
  return sum * c.samples * c.heads;
}

std::vector<ScoreBlock> blocks_of(const DcmhaInputs& x, const Cost& cost, int64_t workspace) {
  return Cut(x, cost, workspace).blocks();
}

}  // namespace braid::cuda::attention::tensor_core
