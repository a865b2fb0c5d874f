// What the files of the module share: casters between Python and the library's small types.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "braid/autograd.h"
#include "braid/nn/layers/dropout.h"
#include "braid/nn/module.h"

namespace braid::python {

namespace nb = nanobind;
using namespace nb::literals;

// Other Python threads run while an op computes.
using Unlocked = nb::gil_scoped_release;

using NamedDict = nb::typed<nb::dict, nb::str, Tensor>;
using Facts = nb::typed<nb::dict, nb::str, nb::any>;

struct AxisList {  // an axis, or several
  std::vector<int> axes;
};
struct LargeInteger {  // of Python, beyond 2^53, up to which doubles have all integers
  int64_t value = 0;
};
struct Indices {  // what stands between the brackets of x[...]
  std::vector<Index> list;
};
// Error(misuse) for what is no index.
Indices indices_of(nb::handle key);

// The values of an enum by name: specialised in names.h.
template <class E>
struct Names {};

// Between the steps of long work, without the lock: throws what a handler of Python's raises, such as
// KeyboardInterrupt.
inline void check_signals() {
  const nb::gil_scoped_acquire locked;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

inline NamedDict named(const std::vector<NamedTensor>& tensors) {
  NamedDict dict;
  for (const NamedTensor& t : tensors) dict[t.name.c_str()] = t.value;
  return dict;
}
inline nn::Mode mode_of(bool train) { return train ? nn::Mode::train : nn::Mode::eval; }

// None in the place of an empty handle.
inline nb::object handle_or_none(const Tensor& x) { return x ? nb::cast(x) : nb::none(); }

template <class Function, class... More>
void define_method(nb::module_& m, const char* name, Function f, const More&... more) {
  nb::cpp_function_def(f, nb::scope(m.attr("Tensor")), nb::name(name), nb::is_method(), more...);
}
// A function of x that is a method of Tensor too.
template <class Function, class... More>
void define_both(nb::module_& m, const char* name, Function f, const nb::arg& x, const More&... more) {
  m.def(name, f, x, more...);
  define_method(m, name, f, more...);
}

void bind_errors(nb::module_& m);
void bind_tensor(nb::module_& m);
// Methods with numbers in the place of a sequence of them, behind those of bind_ops: x.reshape(2, 3).
void bind_sizes(nb::module_& m);
void bind_memory(nb::module_& m);
PyType_Slot* buffer_slots();  // of the type Tensor
// The capsule of __dlpack__, of the version that the consumer takes.
nb::object to_capsule(const Tensor& x, nb::object max_version);
void bind_structs(nb::module_& m);
void bind_nn(nb::module_& m);
void bind_attention_layers(nb::module_& m);
void bind_models(nb::module_& m, nb::module_& layers);
void bind_runs(nb::module_& m);
void bind_charts(nb::module_& m);
void bind_ops_0(nb::module_& m);
void bind_ops_1(nb::module_& m);
void bind_ops_2(nb::module_& m);
void bind_ops_3(nb::module_& m);

// The numbers of an integer or a sequence of integers; none for anything else.
template <class Integer>
std::optional<std::vector<Integer>> integers(nb::handle source) {
  Integer one;
  if (nb::try_cast(source, one)) return std::vector<Integer>{one};
  std::vector<Integer> list;
  if (nb::isinstance<nb::str>(source) || !nb::try_cast(source, list)) return {};
  return list;
}

}  // namespace braid::python

namespace nanobind::detail {

template <>
struct type_caster<braid::Shape> {
  NB_TYPE_CASTER(braid::Shape, io_name("int | collections.abc.Sequence[int]", "tuple[int, ...]"))
  bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
    const auto sizes = braid::python::integers<int64_t>(source);
    if (!sizes || sizes->size() > braid::Shape::max_rank) return false;
    value = {};
    for (const int64_t size : *sizes) value.push_back(size);
    return true;
  }
  static handle from_cpp(const braid::Shape& shape, rv_policy, cleanup_list*) noexcept {
    nanobind::list sizes;
    for (const int64_t size : shape) sizes.append(size);
    return nanobind::tuple(sizes).release();
  }
};

template <>
struct type_caster<braid::python::AxisList> {
  NB_TYPE_CASTER(braid::python::AxisList, const_name("int | collections.abc.Sequence[int]"))
  bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
    auto axes = braid::python::integers<int>(source);
    if (axes) value.axes = std::move(*axes);
    return axes.has_value();
  }
};

template <>
struct type_caster<braid::Pixels> {
  NB_TYPE_CASTER(braid::Pixels, io_name("int | tuple[int, int]", "tuple[int, int]"))
  bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
    const auto sizes = braid::python::integers<int64_t>(source);
    if (!sizes || sizes->empty() || sizes->size() > 2) return false;
    value = {sizes->front(), sizes->back()};
    return true;
  }
  static handle from_cpp(const braid::Pixels& p, rv_policy, cleanup_list*) noexcept {
    return nanobind::make_tuple(p.rows, p.columns).release();
  }
};

template <>
struct type_caster<braid::python::Indices> {
  NB_TYPE_CASTER(braid::python::Indices, const_name("typing.Any"))
  bool from_python(handle source, uint8_t, cleanup_list*) {
    value = braid::python::indices_of(source);
    return true;
  }
};

template <>
struct type_caster<braid::python::LargeInteger> {
  NB_TYPE_CASTER(braid::python::LargeInteger, const_name("int"))
  bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
    constexpr int64_t kExact = int64_t{1} << 53;
    if (!PyLong_CheckExact(source.ptr())) return false;
    int overflow = 0;
    value.value = PyLong_AsLongLongAndOverflow(source.ptr(), &overflow);
    return overflow == 0 && (value.value < -kExact || value.value > kExact);
  }
};

// A seed, or the pair of a seed and a stream.
template <>
struct type_caster<braid::RandomKey> {
  NB_TYPE_CASTER(braid::RandomKey, io_name("int | tuple[int, int]", "tuple[int, int]"))
  bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
    const auto words = braid::python::integers<uint64_t>(source);
    if (!words || words->empty() || words->size() > 2) return false;
    value = {words->front(), words->size() == 2 ? words->back() : 0};
    return true;
  }
  static handle from_cpp(const braid::RandomKey& key, rv_policy, cleanup_list*) noexcept {
    return nanobind::make_tuple(key.seed, key.stream).release();
  }
};

template <>
struct type_caster<braid::Device> {
  NB_TYPE_CASTER(braid::Device, const_name("str"))
  bool from_python(handle source, uint8_t, cleanup_list*) {
    std::string name;
    if (!try_cast(source, name)) return false;
    value = braid::parse_device(name);
    return true;
  }
  static handle from_cpp(braid::Device device, rv_policy, cleanup_list*) noexcept {
    return cast(braid::str(device)).release();
  }
};

// An enum of an op is the name of its value.
template <class E>
struct EnumCaster {
  NB_TYPE_CASTER(E, const_name("str"))
  bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
    std::string name;
    if (!try_cast(source, name)) return false;
    for (const auto& [word, of] : braid::python::Names<E>::values)
      if (word == name) return value = of, true;
    return false;
  }
  static handle from_cpp(E e, rv_policy, cleanup_list*) noexcept {
    for (const auto& [word, of] : braid::python::Names<E>::values)
      if (of == e) return nanobind::str(word.data(), word.size()).release();
    return none().release();
  }
};

}  // namespace nanobind::detail

#include "apps/python/names.h"  // made by generate.py
