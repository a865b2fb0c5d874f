#include "braid/tensor/cpu/loops.h"

#include <cstring>

#include "braid/tensor/convert.h"
#include "braid/tensor/cpu/map.h"

namespace braid::cpu {

StridedView::StridedView(const Tensor& x) : data(static_cast<const std::byte*>(x.raw())), dtype(x.dtype()) {
  const bool empty = x.numel() == 0;  // nothing to merge: a product of its other sizes may be too large
  for (int a = 0; a < x.rank() && !empty; ++a) {
    int64_t n = x.dim(a), step = x.strides()[a];
    if (n == 1) continue;
    if (rank > 0 && stride[rank - 1] == n * step) {
      size[rank - 1] *= n;
      stride[rank - 1] = step;
    } else {
      size[rank] = n;
      stride[rank++] = step;
    }
  }
  if (rank == 0) {
    size[0] = 1;
    stride[rank++] = 1;
  }
}

Tensor make_contiguous_if_far(const Tensor& x) {
  StridedView view(x);
  bool far = view.stride[view.rank - 1] > 16 && x.numel() > 16384;
  return far ? x.clone() : x;
}

Rows::Rows(const Tensor& x, const Tensor& y, const Tensor& z) {
  const Tensor* all[] = {&x, &y, &z};
  for (int a = 0; a < z.rank(); ++a) {
    const int64_t n = z.dim(a);
    if (n == 1) continue;
    bool merges = count > 0;
    for (int k = 0; k < 3 && merges; ++k) merges = axes[count - 1].stride[k] == n * all[k]->strides()[a];
    Axis<3>& axis = merges ? axes[count - 1] : axes[count++];
    axis.size = merges ? axis.size * n : n;
    for (int k = 0; k < 3; ++k) axis.stride[k] = all[k]->strides()[a];
  }
  if (count > 0) row = axes[--count];
}

namespace {

template <class To, class From>
void convert_contiguous(int64_t n, const From* from, To* to) {
  if constexpr (std::is_same_v<To, From>) {
    std::memcpy(to, from, static_cast<size_t>(n) * sizeof(To));
    return;
  }
  if constexpr (std::is_same_v<From, float> && !std::is_integral_v<To> && sizeof(To) == 2)
    return map(n, to, inputs(from), [](float x) { return x; });
  if constexpr (!std::is_integral_v<From> && sizeof(From) == 2 && std::is_same_v<To, float>) return widen(n, from, to);
  for (int64_t i = 0; i < n; ++i) to[i] = convert<To>(from[i]);
}

// Calls run(element offset, stride, position, length) for each segment of [i, i + n) along x's last axis.
template <class Run>
void for_segments(const StridedView& x, int64_t i, int64_t n, Run&& run) {
  int64_t at[Shape::max_rank], offset = 0;
  int last = x.rank - 1;
  for (int a = last; a > 0; --a) {
    at[a] = i % x.size[a];
    i /= x.size[a];
    offset += at[a] * x.stride[a];
  }
  at[0] = i;
  offset += i * x.stride[0];
  for (int64_t done = 0;;) {
    int64_t length = x.size[last] - at[last] < n - done ? x.size[last] - at[last] : n - done;
    run(offset, x.stride[last], done, length);
    done += length;
    if (done == n) return;
    offset += length * x.stride[last];
    at[last] += length;
    for (int a = last; a > 0 && at[a] == x.size[a]; --a) {  // carry
      offset += x.stride[a - 1] - x.size[a] * x.stride[a];
      at[a] = 0;
      ++at[a - 1];
    }
  }
}

// Offset of elements [i, i + n) where they are contiguous, otherwise -1.
int64_t contiguous_offset(const StridedView& x, int64_t i, int64_t n) {
  int last = x.rank - 1;
  if (x.stride[last] != 1 && n > 1) return -1;
  if (last == 0) return i * x.stride[0];
  if (i % x.size[last] + n > x.size[last]) return -1;
  int64_t offset = 0;
  for_segments(x, i, n, [&](int64_t o, int64_t, int64_t, int64_t) { offset = o; });
  return offset;
}

template <class T, class A>
void load_as(const StridedView& x, int64_t i, int64_t n, A* buffer) {
  const T* data = reinterpret_cast<const T*>(x.data);
  for_segments(x, i, n, [&](int64_t offset, int64_t stride, int64_t position, int64_t length) {
    const T* from = data + offset;
    A* to = buffer + position;
    if (stride == 1) {
      convert_contiguous(length, from, to);
    } else if (stride == 0) {
      A value = convert<A>(*from);
      for (int64_t j = 0; j < length; ++j) to[j] = value;
    } else {
      for (int64_t j = 0; j < length; ++j) to[j] = convert<A>(from[j * stride]);
    }
  });
}

template <class T, class A>
void store_as(const StridedView& y, int64_t i, int64_t n, const A* values) {
  T* data = reinterpret_cast<T*>(const_cast<std::byte*>(y.data));
  for_segments(y, i, n, [&](int64_t offset, int64_t stride, int64_t position, int64_t length) {
    T* to = data + offset;
    const A* from = values + position;
    if (stride == 1) {
      convert_contiguous(length, from, to);
    } else {
      for (int64_t j = 0; j < length; ++j) to[j * stride] = convert<T>(from[j]);
    }
  });
}

}  // namespace

template <class A>
const A* load(const StridedView& x, int64_t i, int64_t n, A* buffer) {
  if (x.dtype == dtype_of<A>()) {
    int64_t offset = contiguous_offset(x, i, n);
    if (offset >= 0) return reinterpret_cast<const A*>(x.data) + offset;
  }
  if constexpr (sizeof(A) == 2)
    load_as<A>(x, i, n, buffer);
  else
    visit_any(x.dtype, [&]<class T>() { load_as<T>(x, i, n, buffer); });
  return buffer;
}

template <class A>
A* output_block(const StridedView& y, int64_t i, int64_t n, A* buffer) {
  int64_t offset = y.dtype == dtype_of<A>() ? contiguous_offset(y, i, n) : -1;
  return offset >= 0 ? reinterpret_cast<A*>(const_cast<std::byte*>(y.data)) + offset : buffer;
}

template <class A>
void store(const StridedView& y, int64_t i, int64_t n, const A* values) {
  if (y.dtype == dtype_of<A>() && contiguous_offset(y, i, n) >= 0) return;
  if constexpr (sizeof(A) == 2)
    store_as<A>(y, i, n, values);
  else
    visit_any(y.dtype, [&]<class T>() { store_as<T>(y, i, n, values); });
}

#define BRAID_INSTANTIATE(A)                                          \
  template const A* load(const StridedView&, int64_t, int64_t, A*);   \
  template A* output_block(const StridedView&, int64_t, int64_t, A*); \
  template void store(const StridedView&, int64_t, int64_t, const A*);
BRAID_INSTANTIATE(float)
BRAID_INSTANTIATE(double)
BRAID_INSTANTIATE(bfloat16)
BRAID_INSTANTIATE(float16)
BRAID_INSTANTIATE(int64_t)
#undef BRAID_INSTANTIATE

}  // namespace braid::cpu
