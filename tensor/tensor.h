// Tensor: a handle on a buffer with a shape, strides and, when it requires a gradient, a history.
//
// Copying a Tensor copies the handle; clone() copies the data. The members here are raw: their results share memory or
// copy it, and have no history. The recorded, differentiable operations are the free functions of autograd/ops.h. So
// that no gradient is lost by accident, a raw member that returns a tensor throws when this one requires a gradient and
// recording is on, even if it had nothing to do; the message names the recorded op. detach() is the way out.
//
// A const Tensor is a const handle, as a const pointer is: views of it can still be written.
#pragma once
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "braid/tensor/device.h"
#include "braid/tensor/dtype.h"
#include "braid/tensor/error.h"
#include "braid/tensor/shape.h"
#include "braid/tensor/storage.h"

namespace braid {

struct Node;  // history, defined by autograd/
class Tensor;
namespace detail {
Tensor over(std::shared_ptr<Storage> storage, const Shape& shape, const Strides& strides, DType dtype);
}

class Tensor {
 public:
  Tensor() = default;  // the empty handle: no shape, no data; tests false
  explicit operator bool() const { return impl_ != nullptr; }

  const Shape& shape() const { return impl().shape; }
  const Strides& strides() const { return impl().strides; }
  int rank() const { return impl().shape.rank(); }
  int64_t dim(int axis) const { return impl().shape[axis]; }
  int64_t numel() const { return braid::numel(impl().shape); }
  DType dtype() const { return impl().dtype; }
  Device device() const { return impl().storage->device(); }
  bool is_contiguous() const;

  // First element of the view. T must be the element type; the data must be on the CPU to be dereferenced. A call of
  // mutable_data or mutable_raw is an in-place write (see copy_): take the pointer anew for each write.
  template <class T>
  const T* data() const {
    check_type(dtype_of<T>());
    return reinterpret_cast<const T*>(impl_->storage->data()) + impl_->offset;
  }
  template <class T>
  T* mutable_data() {
    check_type(dtype_of<T>());
    begin_write("mutable_data");
    return reinterpret_cast<T*>(impl_->storage->data()) + impl_->offset;
  }
  const void* raw() const;  // first element of the view, untyped
  void* mutable_raw();

  // The value of a tensor with one element, as f64 (waits for the device).
  double item() const;
  // All elements in row-major order, converted to T (waits for the device).
  template <class T>
  std::vector<T> to_vector() const;

  // The same elements without history.
  Tensor detach() const;

  // Raw views of the same buffer, in which all their elements lie.
  Tensor view(const Shape& shape, const Strides& strides, int64_t offset) const;  // offset relative to this view
  Tensor reshaped(const Shape& shape) const;  // one size may be -1; needs a contiguous tensor
  Tensor transposed(int axis0 = -2, int axis1 = -1) const;
  Tensor permuted(Axes axes) const;
  Tensor sliced(int axis, int64_t begin, int64_t end) const;
  Tensor expanded(const Shape& shape) const;  // stride 0 along repeated axes
  Tensor squeezed(int axis) const;
  Tensor unsqueezed(int axis) const;

  // Raw copies.
  Tensor clone() const;            // contiguous
  Tensor contiguous() const;       // *this, or a copy when strided
  Tensor to(DType dtype) const;    // *this when it has the type already
  Tensor to(Device device) const;  // *this when it is there already

  // In-place writes, for optimizers, caches and gradient accumulation. They throw on the result of a recorded op; what
  // they write to a leaf between an op that saved it and the backward pass makes that pass throw. They also throw where
  // the result would depend on the order of the elements: when this view holds an element twice (expanded), or shares
  // elements with a source of another layout (a slice moved by one). The very same view as source is fine.
  void copy_(const Tensor& source);  // shapes equal, any dtype
  void add_(const Tensor& source);   // this += source; shapes and dtypes equal
  void fill(double value);

  const Storage& storage() const { return *impl().storage; }  // the buffer, also of a view
  Storage& storage() { return *impl().storage; }

  // For autograd/ only.
  std::shared_ptr<const Storage> shared_storage() const { return impl().storage; }
  const std::shared_ptr<Node>& node() const;
  void set_node(std::shared_ptr<Node> node, bool has_history);
  bool shares_storage(const Tensor& other) const { return impl_->storage == other.impl_->storage; }
  bool has_history() const { return impl().has_history; }
  bool unique_storage() const;                    // nothing else sees this buffer: no handle, no owner of its memory
  const void* id() const { return impl_.get(); }  // equal for copies of one handle, as tied parameters are

 private:
  struct Impl {
    std::shared_ptr<Storage> storage;
    Shape shape;
    Strides strides;
    int64_t offset = 0;
    DType dtype = DType::f32;
    std::shared_ptr<Node> node;  // null: requires no gradient
    bool has_history = false;    // made by a recorded op, so that writing in place would break its derivative
  };
  friend Tensor detail::over(std::shared_ptr<Storage>, const Shape&, const Strides&, DType);
  const Impl& impl() const {
    if (!impl_) [[unlikely]]
      empty_handle();
    return *impl_;
  }
  [[noreturn]] static void empty_handle();
  void check_type(DType expected) const;
  void check_raw(const char* member, const char* recorded) const;
  void begin_write(const char* member);  // checks and counts a write in place
  void check_order_free(const char* member, const Tensor* source) const;
  Tensor raw_view(const Shape& shape, const Strides& strides, int64_t offset) const;

  std::shared_ptr<Impl> impl_;
};

Tensor empty(const Shape& shape, DType dtype = DType::f32, Device device = kCpu);               // contents undefined
Tensor empty_like(const Tensor& x);                                                             // contiguous
Tensor full(const Shape& shape, double value, DType dtype = DType::f32, Device device = kCpu);  // a number of the type
Tensor zeros(const Shape& shape, DType dtype = DType::f32, Device device = kCpu);
Tensor zeros_like(const Tensor& x);
Tensor arange(int64_t n, DType dtype = DType::i64, Device device = kCpu);  // 0, 1, ..., n-1; n >= 0

// A tensor with these values in row-major order: a copy. from_memory.h has tensors that share memory.
template <class T>
Tensor from_vector(const std::vector<T>& values, const Shape& shape, Device device = kCpu);
inline Tensor from_values(std::initializer_list<double> values, const Shape& shape, DType dtype = DType::f32) {
  return from_vector(std::vector<double>(values), shape).to(dtype);
}

// A tensor with the name it has in its module and in files.
struct NamedTensor {
  NamedTensor() = default;
  NamedTensor(std::string n, Tensor x) : name(std::move(n)), value(std::move(x)) {}
  std::string name;
  Tensor value;
};

}  // namespace braid
