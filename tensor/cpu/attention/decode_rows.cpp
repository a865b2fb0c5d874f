// Cuts the rows into tasks: some rows that share their keys x a group of heads x a segment of the keys.
//
// Same bits in any company: a segment ends at fixed positions, so how a row is cut follows from its own keys; what it
// computes for a key depends on nothing else in the task (decode.h); and its segments are joined in ascending order.
// How many rows are in a call or a task, how many threads there are and where the blocks lie changes no bit.
#include "braid/tensor/cpu/attention/decode_rows.h"

#include <algorithm>
#include <array>
#include <vector>

#include "braid/tensor/cpu/attention/packing.h"
#include "braid/tensor/cpu/attention/variants.h"

namespace braid::cpu::attention {
namespace {

constexpr int64_t kScoreBytes = 4l << 20;  // of scores that a thread holds at a time; no result depends on it

// One query row and the positions of its keys.
struct Row {
  int64_t b, t, first, last;
  const int32_t* blocks;
  // Key vectors and segments of the rows before it in the same pass, which is where its own begin.
  int64_t vectors_before = 0, segments_before = 0;

  bool empty() const { return first >= last; }
  int64_t vectors(int64_t W) const { return empty() ? 0 : detail::ceil_div(last, W) - first / W; }
  int64_t first_segment() const { return first / kDecodeSegment; }
  int64_t segments() const { return empty() ? 0 : detail::ceil_div(last, kDecodeSegment) - first_segment(); }
  bool shares_keys_with(const Row& other) const { return b == other.b && blocks == other.blocks; }
};

// Rows [begin, end) x a group of heads x a segment.
struct Piece {
  size_t begin, end;
  int64_t g, segment;
};

template <class T>
class Decoding : Packing<T> {
  using Packing<T>::p_, Packing<T>::W_;

 public:
  Decoding(const DcmhaInputs& x, std::vector<Row> rows, int64_t block)
      : Decoding(x, std::move(rows), block, kernels_in_use<T>()) {}
  Decoding(const DcmhaInputs& x, std::vector<Row> rows, int64_t block, const Kernels<T>& code)
      : Packing<T>(x, code.lanes), code_(code), rows_(std::move(rows)), block_(block) {
    if (p_.plain()) p_.G = 1, p_.M = p_.N;  // heads side by side; nothing mixes them
    heads_ = detail::round_up(p_.M, W_);
  }

  void run(Out y) {
    y_ = mutable_rows_of<T>(y);
    const int64_t vector_bytes = p_.N * W_ * int64_t{sizeof(T)}, max_bytes = kScoreBytes * threads();
    for (size_t begin = 0, end; begin < rows_.size(); begin = end) {
      int64_t vectors = 0;
      for (end = begin; end < rows_.size(); ++end) {
        const int64_t more = rows_[end].vectors(W_);
        if (end - begin >= size_t{kDecodeRows} && (vectors + more) * vector_bytes > max_bytes) break;
        vectors += more;
      }
      pass(begin, end);
    }
  }

 private:
  // The rows [begin, end), whose scores are held at a time.
  void pass(size_t begin, size_t end) {
    int64_t vectors = 0, segments = 0;
    for (size_t i = begin; i < end; ++i) {
      rows_[i].vectors_before = vectors, rows_[i].segments_before = segments;
      vectors += rows_[i].vectors(W_), segments += rows_[i].segments();
    }
    const std::vector<Piece> pieces = cut(begin, end);
    const int64_t workers =
        std::min<int64_t>(threads(), detail::ceil_div(std::ssize(pieces), grain_for(kDecodeSegment * p_.M * p_.d)));
    const auto memory = [](int64_t n) { return empty({n}, dtype_of<T>()); };
    const auto bytes = static_cast<int64_t>(code_.decode_bytes(p_));
    Tensor e = memory(vectors * p_.N * W_), statistics = memory(segments * p_.G * 2 * heads_),
           partial = memory(segments * p_.N * p_.d_padded), workspaces = empty({workers * bytes}, DType::u8);
    e_ = e.mutable_data<T>(), statistics_ = statistics.mutable_data<T>(), partial_ = partial.mutable_data<T>();
    uint8_t* const workspace = workspaces.mutable_data<uint8_t>();

    const auto each_piece = [&](auto&& kernel) {
      parallel_tasks(std::ssize(pieces), workers, [&](int64_t i, int64_t worker) {
        run_piece(pieces[static_cast<size_t>(i)], workspace + worker * bytes, kernel);
      });
    };
    each_piece(code_.decode_scores);
    const auto each_row = [&](auto&& body) {
      parallel_for(static_cast<int64_t>(end - begin) * p_.G, grain_for(p_.M * p_.d), [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) body(rows_[begin + static_cast<size_t>(i / p_.G)], i % p_.G);
      });
    };
    each_row([&](const Row& row, int64_t g) { find_factors(row, g); });
    each_piece(code_.decode_values);
    each_row([&](const Row& row, int64_t g) { join(row, g); });
  }

  // The rows of a piece leave no gap between their keys: a task reads the places of all keys from the first to the
  // last.
  std::vector<Piece> cut(size_t begin, size_t end) const {
    std::vector<Piece> pieces;
    for (size_t first = begin, last; first < end; first = last) {
      int64_t from = 0, to = 0;  // keys
      for (last = first; last < end && last - first < size_t{kDecodeRows}; ++last) {
        const Row& row = rows_[last];
        if (!row.shares_keys_with(rows_[first])) break;
        if (row.empty()) continue;
        if (from == to) from = row.first, to = row.last;
        if (row.first > to || row.last < from) break;
        from = std::min(from, row.first), to = std::max(to, row.last);
      }
      const int64_t segments = detail::ceil_div(to, kDecodeSegment);
      for (int64_t segment = from / kDecodeSegment; segment < segments; ++segment)
        for (int64_t g = 0; g < p_.G; ++g) pieces.push_back({first, last, g, segment});
    }
    return pieces;
  }

  // The part of a row in a segment of its own keys.
  int64_t index(const Row& row, int64_t g, int64_t segment) const {
    return row.segments_before * p_.G + g * row.segments() + segment - row.first_segment();
  }
  T* statistics(const Row& row, int64_t g, int64_t segment) const {  // [top, sum][M']
    return statistics_ + index(row, g, segment) * 2 * heads_;
  }
  T* partial(const Row& row, int64_t g, int64_t segment) const {  // [M][d_padded]
    return partial_ + index(row, g, segment) * p_.M * p_.d_padded;
  }

  template <class Kernel>
  void run_piece(const Piece& piece, void* workspace, Kernel&& kernel) const {
    std::array<RowSegment<T>, kDecodeRows> segments;
    const int64_t begin = piece.segment * kDecodeSegment, end = begin + kDecodeSegment;
    const Row& one = rows_[piece.begin];
    DecodeTask<T> task{.b = one.b,
                       .g = piece.g,
                       .first = end,
                       .last = begin,
                       .blocks = one.blocks,
                       .block = block_,
                       .rows = segments.data(),
                       .count = 0};
    for (size_t i = piece.begin; i < piece.end; ++i) {
      const Row& row = rows_[i];
      const int64_t first = std::max(begin, row.first), last = std::min(end, row.last);
      if (first >= last) continue;
      T* own = statistics(row, piece.g, piece.segment);
      segments[static_cast<size_t>(task.count++)] = {
          .row = row.t,
          .first = first,
          .last = last,
          .e = e_ + (row.vectors_before * p_.G + piece.g * row.vectors(W_) + first / W_ - row.first / W_) * p_.M * W_,
          .top = own,
          .sum = own + heads_,
          .y = partial(row, piece.g, piece.segment)};
      task.first = std::min(task.first, first), task.last = std::max(task.last, last);
    }
    if (task.count > 0) kernel(p_, task, workspace);
  }

  void find_factors(const Row& row, int64_t g) const {
    if (row.empty()) return;
    T* own = statistics(row, g, row.first_segment());
    code_.decode_join(own, own + heads_, heads_, 2 * heads_, row.segments());
  }

  void join(const Row& row, int64_t g) const {
    const int64_t from = row.first_segment(), to = from + row.segments();
    std::vector<T> y(static_cast<size_t>(p_.d));
    for (int64_t m = 0; m < p_.M; ++m) {
      std::fill(y.begin(), y.end(), T(0));
      for (int64_t s = from; s < to; ++s) {
        const T* part = partial(row, g, s) + m * p_.d_padded;
        for (size_t j = 0; j < y.size(); ++j) y[j] += part[j];
      }
      const int64_t at = row.b * y_.stride[0] + row.t * y_.stride[1] + (g * p_.M + m) * y_.stride[2];
      write_row<T>(y_, at, p_.d, y.data());
    }
  }

  const Kernels<T>& code_;
  std::vector<Row> rows_;
  int64_t block_, heads_ = 0;  // M'
  OutputRows y_;
  T *e_ = nullptr, *statistics_ = nullptr, *partial_ = nullptr;  // of the pass
};

void run(const DcmhaInputs& x, std::vector<Row> rows, int64_t block, Out y) {
  if (x.q.dtype() == DType::f64) return Decoding<double>(x, std::move(rows), block).run(y);
  Decoding<float>(x, std::move(rows), block).run(y);
}

}  // namespace

void decode(const DcmhaInputs& x, Out y) {
  std::vector<Row> rows;
  for (int64_t b = 0; b < x.q.dim(0); ++b)
    for (int64_t t = 0; t < x.q.dim(1); ++t)
      rows.push_back({b, t, x.mask.first(t), x.mask.end(t, x.k.dim(1)), nullptr});
  run(x, std::move(rows), 0, y);
}

void paged_attention(const DcmhaInputs& x, const PagedRows& paged, Out y) {
  std::vector<Row> rows;
  for (const PagedRow& row : paged.rows)
    rows.push_back({0, static_cast<int64_t>(rows.size()), row.first, row.end, row.blocks.data()});
  run(x, std::move(rows), paged.block, y);
}

}  // namespace braid::cpu::attention
