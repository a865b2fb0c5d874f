// braid.Tensor: what NumPy's users expect of an array, and gradients.
#include <cstring>

#include "apps/python/bindings.h"
#include "braid/autograd/graph_svg.h"
#include "braid/tensor/print.h"

namespace braid::python {

namespace {

// --- indices ---

Index index_of(nb::handle entry) {
  if (entry.is_none()) return newaxis;
  if (entry.ptr() == Py_Ellipsis) return ellipsis;
  if (PySlice_Check(entry.ptr())) {
    const auto bound = [&](const char* name) -> std::optional<int64_t> {
      const nb::object value = entry.attr(name);
      if (value.is_none()) return {};
      const Py_ssize_t n = PyNumber_AsSsize_t(value.ptr(), nullptr);  // of a larger integer the end of its range
      if (n == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
      return n;
    };
    return Slice{bound("start"), bound("stop"), bound("step").value_or(1)};
  }
  if (nb::isinstance<Tensor>(entry)) return nb::cast<Tensor>(entry);
  check(PyBool_Check(entry.ptr()) == 0, ErrorKind::misuse,
        "True and False are no index: where() takes a mask without axes");
  int64_t position = 0;
  if (PyIndex_Check(entry.ptr()) != 0 && nb::try_cast(nb::handle(entry), position)) return position;
  const nb::object list = nb::module_::import_("braid").attr("asarray")(entry);
  return nb::cast<Tensor>(list);
}

bool is_view(const Indices& at) {
  for (const Index& entry : at.list) {
    if (std::holds_alternative<Tensor>(entry.value)) return false;
    if (const auto* slice = std::get_if<Slice>(&entry.value); slice && slice->step != 1) return false;
  }
  return true;
}

// The integer as an i64 on x's device.
Tensor beside(const Tensor& x, LargeInteger y) { return from_vector(std::vector<int64_t>{y.value}, {}).to(x.device()); }

// op(x, y): of the integer beside i64, of the nearest double beside other types.
template <class Op>
Tensor with_large(const Tensor& x, LargeInteger y, Op op) {
  if (x.dtype() == DType::i64) return op(x, beside(x, y));
  return op(x, static_cast<double>(y.value));
}

// The value of x[...] = value as a tensor of x's type.
Tensor value_for(const Tensor& x, nb::handle value) {
  double number = 0;
  LargeInteger large;
  if (x.dtype() == DType::i64 && nb::try_cast(value, large)) return beside(x, large);
  if (nb::isinstance<Tensor>(value)) return nb::cast<Tensor>(value).detach().to(x.dtype());
  if (nb::try_cast(value, number)) return full({}, number, x.dtype(), x.device());
  return nb::cast<Tensor>(nb::module_::import_("braid").attr("asarray")(value)).to(x.dtype());
}

void set_item(Tensor& x, const Indices& at, nb::handle value) {
  const Tensor source = value_for(x, value);
  if (is_view(at)) {
    Tensor part = index(x.detach(), at.list);
    part.copy_(source.expanded(part.shape()));
  } else {
    x.copy_(index_put(x.detach(), at.list, source));
  }
}

// Numbers of both widths, of ids and masks.
bool is_integer(const Tensor& x) { return !is_float(x.dtype()); }

// Elements as nested lists of the axes from this one on.
template <class Number>
nb::object nested(const Shape& shape, int axis, const Number*& element) {
  if (axis == shape.rank()) return nb::cast(*element++);
  nb::list list;
  for (int64_t i = 0; i < shape[axis]; ++i) list.append(nested(shape, axis + 1, element));
  return list;
}
template <class Number>
nb::object nested(const Tensor& x) {
  const std::vector<Number> elements = x.to_vector<Number>();
  const Number* first = elements.data();
  return nested(x.shape(), 0, first);
}
nb::object to_list(const Tensor& x) { return is_integer(x) ? nested<int64_t>(x) : nested<double>(x); }

nb::object item(const Tensor& x) {
  const double value = x.item();
  return is_integer(x) ? nb::cast(x.to_vector<int64_t>().front()) : nb::cast(value);
}

nb::tuple get_state(const Tensor& x) {
  const Tensor values = x.detach().to(kCpu).contiguous();
  const int64_t bytes = values.numel() * size_of(values.dtype());
  return nb::make_tuple(nb::bytes(static_cast<const char*>(values.raw()), static_cast<size_t>(bytes)), values.shape(),
                        values.dtype(), requires_grad(x));
}

void set_state(Tensor& x, const std::tuple<nb::bytes, Shape, DType, bool>& state) {
  const auto& [bytes, shape, dtype, wants_grad] = state;
  Tensor values = empty(shape, dtype);
  check(static_cast<int64_t>(bytes.size()) == values.numel() * size_of(dtype), ErrorKind::input,
        "a pickled tensor has lost bytes");
  std::memcpy(values.mutable_raw(), bytes.c_str(), bytes.size());
  new (&x) Tensor(values);
  if (wants_grad) require_grad(x);
}

// x @ y of NumPy: a vector on the left is a row, on the right a column, and that axis is not in the result.
Tensor product(const Tensor& x, const Tensor& y) {
  const bool row = x.rank() == 1, column = y.rank() == 1;
  if (row && column) return dot(x, y);
  const Tensor z = matmul(row ? unsqueeze(x, 0) : x, column ? unsqueeze(y, 1) : y);
  return row ? squeeze(z, -2) : column ? squeeze(z, -1) : z;
}

// Arithmetic with a tensor or a number, from both sides.
template <class Class>
void bind_arithmetic(Class& c) {
  const auto both = [&](const char* name, const char* reversed, auto op) {
    c.def(
        name, [op](const Tensor& x, const Tensor& y) { return op(x, y); }, nb::is_operator(),
        nb::call_guard<Unlocked>());
    c.def(
        name, [op](const Tensor& x, LargeInteger y) { return with_large(x, y, op); }, nb::is_operator(),
        nb::call_guard<Unlocked>());
    c.def(
        reversed,
        [op](const Tensor& x, LargeInteger y) {
          return with_large(x, y, [op](const auto& a, const auto& b) { return op(b, a); });
        },
        nb::is_operator(), nb::call_guard<Unlocked>());
    c.def(
        name, [op](const Tensor& x, double y) { return op(x, y); }, nb::is_operator(), nb::call_guard<Unlocked>());
    c.def(
        reversed, [op](const Tensor& x, double y) { return op(y, x); }, nb::is_operator(), nb::call_guard<Unlocked>());
  };
  both("__add__", "__radd__", [](const auto& x, const auto& y) { return x + y; });
  both("__sub__", "__rsub__", [](const auto& x, const auto& y) { return x - y; });
  both("__mul__", "__rmul__", [](const auto& x, const auto& y) { return x * y; });
  both("__truediv__", "__rtruediv__", [](const auto& x, const auto& y) { return x / y; });
  both("__pow__", "__rpow__", [](const auto& x, const auto& y) { return pow(x, y); });
  // Two operands of one type: a number takes the type of the tensor beside it.
  const auto tensors = [&](const char* name, const char* reversed, auto op) {
    const auto like = [](const Tensor& x, double y) { return full({}, y, x.dtype(), x.device()); };
    both(name, reversed, [op, like]<class X, class Y>(const X& x, const Y& y) {
      if constexpr (std::is_same_v<X, double>)
        return op(like(y, x), y);
      else if constexpr (std::is_same_v<Y, double>)
        return op(x, like(x, y));
      else
        return op(x, y);
    });
  };
  // The function of bits for i64 and i32; other types are masks.
  const auto bits = [](auto of_bits, auto of_masks) {
    return [=](const Tensor& x, const auto&... y) {
      return is_integer(x) && x.dtype() != DType::u8 ? of_bits(x, y...) : of_masks(x, y...);
    };
  };
  const auto compare = [&](const char* name, auto op) {
    c.def(
        name, [op](const Tensor& x, const Tensor& y) { return op(x, y); }, nb::is_operator(),
        nb::call_guard<Unlocked>());
    c.def(
        name, [op](const Tensor& x, LargeInteger y) { return with_large(x, y, op); }, nb::is_operator(),
        nb::call_guard<Unlocked>());
    c.def(
        name, [op](const Tensor& x, double y) { return op(x, y); }, nb::is_operator(), nb::call_guard<Unlocked>());
  };
  compare("__eq__", [](const Tensor& x, const auto& y) { return eq(x, y); });
  compare("__ne__", [](const Tensor& x, const auto& y) { return ne(x, y); });
  compare("__lt__", [](const Tensor& x, const auto& y) { return lt(x, y); });
  compare("__le__", [](const Tensor& x, const auto& y) { return le(x, y); });
  compare("__gt__", [](const Tensor& x, const auto& y) { return gt(x, y); });
  compare("__ge__", [](const Tensor& x, const auto& y) { return ge(x, y); });
  c.def("__matmul__", product, nb::is_operator(), nb::call_guard<Unlocked>());
  using Two = Tensor (*)(const Tensor&, const Tensor&);
  tensors("__mod__", "__rmod__", Two{remainder});
  tensors("__floordiv__", "__rfloordiv__", Two{floor_divide});
  tensors("__lshift__", "__rlshift__", bitwise_left_shift);
  tensors("__rshift__", "__rrshift__", bitwise_right_shift);
  tensors("__and__", "__rand__", bits(bitwise_and, logical_and));
  tensors("__or__", "__ror__", bits(bitwise_or, logical_or));
  tensors("__xor__", "__rxor__", bits(bitwise_xor, logical_xor));
  c.def(
      "__neg__", [](const Tensor& x) { return neg(x); }, nb::call_guard<Unlocked>());
  c.def("__pos__", [](const Tensor& x) { return x; });
  c.def(
      "__abs__", [](const Tensor& x) { return abs(x); }, nb::call_guard<Unlocked>());
  c.def(
      "__invert__", [inverted = bits(bitwise_invert, logical_not)](const Tensor& x) { return inverted(x); },
      nb::call_guard<Unlocked>());
}

template <class Class>
void bind_gradients(Class& c) {
  c.def_prop_rw(
      "requires_grad", [](const Tensor& x) { return requires_grad(x); },
      [](Tensor& x, bool on) { require_grad(x, on); });
  c.def(
      "requires_grad_", [](Tensor& x, bool on) -> Tensor& { return require_grad(x, on); }, "on"_a = true,
      nb::rv_policy::none, "Makes it a leaf that collects a gradient. Returns itself.");
  c.def_prop_rw(
      "grad", [](const Tensor& x) { return requires_grad(x) ? handle_or_none(grad(x)) : nb::none(); },
      [](const Tensor& x, const std::optional<Tensor>& g) {
        if (g)
          set_grad(x, *g);
        else
          zero_grad(x);
      },
      nb::arg().none(), "The gradient that backward() has added up in a leaf, or None.");
  c.def(
      "backward",
      [](const Tensor& y, const std::optional<Tensor>& dy, bool keep) {
        backward(y, dy.value_or(Tensor()), {.keep = keep});
      },
      "dy"_a = nb::none(), "keep"_a = false, nb::call_guard<Unlocked>(),
      "Adds the derivative of y, or of sum(y dy), to the gradient of every leaf. keep: the history can be used again.");
  c.def(
      "register_hook", [](const Tensor& x, GradHook hook) { return on_grad(x, std::move(hook)); }, "hook"_a,
      "Calls hook(gradient) when the gradient of this leaf is complete. Returns a handle with remove().");
  c.def(
      "detach", [](const Tensor& x) { return x.detach(); }, "The same elements without history.");
  c.def("_repr_svg_", [](const Tensor& x) -> nb::object {
    return requires_grad(x) && x.has_history() ? nb::cast(svg(x)) : nb::none();
  });
}

}  // namespace

Indices indices_of(nb::handle key) {
  Indices at;
  if (nb::isinstance<nb::tuple>(key))
    for (nb::handle entry : nb::borrow<nb::tuple>(key)) at.list.push_back(index_of(entry));
  else
    at.list.push_back(index_of(key));
  return at;
}

void bind_sizes(nb::module_& m) {
  using Sizes = std::vector<int64_t>;
  using Numbers = std::vector<int>;
  const auto define = [&]<class Integer>(const char* name, const char* signature,
                                         Tensor (*op)(const Tensor&, const std::vector<Integer>&)) {
    define_method(
        m, name,
        [op](const Tensor& x, const nb::args& numbers) {
          const auto sizes = integers<Integer>(numbers);
          if (!sizes) throw nb::next_overload();
          return op(x, *sizes);
        },
        nb::sig(signature));
  };
  static constexpr auto shape = [](const Sizes& sizes) { return nb::cast<Shape>(nb::cast(sizes)); };
  define(
      "reshape", "def reshape(self, *shape: int) -> Tensor",
      +[](const Tensor& x, const Sizes& sizes) { return reshape(x, shape(sizes)); });
  define(
      "expand", "def expand(self, *shape: int) -> Tensor",
      +[](const Tensor& x, const Sizes& sizes) { return expand(x, shape(sizes)); });
  define(
      "permute", "def permute(self, *axes: int) -> Tensor",
      +[](const Tensor& x, const Numbers& axes) { return permute(x, axes); });
  define(
      "flip", "def flip(self, *axes: int) -> Tensor",
      +[](const Tensor& x, const Numbers& axes) { return flip(x, axes); });
  define(
      "tile", "def tile(self, *counts: int) -> Tensor",
      +[](const Tensor& x, const Sizes& counts) { return tile(x, counts); });
}

void bind_tensor(nb::module_& m) {
  nb::enum_<DType>(m, "DType", "The type of a tensor's elements.")
      .value("float64", DType::f64)
      .value("float32", DType::f32)
      .value("bfloat16", DType::bf16)
      .value("float16", DType::f16)
      .value("int64", DType::i64)
      .value("int32", DType::i32)
      .value("uint8", DType::u8)
      .export_values();

  nb::class_<HookHandle>(m, "HookHandle").def("remove", &HookHandle::remove);

  nb::class_<Tensor> c(m, "Tensor", nb::type_slots(buffer_slots()), nb::is_weak_referenceable(),
                       "A handle on a buffer with a shape, strides and, where it requires a gradient, a history.");
  c.def_prop_ro("shape", [](const Tensor& x) { return x.shape(); });
  c.def_prop_ro(
      "strides", [](const Tensor& x) { return x.strides(); }, "In elements, not bytes.");
  c.def_prop_ro("dtype", &Tensor::dtype);
  c.def_prop_ro("device", &Tensor::device);
  c.def_prop_ro("ndim", &Tensor::rank);
  c.def_prop_ro("size", &Tensor::numel);
  c.def_prop_ro(
      "T", [](const Tensor& x) { return x.rank() < 2 ? x : transpose(x); }, "The last two axes exchanged.");
  c.def_prop_ro(
      "mT", [](const Tensor& x) { return transpose(x); }, "The last two axes exchanged.");
  c.def(
      "data_ptr", [](const Tensor& x) { return reinterpret_cast<uintptr_t>(x.raw()); }, "Where its first element is.");
  c.def("item", item, "The value of a tensor of one element.");
  c.def("tolist", to_list, "The values as nested lists.");
  c.def(
      "to", [](const Tensor& x, DType dtype) { return cast(x, dtype); }, "dtype"_a, nb::call_guard<Unlocked>());
  c.def(
      "to", [](const Tensor& x, Device device) { return to(x, device); }, "device"_a, nb::call_guard<Unlocked>());
  c.def(
      "astype",
      [](const Tensor& x, DType dtype, bool copy) { return copy && dtype == x.dtype() ? x.clone() : cast(x, dtype); },
      "dtype"_a, "copy"_a = true, nb::call_guard<Unlocked>(),
      "The elements in another type; of the same type a copy, or itself with copy=False.");
  c.def(
      "to_device", [](const Tensor& x, Device device, const nb::object&) { return to(x, device); }, "device"_a,
      nb::kw_only(), "stream"_a = nb::none(), "to() as the array API standard names it.");
  c.def(
      "__array_namespace__",
      [](const Tensor&, std::optional<std::string> version) {
        const nb::object names = nb::module_::import_("braid.array_api");
        const auto newest = nb::cast<std::string>(names.attr("__array_api_version__"));
        check(!version || *version <= newest, ErrorKind::misuse,
              [&] { return str("array API standard: expected a version up to ", newest, ", found ", *version); });
        return names;
      },
      nb::kw_only(), "api_version"_a = nb::none(), "The module braid.array_api.");
  c.def(
      "clone", [](const Tensor& x) { return x.clone(); }, nb::call_guard<Unlocked>(), "A copy of the elements.");
  c.def("copy_", &Tensor::copy_, "source"_a, nb::call_guard<Unlocked>(), "Writes the elements of source in place.");
  c.def("add_", &Tensor::add_, "source"_a, nb::call_guard<Unlocked>(), "Adds the elements of source in place.");
  c.def("fill_", &Tensor::fill, "value"_a, nb::call_guard<Unlocked>(), "Writes a number to every element in place.");
  c.def(
      "__getitem__", [](const Tensor& x, const Indices& at) { return index(x, at.list); }, "key"_a.none());
  c.def("__setitem__", set_item, "key"_a.none(), "value"_a);
  c.def("__len__", [](const Tensor& x) {
    check(x.rank() > 0, ErrorKind::misuse, "a tensor without axes has no length");
    return x.dim(0);
  });
  c.def("__iter__", [](const Tensor& x) {
    nb::list rows;
    for (int64_t i = 0; i < x.dim(0); ++i) rows.append(index(x, {i}));
    return nb::iter(rows);
  });
  c.def("__float__", [](const Tensor& x) { return nb::float_(item(x)); });
  c.def("__complex__", [](const Tensor& x) { return nb::steal(PyComplex_FromDoubles(x.item(), 0)); });
  c.def("__int__", [](const Tensor& x) { return nb::int_(item(x)); });
  c.def("__bool__", [](const Tensor& x) { return x.item() != 0; });
  c.def("__index__", [](const Tensor& x) {
    check(is_integer(x), ErrorKind::misuse, "only a tensor of integers is an index");
    return item(x);
  });
  c.def("__repr__", [](const Tensor& x) { return str(x); });
  c.def("__hash__", [](const Tensor& x) { return reinterpret_cast<intptr_t>(x.id()); });
  c.def("__copy__", [](const Tensor& x) { return x; });
  c.def("__deepcopy__", [](const Tensor& x, nb::handle) {
    Tensor copy = x.detach().clone();
    return requires_grad(x) ? require_grad(copy) : copy;
  });
  c.def(
      "__array__",
      [](nb::handle x, nb::handle dtype, nb::handle copy) {
        const nb::object view = nb::steal(PyMemoryView_FromObject(x.ptr()));
        if (!view.is_valid()) throw nb::python_error();
        return nb::module_::import_("numpy").attr("array")(view, "dtype"_a = dtype, "copy"_a = copy);
      },
      "dtype"_a.none() = nb::none(), "copy"_a.none() = nb::none(),
      "For NumPy, which would take elements one by one where this raises: a buffer cannot have them.");
  c.def("__getstate__", get_state).def("__setstate__", set_state);
  c.def(
      "__dlpack__",
      [](const Tensor& x, nb::object, nb::object max_version, nb::object, nb::object copy) {
        const bool copies = !copy.is_none() && nb::cast<bool>(copy);
        return to_capsule(copies ? x.detach().clone() : x, max_version);
      },
      nb::kw_only(), "stream"_a = nb::none(), "max_version"_a = nb::none(), "dl_device"_a = nb::none(),
      "copy"_a = nb::none());
  c.def("__dlpack_device__", [](const Tensor& x) {
    return nb::make_tuple(x.device().kind == Device::Kind::cuda ? 2 : 1, static_cast<int>(x.device().index));
  });
  bind_arithmetic(c);
  bind_gradients(c);
}

}  // namespace braid::python
