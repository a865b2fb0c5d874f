// A row of results is a sum of rows of the padded image, one for each element of the kernel, times that element. So
// that the rows lie in order where the stride is not 1, the columns of a padded row are sorted by their remainder:
// column stride n + phase lies at phase length + n.
#include "braid/tensor/cpu/convolution/depthwise.h"

#include <algorithm>
#include <array>
#include <type_traits>
#include <vector>

#include "braid/tensor/base/integers.h"
#include "braid/tensor/cpu/gemm/vector.h"
#include "braid/tensor/parallel.h"

namespace braid::cpu {

namespace {

template <class A>
constexpr int64_t kBlock = 2 * kWidth<A>;  // results computed at once

// An image of zeros in a buffer, a part of which is that of a channel.
template <class A>
class Padded {
 public:
  // top, left: zeros in front. Rows of `phases` parts of `length` columns each; what does not fit is left out.
  Padded(int64_t rows, int64_t phases, int64_t length, int64_t top, int64_t left)
      : rows_(rows),
        phases_(phases),
        length_(length),
        top_(top),
        left_(left),
        values_(zeros({rows * phases * length}, dtype_of<A>())) {}

  template <class T>
  const A* with(const T* image, int64_t rows, int64_t columns) {
    A* const to = values_.mutable_data<A>();
    for (int64_t i = 0; i < std::min(rows, rows_ - top_); ++i) {
      const T* const from = image + i * columns;
      A* const row = to + (i + top_) * stride();
      const auto sort = [&](auto phases) {
        for (int64_t phase = 0; phase < phases; ++phase) {
          const int64_t first = (phase + phases - left_ % phases) % phases, at = (left_ + first) / phases;
          const int64_t n = std::min((columns - first + phases - 1) / phases, length_ - at);
          A* const part = row + phase * length_ + at;
          for (int64_t j = 0; j < n; ++j) part[j] = A(from[first + j * phases]);
        }
      };
      // Steps that the compiler knows become vector loads.
      if (phases_ == 1)
        sort(std::integral_constant<int64_t, 1>());
      else if (phases_ == 2)
        sort(std::integral_constant<int64_t, 2>());
      else
        sort(phases_);
    }
    return to;
  }
  int64_t stride() const { return phases_ * length_; }

 private:
  int64_t rows_, phases_, length_, top_, left_;
  Tensor values_;
};

// Where an element of the kernel finds its row, from that of the result.
struct Tap {
  int64_t element, offset;
};

// y[j] = sum over taps, in their order, of weight[element] x[offset + j], for j in [0, Count kWidth).
template <int Count, class A>
void sum_taps_at(const std::vector<Tap>& taps, const A* weight, const A* x, A* y) {
  using V = Vector<A, kWidth<A>>;
  V sum[Count] = {};
  for (const Tap& t : taps) {
    const A w = weight[t.element];
    for (int i = 0; i < Count; ++i) sum[i] += w * load<V>(x + t.offset + i * kWidth<A>);
  }
  for (int i = 0; i < Count; ++i) store(y + i * kWidth<A>, sum[i]);
}

// The same for j in [0, n) and up to kBlock - 1 more. Four sums at a time hide the time that one addition takes.
template <class A>
void sum_taps(const std::vector<Tap>& taps, const A* weight, const A* x, int64_t n, A* y) {
  int64_t j = 0;
  for (; j + kBlock<A> < n; j += 2 * kBlock<A>) sum_taps_at<4>(taps, weight, x + j, y + j);
  if (j < n) sum_taps_at<2>(taps, weight, x + j, y + j);
}

// The first n elements of x, and zeros behind them, whatever is there.
template <class A>
Vector<A, kWidth<A>> first_elements(const A* x, int64_t n) {
  using V = Vector<A, kWidth<A>>;
  using Bits = std::conditional_t<sizeof(A) == 8, int64_t, int32_t>;
  using M = Vector<Bits, kWidth<A>>;
  static constexpr auto kOnes = [] {
    std::array<Bits, size_t{2} * kWidth<A>> ones{};
    std::fill_n(ones.begin(), kWidth<A>, Bits(-1));
    return ones;
  }();
  return reinterpret_cast<V>(load<M>(kOnes.data() + kWidth<A> - n) & load<M>(x));
}

// sums[t] += the sum over j in [0, n) of y[j] x[taps[t].offset + j], for `Count` taps, by lanes. Reads up to the next
// multiple of kWidth; y is 0 there.
template <class A, int Count>
void add_products(const Tap* taps, const A* x, const A* y, int64_t n, Vector<A, kWidth<A>>* sums) {
  using V = Vector<A, kWidth<A>>;
  V sum[Count];
  for (int t = 0; t < Count; ++t) sum[t] = sums[t];
  int64_t j = 0;
  for (; j + kWidth<A> <= n; j += kWidth<A>) {
    const V of_y = load<V>(y + j);
    for (int t = 0; t < Count; ++t) sum[t] += of_y * load<V>(x + taps[t].offset + j);
  }
  if (j < n) {
    const V of_y = load<V>(y + j);
    for (int t = 0; t < Count; ++t) sum[t] += of_y * first_elements(x + taps[t].offset + j, n - j);
  }
  for (int t = 0; t < Count; ++t) sums[t] = sum[t];
}

// The padded image, and where the windows' elements are from the window's row in it.
template <class A>
Padded<A> padded_image(const ConvolutionShape& s) {
  const ConvolutionAxis &r = s.rows, &c = s.columns;
  return {(r.count - 1) * r.stride + (r.kernel - 1) * r.dilation + 1, c.stride,
          detail::round_up(c.count, kBlock<A>) + (c.kernel - 1) * c.dilation / c.stride, r.before, c.before};
}
template <class A>
std::vector<Tap> taps_of_windows(const ConvolutionShape& s, const Padded<A>& image) {
  const ConvolutionAxis &r = s.rows, &c = s.columns;
  const int64_t length = image.stride() / c.stride;
  std::vector<Tap> taps;
  for (int64_t u = 0; u < r.kernel; ++u)
    for (int64_t v = 0; v < c.kernel; ++v) {
      const int64_t column = v * c.dilation;
      taps.push_back(
          {u * c.kernel + v, u * r.dilation * image.stride() + column % c.stride * length + column / c.stride});
    }
  return taps;
}

// The kernel of a channel in the type of sums.
template <class A, class T>
const A* widened(const T* kernel, int64_t n, std::vector<A>& to) {
  to.resize(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) to[static_cast<size_t>(i)] = A(kernel[i]);
  return to.data();
}

int64_t grain_of_images(const ConvolutionShape& s) { return grain_for(s.windows() * (s.window() / 4 + 4)); }

}  // namespace

void convolve_depthwise(In x, In weight, const ConvolutionShape& s, Out y) {
  visit_float(x.dtype(), "convolution", [&]<class T>() {
    using A = Accumulate<T>;
    const T *images = x.data<T>(), *kernels = weight.data<T>();
    T* const results = y.mutable_data<T>();
    parallel_for(x.dim(0) * s.groups, grain_of_images(s), [&](int64_t begin, int64_t end) {
      Padded<A> padded = padded_image<A>(s);
      const std::vector<Tap> taps = taps_of_windows(s, padded);
      std::vector<A> kernel, row(static_cast<size_t>(detail::round_up(s.columns.count, kBlock<A>)));
      for (int64_t i = begin; i < end; ++i) {
        const A* const image = padded.with(images + i * s.pixels(), s.rows.size, s.columns.size);
        const A* const w = widened(kernels + i % s.groups * s.window(), s.window(), kernel);
        for (int64_t r = 0; r < s.rows.count; ++r) {
          sum_taps(taps, w, image + r * s.rows.stride * padded.stride(), s.columns.count, row.data());
          T* const to = results + i * s.windows() + r * s.columns.count;
          for (int64_t j = 0; j < s.columns.count; ++j) to[j] = T(row[static_cast<size_t>(j)]);
        }
      }
    });
  });
}

// Pixel (stride m + p, stride n + q) of the padded image is in window (m - a, n - b) as element (u, v), where
// u dilation = stride a + p and v dilation = stride b + q. So each remainder (p, q) has its taps, in an image of dy.
void input_gradient_depthwise(In dy, In weight, const ConvolutionShape& s, Out dx) {
  const ConvolutionAxis &r = s.rows, &c = s.columns;
  const int64_t top = (r.kernel - 1) * r.dilation / r.stride, left = (c.kernel - 1) * c.dilation / c.stride;
  const int64_t last_row = (r.before + r.size - 1) / r.stride, last_column = (c.before + c.size - 1) / c.stride;
  visit_float(dy.dtype(), "convolution", [&]<class T>() {
    using A = Accumulate<T>;
    const T *gradients = dy.data<T>(), *kernels = weight.data<T>();
    T* const results = dx.mutable_data<T>();
    parallel_for(dy.dim(0) * s.groups, grain_of_images(s), [&](int64_t begin, int64_t end) {
      const int64_t width = last_column + 1;
      Padded<A> padded(top + last_row + 1, 1, left + detail::round_up(width, kBlock<A>), top, left);
      std::vector<std::vector<Tap>> taps(static_cast<size_t>(r.stride * c.stride));
      for (int64_t u = 0; u < r.kernel; ++u)
        for (int64_t v = 0; v < c.kernel; ++v) {
          const int64_t row = u * r.dilation, column = v * c.dilation;
          taps[static_cast<size_t>(row % r.stride * c.stride + column % c.stride)].push_back(
              {u * c.kernel + v, (top - row / r.stride) * padded.stride() + left - column / c.stride});
        }
      std::vector<A> kernel, sums(static_cast<size_t>(detail::round_up(width, kBlock<A>)));
      for (int64_t i = begin; i < end; ++i) {
        const A* const image = padded.with(gradients + i * s.windows(), r.count, c.count);
        const A* const w = widened(kernels + i % s.groups * s.window(), s.window(), kernel);
        for (int64_t row = 0; row < r.size; ++row) {
          const int64_t at = row + r.before;
          T* const to = results + i * s.pixels() + row * c.size;
          for (int64_t phase = 0; phase < c.stride; ++phase) {
            sum_taps(taps[static_cast<size_t>(at % r.stride * c.stride + phase)], w,
                     image + at / r.stride * padded.stride(), width, sums.data());
            // The first column of this phase that is not padding.
            const int64_t n = detail::ceil_div(std::max<int64_t>(c.before - phase, 0), c.stride);
            const A* from = sums.data() + n;
            for (int64_t column = n * c.stride + phase - c.before; column < c.size; column += c.stride)
              to[column] = T(*from++);
          }
        }
      }
    });
  });
}

// Pieces are a channel of some images; their sums are added in order.
void weight_gradient_depthwise(In dy, In x, const ConvolutionShape& s, Out dweight) {
  const int64_t images = x.dim(0), pieces = std::min(detail::ceil_div(int64_t{16}, s.groups), images);
  const int64_t of_piece = detail::ceil_div(images, pieces), size = s.window();
  visit_float(dy.dtype(), "convolution", [&]<class T>() {
    using A = Accumulate<T>;
    using V = Vector<A, kWidth<A>>;
    const T *gradients = dy.data<T>(), *values = x.data<T>();
    Tensor sums = empty({pieces, s.groups, size}, dtype_of<A>());
    A* const parts = sums.mutable_data<A>();
    const int64_t grain = std::max<int64_t>(grain_of_images(s) / of_piece, 1);
    parallel_for(pieces * s.groups, grain, [&](int64_t begin, int64_t end) {
      Padded<A> padded = padded_image<A>(s);
      const std::vector<Tap> taps = taps_of_windows(s, padded);
      Padded<A> padded_dy(s.rows.count, 1, detail::round_up(s.columns.count, int64_t{kWidth<A>}), 0, 0);
      Tensor lanes = empty({size * kWidth<A>}, dtype_of<A>());
      V* const sum = reinterpret_cast<V*>(lanes.mutable_data<A>());
      for (int64_t i = begin; i < end; ++i) {
        const int64_t channel = i % s.groups, first = i / s.groups * of_piece;
        std::fill_n(sum, size, V{});
        for (int64_t b = first; b < std::min(images, first + of_piece); ++b) {
          const int64_t plane = b * s.groups + channel;
          const A* const image = padded.with(values + plane * s.pixels(), s.rows.size, s.columns.size);
          const A* const g = padded_dy.with(gradients + plane * s.windows(), s.rows.count, s.columns.count);
          for (int64_t t = 0; t < size;) {
            const int64_t count = size - t >= 8 ? 8 : size - t >= 4 ? 4 : 1;
            const auto add = count == 8 ? add_products<A, 8> : count == 4 ? add_products<A, 4> : add_products<A, 1>;
            for (int64_t row = 0; row < s.rows.count; ++row)
              add(taps.data() + t, image + row * s.rows.stride * padded.stride(), g + row * padded_dy.stride(),
                  s.columns.count, sum + t);
            t += count;
          }
        }
        for (int64_t t = 0; t < size; ++t) {
          A all = 0;
          for (int l = 0; l < kWidth<A>; ++l) all += sum[t][l];
          parts[i * size + t] = all;
        }
      }
    });
    T* const out = dweight.mutable_data<T>();
    for (int64_t i = 0; i < s.groups * size; ++i) {
      A all = 0;
      for (int64_t piece = 0; piece < pieces; ++piece) all += parts[piece * s.groups * size + i];
      out[i] = T(all);
    }
  });
}

}  // namespace braid::cpu
