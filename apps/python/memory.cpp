// Memory shared with other libraries by buffers and DLPack, and tensors of nested lists.
#include <memory>

#include "apps/python/bindings.h"
#include "braid/tensor/dlpack.h"
#include "braid/tensor/dlpack_abi.h"
#include "braid/tensor/from_memory.h"

namespace braid::python {

namespace {

// The elements of the buffer protocol. A type goes out by its first row; `l` and `?` only come in.
struct Element {
  const char* format;
  DType dtype;
};
constexpr Element kElements[] = {{"d", DType::f64}, {"f", DType::f32}, {"e", DType::f16}, {"q", DType::i64},
                                 {"i", DType::i32}, {"B", DType::u8},  {"l", DType::i64}, {"?", DType::u8}};

const char* format_of(DType dtype) {
  for (const Element& element : kElements)
    if (element.dtype == dtype) return element.format;
  fail(ErrorKind::misuse, "a buffer has no element of 16 bits like bf16: use x.to(braid.float32), or DLPack");
}

// The order that a request demands of the elements, as PyBuffer_IsContiguous() names it; 0: none.
char order_of(int flags) {
  const auto wants = [flags](int form) { return (flags & form) == form; };
  if (!wants(PyBUF_STRIDES) || wants(PyBUF_C_CONTIGUOUS)) return 'C';
  return wants(PyBUF_F_CONTIGUOUS) ? 'F' : wants(PyBUF_ANY_CONTIGUOUS) ? 'A' : '\0';
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept {
  view->obj = nullptr;
  try {
    const Tensor& x = *nb::inst_ptr<Tensor>(self);
    const char* format = format_of(x.dtype());
    const int64_t bytes = size_of(x.dtype());
    check(x.device() == kCpu, ErrorKind::misuse, [&] {
      return str("a buffer is host memory: expected a tensor on the CPU, found one on ", x.device(),
                 "; use x.to('cpu')");
    });
    const bool of_derivative = x.has_history() || requires_grad(x),
               read_only = of_derivative || !x.storage().writable();
    check(!read_only || (flags & PyBUF_WRITABLE) != PyBUF_WRITABLE, ErrorKind::misuse,
          of_derivative ? "a tensor that requires a gradient is lent for reading; use x.detach()"
                        : "the memory of this tensor came in for reading and is lent so; use x.clone()");
    auto sizes = std::make_unique<Py_ssize_t[]>(2 * Shape::max_rank);
    for (int i = 0; i < x.rank(); ++i) {
      sizes[i] = x.dim(i);
      sizes[Shape::max_rank + i] = x.strides()[i] * bytes;
    }
    view->buf = const_cast<void*>(x.raw());
    view->len = x.numel() * bytes;
    view->itemsize = bytes;
    view->readonly = read_only ? 1 : 0;
    view->ndim = x.rank();
    view->format = (flags & PyBUF_FORMAT) != 0 ? const_cast<char*>(format) : nullptr;
    view->shape = sizes.get();
    view->strides = sizes.get() + Shape::max_rank;
    view->suboffsets = nullptr;
    const char order = order_of(flags);
    check(order == '\0' || PyBuffer_IsContiguous(view, order) != 0, ErrorKind::misuse,
          "a buffer of elements side by side: expected a contiguous tensor; use braid.contiguous(x)");
    if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES) view->strides = nullptr;
    view->obj = Py_NewRef(self);
    view->internal = sizes.release();
    return 0;
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_BufferError, e.what());
    return -1;
  }
}

void release_buffer(PyObject*, Py_buffer* view) { delete[] static_cast<Py_ssize_t*>(view->internal); }

PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
                       {Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)},
                       {0, nullptr}};

constexpr const char* kVersioned = "dltensor_versioned";
constexpr const char* kUnversioned = "dltensor";

// A capsule calls the deleter unless a consumer has renamed it.
template <class Managed>
void drop_capsule(PyObject* capsule, const char* name) {
  if (PyCapsule_IsValid(capsule, name) == 0) return;
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  if (managed->deleter) managed->deleter(managed);
}

// Memory in the envelope of before DLPack 1.0, which cannot say that it is for reading only: it is taken as such, since
// the arrays of JAX may not change. Owns `managed` when it returns.
Tensor read_only(DLManagedTensor* managed) {
  auto* lent = new DLManagedTensorVersioned{.version = {1, 0},
                                            .manager_ctx = managed,
                                            .deleter =
                                                [](DLManagedTensorVersioned* self) {
                                                  auto* inner = static_cast<DLManagedTensor*>(self->manager_ctx);
                                                  if (inner->deleter) inner->deleter(inner);
                                                  delete self;
                                                },
                                            .flags = DLPACK_FLAG_BITMASK_READ_ONLY,
                                            .dl_tensor = managed->dl_tensor};
  try {
    return from_dlpack(lent);
  } catch (...) {
    delete lent;
    throw;
  }
}

Tensor from_capsule(nb::handle capsule) {
  for (const char* name : {kVersioned, kUnversioned}) {
    if (PyCapsule_IsValid(capsule.ptr(), name) == 0) continue;
    void* managed = PyCapsule_GetPointer(capsule.ptr(), name);
    const Tensor x = name == kVersioned ? from_dlpack(static_cast<DLManagedTensorVersioned*>(managed))
                                        : read_only(static_cast<DLManagedTensor*>(managed));
    PyCapsule_SetName(capsule.ptr(), name == kVersioned ? "used_dltensor_versioned" : "used_dltensor");
    return x;
  }
  fail(ErrorKind::misuse, "from_dlpack: expected a capsule with a tensor that nobody has taken, found another object");
}

Tensor take_dlpack(nb::object source) {
  nb::object capsule;
  try {
    capsule = source.attr("__dlpack__")("max_version"_a = nb::make_tuple(1, 0));
  } catch (nb::python_error& e) {  // a producer from before DLPack 1.0
    if (!e.matches(PyExc_TypeError)) throw;
    capsule = source.attr("__dlpack__")();
  }
  return from_capsule(capsule);
}

// A copy of an object with a buffer of numbers; none where it has no such buffer.
std::optional<Tensor> from_buffer(nb::handle source) {
  if (PyObject_CheckBuffer(source.ptr()) == 0) return {};
  Py_buffer view;
  if (PyObject_GetBuffer(source.ptr(), &view, PyBUF_FORMAT | PyBUF_STRIDES) != 0) throw nb::python_error();
  const std::unique_ptr<Py_buffer, decltype(&PyBuffer_Release)> held(&view, PyBuffer_Release);
  const std::string format = view.format ? view.format : "B";
  for (const auto& [name, dtype] : kElements) {
    if (format != name || view.ndim > Shape::max_rank) continue;
    Shape shape;
    for (int i = 0; i < view.ndim; ++i) shape.push_back(view.shape[i]);
    Tensor x = empty(shape, dtype);
    check(PyBuffer_ToContiguous(x.mutable_raw(), &view, view.len, 'C') == 0, ErrorKind::misuse,
          "cannot copy this buffer");
    return x;
  }
  return {};
}

// --- nested lists ---

struct Numbers {
  Shape shape;
  std::vector<double> values;
  std::vector<int64_t> integers;  // the same, as long as all are integers
  bool masks = true;              // all are True or False
  std::optional<DType> type;      // that of the tensors among them
};

// Not int(): that of a float of PyTorch, whose type has an __index__, cuts the fraction off.
std::optional<int64_t> integer_of(nb::handle number) {
  if (PyIndex_Check(number.ptr()) == 0) return {};
  const nb::object index = nb::steal(PyNumber_Index(number.ptr()));
  int64_t integer = 0;
  if (index.is_valid() && nb::try_cast(index, integer)) return integer;
  PyErr_Clear();
  return {};
}

void collect(nb::handle values, int axis, Numbers& to) {
  double number = 0;
  if (nb::isinstance<Tensor>(values)) {
    const DType type = nb::cast<Tensor>(values).dtype();
    check(to.type.value_or(type) == type, ErrorKind::misuse,
          [&] { return str("bad nested list: expected tensors of one type, found ", *to.type, " and ", type); });
    to.type = type;
    collect(values.attr("tolist")(), axis, to);
  } else if (nb::isinstance<nb::sequence>(values) && !nb::isinstance<nb::str>(values)) {
    const auto n = static_cast<int64_t>(nb::len(values));
    if (axis == to.shape.rank() && to.values.empty()) to.shape.push_back(n);
    check(axis < to.shape.rank() && to.shape[axis] == n, ErrorKind::misuse,
          [&] { return str("bad nested list: expected lists of one length at level ", axis, ", found one of ", n); });
    for (nb::handle entry : nb::borrow<nb::sequence>(values)) collect(entry, axis + 1, to);
  } else if (nb::try_cast(values, number)) {
    check(axis == to.shape.rank(), ErrorKind::misuse, "bad nested list: expected lists of one depth");
    if (const std::optional<int64_t> integer = integer_of(values)) to.integers.push_back(*integer);
    to.masks = to.masks && PyBool_Check(values.ptr());
    to.values.push_back(number);
  } else {
    fail(ErrorKind::misuse, "expected numbers or nested lists of them, found " +
                                nb::cast<std::string>(nb::handle(values.type()).attr("__name__")));
  }
}

// True and False are a mask; no number at all is f32; numbers beside tensors take the type of these.
Tensor from_numbers(const Numbers& numbers, std::optional<DType> dtype) {
  const bool integers = !numbers.values.empty() && numbers.integers.size() == numbers.values.size();
  const DType usual = !integers ? DType::f32 : numbers.masks ? DType::u8 : DType::i64;
  const Tensor x = integers ? from_vector(numbers.integers, numbers.shape) : from_vector(numbers.values, numbers.shape);
  return x.to(dtype.value_or(numbers.type.value_or(usual)));
}

Tensor from_object(nb::object source, std::optional<DType> dtype, Device device) {
  Tensor x;
  if (nb::isinstance<Tensor>(source)) {
    x = nb::cast<Tensor>(source);
  } else if (nb::hasattr(source, "__dlpack__")) {
    x = take_dlpack(source);
  } else if (std::optional<Tensor> copied = from_buffer(source)) {
    x = *copied;
  } else {
    Numbers numbers;
    collect(source, 0, numbers);
    x = from_numbers(numbers, dtype);
  }
  return to(dtype ? cast(x, *dtype) : x, device);
}

}  // namespace

PyType_Slot* buffer_slots() { return slots; }

nb::object to_capsule(const Tensor& x, nb::object max_version) {
  const bool versioned = !max_version.is_none() && nb::cast<int>(max_version[0]) >= 1;
  PyObject* capsule = versioned
                          ? PyCapsule_New(to_dlpack(x), kVersioned,
                                          [](PyObject* c) { drop_capsule<DLManagedTensorVersioned>(c, kVersioned); })
                          : PyCapsule_New(to_dlpack_unversioned(x), kUnversioned,
                                          [](PyObject* c) { drop_capsule<DLManagedTensor>(c, kUnversioned); });
  return nb::steal(capsule);
}

void bind_memory(nb::module_& m) {
  m.def(
      "asarray", from_object, "source"_a, "dtype"_a = nb::none(), "device"_a = kCpu,
      "A tensor of nested lists of numbers or tensors, or one that shares the memory of an array that speaks DLPack.");
  m.def(
      "tensor",
      [](const nb::object& source, std::optional<DType> dtype, Device device) {
        const bool shares = nb::isinstance<Tensor>(source) || nb::hasattr(source, "__dlpack__");
        const Tensor x = from_object(source, dtype, device);
        return shares ? x.detach().clone() : x;
      },
      "source"_a, "dtype"_a = nb::none(), "device"_a = kCpu, "asarray() with memory and without history of its own.");
  m.def("from_dlpack", take_dlpack, "source"_a, "A tensor over the memory of another library's array.");
}

}  // namespace braid::python
