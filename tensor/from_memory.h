// Host memory in and out without a copy: tensors over memory that others own, and spans over the elements of tensors.
//
//   std::vector<float> samples(600);
//   Tensor x = from_memory(samples.data(), {200, 3});          // writing to x writes to samples
//   auto owner = std::make_shared<std::vector<float>>(...);    // x keeps it alive
//   Tensor y = from_memory(owner->data(), {200, 3}, [owner] {});
//   for (float value : as_span<float>(y)) ...
//
// Such a tensor is a leaf like any other; views, derivatives and optimizers work on it. Two things are the owner's to
// know: backward() does not notice what the owner writes through its own pointer, and memory statistics do not count
// the memory.
#pragma once
#include <functional>
#include <span>
#include <type_traits>

#include "braid/tensor/tensor.h"

namespace braid {

// Called exactly once, by the thread that drops the last tensor or view over the memory; must not throw. The memory
// must stay valid until then. Where from_memory() throws it is not called, and the memory is as before the call.
using Release = std::function<void()>;

// A tensor over `data`, the address of its first element. Strides are in elements: 0 repeats an element, empty means
// contiguous (row-major). The address must be a multiple of the size of an element and needs no other alignment. Errors
// (misuse): an element that cannot be addressed, a negative stride, a null pointer where there are elements.
// device: where the memory is; that of a GPU must be ready for reading.
Tensor from_memory(void* data, const Shape& shape, const Strides& strides, DType dtype, Release release = {},
                   Device device = kCpu);
// Memory that may only be read: writing to the tensor in place throws.
Tensor from_memory(const void* data, const Shape& shape, const Strides& strides, DType dtype, Release release = {},
                   Device device = kCpu);

// Contiguous memory of a type that is known here; only for reading where T is const.
template <class T>
Tensor from_memory(T* data, const Shape& shape, Release release = {}) {
  return from_memory(data, shape, Strides{}, dtype_of<std::remove_const_t<T>>(), std::move(release));
}

namespace detail {
Tensor copy_of(const void* values, size_t count, const Shape& shape, DType dtype, Device device);
void check_span(const Tensor& x, const char* op);
}  // namespace detail

// A copy of these values in row-major order; from_vector() for anything that is contiguous.
template <class T, size_t Extent>
Tensor from_span(std::span<T, Extent> values, const Shape& shape, Device device = kCpu) {
  return detail::copy_of(values.data(), values.size(), shape, dtype_of<std::remove_const_t<T>>(), device);
}

// The elements of a contiguous tensor on the CPU in row-major order, valid while the tensor or a view of it lives. T
// must be its element type. A call of as_mutable_span is an in-place write, as of mutable_data().
template <class T>
std::span<const T> as_span(const Tensor& x) {
  detail::check_span(x, "as_span");
  return {x.data<T>(), static_cast<size_t>(x.numel())};
}
template <class T>
std::span<T> as_mutable_span(Tensor& x) {
  detail::check_span(x, "as_mutable_span");
  return {x.mutable_data<T>(), static_cast<size_t>(x.numel())};
}
template <class T>
std::span<const T> as_span(const Tensor&& x) = delete;  // the elements would be gone at the end of the statement

}  // namespace braid
