#include "braid/tensor/tensor.h"

#include <cmath>
#include <cstring>
#include <numeric>

#include "braid/tensor/base/overlap.h"
#include "braid/tensor/base/recording.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/kernels/backend.h"
#include "braid/tensor/kernels/pointwise_ops.h"

namespace braid {

constinit thread_local bool detail::recording = true;

bool Tensor::is_contiguous() const {
  if (numel() == 0) return true;  // the other sizes may be too large for a product
  int64_t step = 1;
  for (int i = rank() - 1; i >= 0; --i) {
    if (dim(i) != 1 && strides()[i] != step) return false;
    step *= dim(i);
  }
  return true;
}

namespace {

std::string no_view(const Shape& shape, const Shape& target) {
  return str("cannot view ", shape, " as ", target, ": there are ", numel(shape), " elements");
}

// Whether all elements of a view, whose first is number begin + offset, are below `elements`. No size is 0.
bool lies_within(const Shape& shape, const Strides& strides, int64_t begin, int64_t offset, int64_t elements) {
  int64_t first = 0, reach = 0;
  bool overflow = __builtin_add_overflow(begin, offset, &first);
  int64_t last = first;
  for (int a = 0; a < shape.rank() && !overflow; ++a) {
    overflow = __builtin_mul_overflow(shape[a] - 1, strides[a], &reach);
    int64_t& end = reach < 0 ? first : last;
    overflow = overflow || __builtin_add_overflow(end, reach, &end);
  }
  return !overflow && first >= 0 && last < elements;
}

// Integer types have the integers within their range.
void check_number(const char* op, double value, DType dtype) {
  const double bits = dtype == DType::i64 ? 0x1p63 : 0x1p31;
  const bool fits = dtype == DType::u8 ? value >= 0 && value < 256 : value >= -bits && value < bits;
  check(is_float(dtype) || (fits && value == std::floor(value)), op, [&] {
    return str(detail::shortest(value), " is not a number of ", dtype, "; give one that is, or another type");
  });
}

}  // namespace

void Tensor::empty_handle() {
  fail("tensor",
       "an empty Tensor handle was used, made without a value or moved from: give it one, such as zeros(shape)");
}

void Tensor::check_type(DType expected) const {
  check(impl().dtype == expected, "data", [&] {
    return str("the tensor holds ", impl_->dtype, ", not ", expected, "; cast() it, or read it by to_vector()");
  });
}

void Tensor::check_raw(const char* member, const char* recorded) const {
  check(!impl().node || !detail::recording, member, [&] {
    return str("is not recorded and would drop the gradient of this tensor, ", dtype(), " ", shape(), "; call ",
               recorded, ", or x.detach().", member, "(...) to leave the graph");
  });
}

void Tensor::begin_write(const char* member) {
  check(!has_history(), member,
        "writing in place to the result of a recorded op would make its derivative wrong; use a recorded op "
        "instead, or write to x.detach().clone()");
  impl_->storage->count_write(member);
}

void Tensor::check_order_free(const char* member, const Tensor* source) const {
  const detail::Footprint to{shape(), strides(), impl_->offset};
  check(!detail::repeats(to), member, [&] {
    return str("cannot write to the view ", shape(), " with strides ", strides(),
               ": several of its indices are one element in memory; write to the tensor it was expanded from, or to a "
               "clone()");
  });
  if (!source || !shares_storage(*source)) return;
  const detail::Footprint from{source->shape(), source->strides(), source->impl_->offset};
  check(detail::same_elements(from, to) || !detail::overlap(from, to), member, [&] {
    return str("the source ", source->shape(), " with strides ", source->strides(),
               " shares elements with the destination, which has strides ", strides(),
               ": they would be overwritten before they are read; call ", member, "(source.clone())");
  });
}

const void* Tensor::raw() const { return impl().storage->data() + impl_->offset * size_of(impl_->dtype); }
void* Tensor::mutable_raw() {
  begin_write("mutable_raw");
  return const_cast<void*>(raw());
}

const std::shared_ptr<Node>& Tensor::node() const { return impl().node; }
void Tensor::set_node(std::shared_ptr<Node> node, bool has_history) {
  impl();
  impl_->node = std::move(node);
  impl_->has_history = has_history;
}
bool Tensor::unique_storage() const {
  return impl().storage.use_count() == 1 && impl_.use_count() == 1 && !impl_->storage->borrowed();
}

double Tensor::item() const {
  check(numel() == 1, "item", [&] {
    return str("needs exactly one element, got shape ", shape(), "; reduce it, or name one by at(x, {...})");
  });
  return to_vector<double>()[0];
}

template <class T>
std::vector<T> Tensor::to_vector() const {
  Tensor x = detach().to(kCpu).to(dtype_of<T>()).contiguous();
  std::vector<T> values(static_cast<size_t>(x.numel()));
  if (!values.empty()) std::memcpy(values.data(), x.raw(), values.size() * sizeof(T));
  return values;
}

template <class T>
Tensor from_vector(const std::vector<T>& values, const Shape& shape, Device device) {
  check(numel(shape) == static_cast<int64_t>(values.size()), "from_vector",
        [&] { return str(values.size(), " values do not fill shape ", shape); });
  Tensor x = empty(shape, dtype_of<T>());
  if (!values.empty()) std::memcpy(x.mutable_raw(), values.data(), values.size() * sizeof(T));
  return x.to(device);
}

#define BRAID_INSTANTIATE(T)                            \
  template std::vector<T> Tensor::to_vector<T>() const; \
  template Tensor from_vector(const std::vector<T>&, const Shape&, Device);
BRAID_INSTANTIATE(double)
BRAID_INSTANTIATE(float)
BRAID_INSTANTIATE(bfloat16)
BRAID_INSTANTIATE(float16)
BRAID_INSTANTIATE(int64_t)
BRAID_INSTANTIATE(int32_t)
BRAID_INSTANTIATE(uint8_t)
#undef BRAID_INSTANTIATE

// ---- views ----

Tensor Tensor::detach() const { return raw_view(shape(), strides(), 0); }

Tensor Tensor::view(const Shape& new_shape, const Strides& new_strides, int64_t offset) const {
  check_raw("view", "braid::slice, braid::reshape or braid::permute");
  check(new_strides.rank() == new_shape.rank(), "view",
        [&] { return str("needs one stride per axis of ", new_shape, ", got ", new_strides); });
  if (braid::numel(new_shape) == 0) return raw_view(new_shape, new_strides, 0);
  const int64_t elements = impl().storage->bytes() / size_of(dtype());
  check(lies_within(new_shape, new_strides, impl_->offset, offset, elements), "view", [&] {
    return str(new_shape, " with strides ", new_strides, " and offset ", offset, " leaves the buffer of ", elements,
               " elements, of which this tensor begins at number ", impl_->offset, ", counted from 0");
  });
  return raw_view(new_shape, new_strides, offset);
}

Tensor Tensor::raw_view(const Shape& new_shape, const Strides& new_strides, int64_t offset) const {
  Tensor y;
  y.impl_ = std::make_shared<Impl>(
      Impl{impl().storage, new_shape, new_strides, impl_->offset + offset, impl_->dtype, nullptr, false});
  return y;
}

Tensor Tensor::reshaped(const Shape& target) const {
  check_raw("reshaped", "braid::reshape(x, shape)");
  Shape to = target;
  int open = -1;
  for (int i = 0; i < to.rank(); ++i) {
    if (to[i] != -1) continue;
    check(open < 0, "reshape", [&] { return str("only one size may be -1 in ", target); });
    to[open = i] = 1;
  }
  if (open >= 0) {
    const int64_t known = braid::numel(to);
    check(known > 0 && numel() % known == 0, "reshape", [&] { return no_view(shape(), target); });
    to[open] = numel() / known;
  }
  check(braid::numel(to) == numel(), "reshape", [&] { return no_view(shape(), target); });
  check(is_contiguous(), "reshape",
        [&] { return str("the raw view needs a contiguous tensor, got strides ", strides()); });
  return raw_view(to, contiguous_strides(to), 0);
}

Tensor Tensor::transposed(int axis0, int axis1) const {
  check_raw("transposed", "braid::transpose(x, axis0, axis1)");
  int a = normal_axis(axis0, rank(), "transpose"), b = normal_axis(axis1, rank(), "transpose");
  Shape s = shape();
  Strides t = strides();
  std::swap(s[a], s[b]);
  std::swap(t[a], t[b]);
  return raw_view(s, t, 0);
}

Tensor Tensor::permuted(Axes axes) const {
  check_raw("permuted", "braid::permute(x, axes)");
  check(static_cast<int>(axes.size()) == rank(), "permute",
        [&] { return str("needs one entry per axis of ", shape()); });
  Shape s;
  Strides t;
  unsigned seen = 0;
  for (int axis : axes) {
    int a = normal_axis(axis, rank(), "permute");
    check(!(seen >> a & 1u), "permute", [&] { return str("axis ", axis, " stands twice; name each axis once"); });
    seen |= 1u << a;
    s.push_back(dim(a));
    t.push_back(strides()[a]);
  }
  return raw_view(s, t, 0);
}

Tensor Tensor::sliced(int axis, int64_t begin, int64_t end) const {
  check_raw("sliced", "braid::slice(x, axis, begin, end)");
  int a = normal_axis(axis, rank(), "slice");
  check(0 <= begin && begin <= end && end <= dim(a), "slice", [&] {
    return str("range [", begin, ", ", end, ") does not lie in axis ", axis, " of ", shape(),
               "; index(x, {Slice{begin, end}}) cuts bounds and counts negative ones from the end");
  });
  Shape s = shape();
  s[a] = end - begin;
  return raw_view(s, strides(), begin * strides()[a]);
}

Tensor Tensor::expanded(const Shape& to) const {
  check_raw("expanded", "braid::expand(x, shape)");
  braid::numel(to);  // throws for a negative size
  return raw_view(to, broadcast_strides(shape(), strides(), to, "expand"), 0);
}

Tensor Tensor::squeezed(int axis) const {
  check_raw("squeezed", "braid::squeeze(x, axis)");
  int a = normal_axis(axis, rank(), "squeeze");
  check(dim(a) == 1, "squeeze",
        [&] { return str("axis ", axis, " of ", shape(), " is not 1; select(x, axis, i) takes one of its entries"); });
  Shape s;
  Strides t;
  for (int i = 0; i < rank(); ++i) {
    if (i == a) continue;
    s.push_back(dim(i));
    t.push_back(strides()[i]);
  }
  return raw_view(s, t, 0);
}

Tensor Tensor::unsqueezed(int axis) const {
  check_raw("unsqueezed", "braid::unsqueeze(x, axis)");
  int a = normal_axis(axis, rank() + 1, "unsqueeze");
  Shape s;
  Strides t;
  for (int i = 0; i <= rank(); ++i) {
    if (i == a) {
      s.push_back(1);
      t.push_back(0);
    }
    if (i < rank()) {
      s.push_back(dim(i));
      t.push_back(strides()[i]);
    }
  }
  return raw_view(s, t, 0);
}

// ---- copies and in-place writes ----

Tensor Tensor::clone() const {
  check_raw("clone", "braid::contiguous(x) for a recorded copy of a strided tensor");
  Tensor y = empty(shape(), dtype(), device());
  backend(device()).copy.strided(*this, y);
  return y;
}

Tensor Tensor::contiguous() const {
  check_raw("contiguous", "braid::contiguous(x)");
  return is_contiguous() ? *this : clone();
}

Tensor Tensor::to(DType type) const {
  check_raw("to", "braid::cast(x, dtype)");
  if (type == dtype()) return *this;
  Tensor y = empty(shape(), type, device());
  backend(device()).copy.strided(*this, y);
  return y;
}

Tensor Tensor::to(Device target) const {
  check_raw("to", "braid::to(x, device)");
  if (target == device()) return *this;
  constexpr Device::Kind cuda = Device::Kind::cuda;
  if (device().kind == cuda && target.kind == cuda) return to(kCpu).to(target);  // each GPU has a stream of its own
  Tensor x = contiguous(), y = empty(shape(), dtype(), target);
  const Backend& b = backend(target == kCpu ? device() : target);
  b.stream.transfer(x, y);
  return y;
}

void Tensor::copy_(const Tensor& source) {
  check(source.shape() == shape(), "copy_", [&] { return str("shapes differ: ", shape(), " and ", source.shape()); });
  check_order_free("copy_", &source);
  begin_write("copy_");
  Tensor local = source.detach().to(device());
  backend(device()).copy.strided(local, *this);
}

void Tensor::add_(const Tensor& source) {
  check(source.shape() == shape() && source.dtype() == dtype(), "add_", [&] {
    return str("shapes or types differ: ", shape(), " ", dtype(), " and ", source.shape(), " ", source.dtype());
  });
  check_order_free("add_", &source);
  begin_write("add_");
  const Backend& b = backend(device());
  if (is_float(dtype())) return b.pointwise.binary(BinaryOp::add, *this, source, *this);
  Tensor sum = empty_like(*this);
  b.integer.binary(IntegerOp::add, contiguous(), source.contiguous(), sum);
  b.copy.strided(sum, *this);
}

void Tensor::fill(double value) {
  check_number("fill", value, dtype());
  check_order_free("fill", nullptr);
  begin_write("fill");
  backend(device()).copy.fill(value, *this);
}

Tensor empty(const Shape& shape, DType dtype, Device device) {
  int64_t bytes = 0;
  check(!__builtin_mul_overflow(numel(shape), size_of(dtype), &bytes) && bytes <= INT64_MAX / 2, "empty",
        [&] { return str(shape, " ", dtype, " is larger than any memory"); });
  return detail::over(std::make_shared<Storage>(bytes, device), shape, contiguous_strides(shape), dtype);
}

Tensor detail::over(std::shared_ptr<Storage> storage, const Shape& shape, const Strides& strides, DType dtype) {
  Tensor x;
  x.impl_ = std::make_shared<Tensor::Impl>(Tensor::Impl{std::move(storage), shape, strides, 0, dtype, nullptr, false});
  return x;
}

Tensor empty_like(const Tensor& x) { return empty(x.shape(), x.dtype(), x.device()); }

Tensor full(const Shape& shape, double value, DType dtype, Device device) {
  check_number("full", value, dtype);
  Tensor x = empty(shape, dtype, device);
  backend(device).copy.fill(value, x);
  return x;
}
Tensor zeros(const Shape& shape, DType dtype, Device device) { return full(shape, 0.0, dtype, device); }
Tensor zeros_like(const Tensor& x) { return zeros(x.shape(), x.dtype(), x.device()); }

Tensor arange(int64_t n, DType dtype, Device device) {
  check(n >= 0, "arange", [&] { return str("needs at least 0 elements, got ", n); });
  check(n == 0 || holds(dtype, n - 1), "arange",
        [&] { return str("up to ", n - 1, " leaves the range of ", dtype, "; choose a wider dtype"); });
  Tensor x = empty({n}, DType::i64);
  std::iota(x.mutable_data<int64_t>(), x.mutable_data<int64_t>() + n, int64_t{0});
  return x.to(dtype).to(device);
}

}  // namespace braid
