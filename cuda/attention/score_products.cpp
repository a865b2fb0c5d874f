#include "braid/cuda/attention/score_products.h"

#include "braid/cuda/matmul/matmul.h"

namespace braid::cuda::attention::tensor_core {

namespace {

// x (B, P, heads, d): whether samples and heads are one batch axis of a product.
bool heads_first(const Tensor& x) {
  const Strides& s = x.strides();
  return s[3] == 1 && s[1] >= x.dim(3) && (x.dim(0) == 1 || s[0] == x.dim(2) * s[2]);
}
// And with them the windows of a head, for which its rows lie one after the other.
bool windows_first(const Tensor& x, const ScoreBlock& c) {
  const Strides& s = x.strides();
  return heads_first(x) && x.dim(1) == c.panels * c.panel_rows && s[2] == x.dim(1) * s[1];
}

HeadRows rows_of(const Tensor& x) {
  const Strides& s = x.strides();
  return {x, x.dim(2), 0, s[0], s[2], s[1]};
}

// Heads-first memory for (B, rows, heads, d).
HeadRows empty_rows(int64_t B, int64_t rows, int64_t heads, int64_t d, DType dtype, Device device) {
  return {empty({B, heads, rows, d}, dtype, device), heads, 0, heads * rows * d, rows * d, d};
}

int64_t window_rows(const ScoreBlock& c) { return int64_t{c.panels} * c.panel_rows; }

}  // namespace

Tensor HeadRows::of(const ScoreBlock& c, const Sizes& n, int64_t begin, int64_t count) const {
  const int64_t share = n.N / n.Nkv, offset = first_ + c.first_sample * sample_ + begin * row_;
  const int64_t group = heads_ == n.N ? share * head_ : head_, step = heads_ == n.N ? head_ : 0;
  if (!c.windows()) return memory_.view({c.samples, n.Nkv, share, count, n.d}, {sample_, group, step, row_, 1}, offset);
  return memory_.view({c.samples, n.Nkv, share, c.panels, count, n.d},
                      {sample_, group, step, c.panel_rows * row_, row_, 1}, offset);
}

Tensor HeadRows::all(const Sizes& n, int64_t count) const {
  return memory_.view({n.B, count, heads_, n.d}, {sample_, row_, head_, 1}, first_);
}

std::vector<HeadRows> operands(const std::vector<Tensor>& tensors, const Sizes& n, const ScoreBlock& c) {
  std::vector<HeadRows> result;
  const Device device = tensors[0].device();
  if (!c.windows()) {
    for (const Tensor& x : tensors) {
      if (heads_first(x)) {
        result.push_back(rows_of(x));
        continue;
      }
      result.push_back(empty_rows(n.B, x.dim(1), x.dim(2), n.d, x.dtype(), device));
      result.back().all(n, x.dim(1)).copy_(x);
    }
    return result;
  }
  const int64_t rows = window_rows(c), all = n.B * n.N * rows, between = -c.first_key, share = n.N / n.Nkv;
  const int64_t count = static_cast<int64_t>(tensors.size());
  Tensor memory = empty({count * (all + between) + between, n.d}, tensors[0].dtype(), device);
  if (rows == n.T) {
    memory.view({count + 1, between * n.d}, {(all + between) * n.d, 1}, 0).fill(0);
  } else {
    memory.fill(0);
  }
  for (const Tensor& x : tensors) {
    const int64_t first = (between + static_cast<int64_t>(result.size()) * (all + between)) * n.d;
    result.emplace_back(memory, n.N, first, n.N * rows * n.d, rows * n.d, n.d);
    const Strides& s = x.strides();
    const int64_t repeats = x.dim(2) == n.N ? 1 : share, heads = n.N / repeats;
    memory.view({n.B, heads, repeats, n.T, n.d}, {n.N * rows * n.d, repeats * rows * n.d, rows * n.d, n.d, 1}, first)
        .copy_(x.view({n.B, heads, repeats, n.T, n.d}, {s[0], s[2], 0, s[1], s[3]}, 0));
  }
  return result;
}

HeadRowsResult::HeadRowsResult(Tensor& result, const Sizes& n, const ScoreBlock& c) {
  if (c.windows() ? windows_first(result, c) : heads_first(result)) {
    rows_ = rows_of(result);
    return;
  }
  result_ = &result;
  rows_ = empty_rows(n.B, c.windows() ? window_rows(c) : result.dim(1), result.dim(2), n.d, result.dtype(),
                     result.device());
}

void HeadRowsResult::finish(const Sizes& n) {
  if (result_) result_->copy_(rows_.all(n, result_->dim(1)));
}

Scores::Scores(const std::vector<ScoreBlock>& blocks, const Sizes& n, Device device)
    : n_(n),
      buffer_(empty({max_over(blocks,
                              [&](const ScoreBlock& c) {
                                const int64_t behind = c.windows() ? (c.pitch / c.panel_rows - 1) * c.panel_stride : 0;
                                return c.samples * n.N * c.head_stride + behind;
                              })},
                    DType::bf16, device)) {}

Tensor Scores::rows(const ScoreBlock& c, int64_t begin, int64_t count, int64_t column, int64_t columns) const {
  const int64_t head = c.head_stride, share = n_.N / n_.Nkv, offset = begin * c.pitch + column;
  if (!c.windows())
    return buffer_.view({c.samples, n_.Nkv, share, count, columns}, {n_.N * head, share * head, head, c.pitch, 1},
                        offset);
  return buffer_.view({c.samples, n_.Nkv, share, c.panels, count, columns},
                      {n_.N * head, share * head, head, c.panel_stride, c.pitch, 1}, offset);
}

void Scores::product(const ScoreBlock& c, const HeadRows& x, const HeadRows& z, double alpha) const {
  const auto multiply = [&](int64_t first, int64_t count, int64_t columns) {
    Tensor y = rows(c, first, count, 0, columns);
    matmul(x.of(c, n_, c.first_row + first, count), z.of(c, n_, c.first_key, columns).transposed(), alpha, 0, y);
  };
  if (c.windows()) return multiply(0, c.panel_rows, c.pitch);
  for (int p = 0; p < c.panels; ++p) multiply(int64_t{p} * c.panel_rows, c.rows_of(p), c.key_columns_of(p));
  const int64_t columns = c.key_columns_of(c.panels - 1);
  if (columns < c.pitch && c.first_key + columns == c.keys) rows(c, 0, c.rows, columns, c.pitch - columns).fill(0);
}

void Scores::times_keys(const ScoreBlock& c, const HeadRows& x, double alpha, const HeadRows& y) const {
  const auto multiply = [&](int64_t first, int64_t count, int64_t columns) {
    Tensor to = y.of(c, n_, c.first_row + first, count);
    matmul(rows(c, first, count, 0, columns), x.of(c, n_, c.first_key, columns), alpha, 0, to);
  };
  if (c.windows()) return multiply(0, c.panel_rows, c.pitch);
  for (int p = 0; p < c.panels; ++p) multiply(int64_t{p} * c.panel_rows, c.rows_of(p), c.key_columns_of(p));
}

void Scores::transposed_times(const ScoreBlock& c, const HeadRows& x, double alpha, bool accumulate,
                              const HeadRows& y) const {
  const auto multiply = [&](const Tensor& scores, const Tensor& from, const Tensor& all) {
    for (int64_t i = 0; i < n_.N / n_.Nkv; ++i) {
      Tensor to = all.sliced(2, 0, 1).squeezed(2);
      matmul(scores.transposed().sliced(2, i, i + 1).squeezed(2), from.sliced(2, i, i + 1).squeezed(2), alpha,
             accumulate || i > 0 ? 1 : 0, to);
    }
  };
  if (c.windows()) {  // the keys of a panel's tokens are columns of its rows and of those of the next panels
    multiply(rows(c, 0, c.pitch, c.pitch - c.panel_rows, c.panel_rows), x.of(c, n_, 0, c.pitch),
             y.of(c, n_, 0, c.panel_rows));
    return;
  }
  for (int p = 0, begin = 0; p < c.panels; ++p) {  // the columns that begin in panel p are of its rows and later ones
    const int end = c.key_columns_of(p), first = p * c.panel_rows;
    if (end <= begin) continue;
    multiply(rows(c, first, c.rows - first, begin, end - begin), x.of(c, n_, c.first_row + first, c.rows - first),
             y.of(c, n_, c.first_key + begin, end - begin));
    begin = end;
  }
}

void Scores::end_windows(const ScoreBlock& c) {
  if (!c.windows()) return;
  const int64_t behind = (c.pitch / c.panel_rows - 1) * int64_t{c.panel_stride};
  buffer_.view({behind}, {1}, c.samples * n_.N * c.head_stride).fill(0);
}

KeySum::KeySum(const std::vector<ScoreBlock>& blocks, Tensor& gradient, const Sizes& n) : n_(n), gradient_(gradient) {
  if (!gradient) return;
  direct_ = n.N == n.Nkv;
  for (const ScoreBlock& c : blocks) direct_ = direct_ && c.rows == c.queries;
  if (direct_) {
    result_ = HeadRowsResult(gradient, n, blocks[0]);
  } else {
    const int64_t rows = blocks[0].windows() ? window_rows(blocks[0]) : n.S;
    sum_ = empty({max_over(blocks, [](const ScoreBlock& c) { return c.samples; }), n.Nkv, rows, n.d}, DType::f32,
                 gradient.device());
  }
}

void KeySum::add(const ScoreBlock& c, const Scores& scores, const HeadRows& x, double alpha) {
  if (!gradient_) return;
  if (direct_) {
    const HeadRows& to = result_.rows();
    if (!c.windows() && c.first_key > 0) to.of(c, n_, 0, c.first_key).fill(0);
    if (!c.windows() && keys_end(c) < n_.S) to.of(c, n_, keys_end(c), n_.S - keys_end(c)).fill(0);
    return scores.transposed_times(c, x, alpha, false, to);
  }
  if (begins_samples(c)) sum_.fill(0);
  const Strides& s = sum_.strides();
  scores.transposed_times(c, x, alpha, true, {sum_, n_.Nkv, -c.first_sample * s[0], s[0], s[1], s[2]});
  if (!ends_samples(c)) return;
  gradient_.sliced(0, c.first_sample, c.first_sample + c.samples)
      .copy_(sum_.view({c.samples, n_.S, n_.Nkv, n_.d}, {s[0], s[2], s[1], 1}, 0));
}

void KeySum::finish() {
  if (gradient_ && direct_) result_.finish(n_);
}

}  // namespace braid::cuda::attention::tensor_core
