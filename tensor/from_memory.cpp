#include "braid/tensor/from_memory.h"

#include <cstring>

namespace braid {

namespace {

constexpr const char* kFromMemory = "from_memory";

// Calls the function when its last owner is gone.
struct Loan {
  Release release;
  ~Loan() {
    if (release) release();
  }
};

// The strides to use: those given, without those that are never followed.
Strides used_strides(const Shape& shape, const Strides& given, int64_t count) {
  Strides strides = contiguous_strides(shape);
  if (given.rank() == 0) return strides;
  check(given.rank() == shape.rank(), kFromMemory,
        [&] { return str("needs one stride per axis of ", shape, ", got ", given, "; none at all means contiguous"); });
  for (int a = 0; a < shape.rank() && count > 0; ++a) {
    if (shape[a] == 1) continue;
    check(given[a] >= 0, kFromMemory, [&] {
      return str("stride ", given[a], " of axis ", a, " is negative: expected 0 or more elements; pass the address of ",
                 "the lowest element and flip(x, ", a, "), or copy the memory into order");
    });
    strides[a] = given[a];
  }
  return strides;
}

// From the first byte of the first element to the last byte of the last.
int64_t bytes_spanned(const Shape& shape, const Strides& strides, DType dtype, int64_t count) {
  if (count == 0) return 0;
  int64_t last = 0, bytes = 0;
  bool overflow = false;
  for (int a = 0; a < shape.rank(); ++a) {
    int64_t step = 0;
    overflow = overflow || __builtin_mul_overflow(shape[a] - 1, shape[a] == 1 ? 0 : strides[a], &step) ||
               __builtin_add_overflow(last, step, &last);
  }
  overflow = overflow || last == INT64_MAX || __builtin_mul_overflow(last + 1, size_of(dtype), &bytes);
  check(!overflow && bytes <= INT64_MAX / 2, kFromMemory,
        [&] { return str(shape, " ", dtype, " with strides ", strides, " is larger than any memory"); });
  return bytes;
}

Tensor borrow(void* data, const Shape& shape, const Strides& given, DType dtype, Release&& release, Device device,
              bool writable) {
  check(device.kind != Device::Kind::meta, kFromMemory,
        "the device meta has no memory: expected cpu, or cuda for that of a GPU");
  const int64_t count = numel(shape);
  const Strides strides = used_strides(shape, given, count);
  const int64_t bytes = bytes_spanned(shape, strides, dtype, count);
  const auto address = reinterpret_cast<uintptr_t>(data);
  check(data || count == 0, kFromMemory,
        [&] { return str("a null pointer has no elements, and ", shape, " has ", count); });
  check(address % static_cast<uintptr_t>(size_of(dtype)) == 0, kFromMemory, [&] {
    return str("the address is no multiple of ", size_of(dtype), ", the size of an element of ", dtype,
               ": copy the bytes into a tensor of empty() instead");
  });
  check(address <= UINTPTR_MAX - static_cast<uintptr_t>(bytes), kFromMemory,
        [&] { return str(shape, " ", dtype, " with strides ", strides, " goes beyond the last address"); });
  const auto loan = std::make_shared<Loan>();
  Tensor x = detail::over(std::make_shared<Storage>(data, bytes, device, writable, loan), shape, strides, dtype);
  loan->release = std::move(release);  // last: what throws above calls nothing
  return x;
}

}  // namespace

Tensor from_memory(void* data, const Shape& shape, const Strides& strides, DType dtype, Release release,
                   Device device) {
  return borrow(data, shape, strides, dtype, std::move(release), device, true);
}

Tensor from_memory(const void* data, const Shape& shape, const Strides& strides, DType dtype, Release release,
                   Device device) {
  return borrow(const_cast<void*>(data), shape, strides, dtype, std::move(release), device, false);
}

Tensor detail::copy_of(const void* values, size_t count, const Shape& shape, DType dtype, Device device) {
  check(numel(shape) == static_cast<int64_t>(count), "from_span",
        [&] { return str(count, " values do not fill shape ", shape); });
  Tensor x = empty(shape, dtype);
  if (count > 0) std::memcpy(x.mutable_raw(), values, count * static_cast<size_t>(size_of(dtype)));
  return x.to(device);
}

void detail::check_span(const Tensor& x, const char* span) {
  check(x.device() == kCpu, span,
        [&] { return str("the tensor is on ", x.device(), ": expected the CPU; call to(x, kCpu) first"); });
  check(x.is_contiguous(), span, [&] {
    return str("the tensor ", x.shape(), " has strides ", x.strides(),
               ": expected its elements one after another; call contiguous(x) first");
  });
}

}  // namespace braid
