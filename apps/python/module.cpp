// The extension module braid._braid: errors, tensors, ops, derivatives.
#include <array>
#include <csignal>
#include <memory>
#include <set>
#include <typeinfo>

#include "apps/python/bindings.h"
#include "braid/tensor/parallel.h"

namespace braid::python {

namespace {

struct ErrorClass {
  const char* name;
  const char* doc;
  ErrorKind kind;
};
// The names of the exit codes (apps/README.md).
constexpr ErrorClass kErrors[] = {
    {"SettingError", "A bad flag or configuration value; nothing was touched.", ErrorKind::setting},
    {"InputError", "A bad input file; nothing was written.", ErrorKind::input},
    {"OutputError", "Output cannot be written; the last good state is intact.", ErrorKind::output},
    {"NumericalError", "NaN, Inf or a loss spike.", ErrorKind::numerical},
    {"ProcessError", "Another process died, hung or disagreed.", ErrorKind::process},
    {"NoCheckpointError", "There is nothing usable to resume from.", ErrorKind::no_checkpoint},
    {"MisuseError", "An op or class was called with arguments that do not fit.", ErrorKind::misuse},
};
PyObject* error_classes[std::size(kErrors)];
PyObject* out_of_memory;

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const OutOfMemory& e) {
    PyErr_SetString(out_of_memory, e.what());
  } catch (const Error& e) {
    for (size_t i = 0; i < std::size(kErrors); ++i)
      if (kErrors[i].kind == e.kind()) PyErr_SetString(error_classes[i], e.what());
  } catch (const std::bad_cast&) {
    PyErr_SetString(PyExc_TypeError, "expected an object of another type, such as a tensor as a function's result");
  }
}

// Gives this thread, the one that Python's handlers of signals run on, another stack for them. Kernels of oneDNN keep
// data below the stack pointer (apps/cli/signals.h), which a handler on the same stack overwrites.
void add_signal_stack() {
  static std::array<char, 1 << 16> memory;
  stack_t stack{};
  if (::sigaltstack(nullptr, &stack) != 0 || (stack.ss_flags & SS_DISABLE) == 0) return;  // it has one
  stack = {.ss_sp = memory.data(), .ss_flags = 0, .ss_size = memory.size()};
  ::sigaltstack(&stack, nullptr);
}

// with braid.no_grad(): ...
template <class Guard>
void bind_guard(nb::module_& m, const char* name, const char* doc) {
  struct Scope {
    Scope() = default;
    Scope(const Scope&) = delete;
    std::vector<std::unique_ptr<Guard>> entered;  // of several, where an object is entered again inside
  };
  nb::class_<Scope>(m, name, doc)
      .def(nb::init<>())
      .def("__enter__", [](Scope& s) { s.entered.push_back(std::make_unique<Guard>()); })
      .def("__exit__", [](Scope& s, nb::args) {
        check(!s.entered.empty(), ErrorKind::misuse, "__exit__: expected a scope that was entered");
        s.entered.pop_back();
      });
}

void bind_arange(nb::module_& m) {
  m.def(
      "arange", [](int64_t n, DType dtype) { return arange(n, dtype); }, "n"_a, "dtype"_a = DType::i64,
      "0, 1, ..., n - 1");
  const auto range = [&]<class Number>(Number, DType usual) {
    m.def(
        "arange", [](Number begin, Number end, Number step, DType dtype) { return arange(begin, end, step, dtype); },
        "begin"_a, "end"_a, "step"_a = Number{1}, "dtype"_a = usual, "begin, begin + step, ... before end");
  };
  range(int64_t{}, DType::i64);
  range(double{}, DType::f32);
}

nb::typed<nb::list, std::optional<Tensor>> or_none(const std::vector<Tensor>& tensors) {
  nb::typed<nb::list, std::optional<Tensor>> list;
  for (const Tensor& x : tensors) list.append(handle_or_none(x));
  return list;
}

void bind_derivatives(nb::module_& m) {
  bind_guard<NoGrad>(m, "no_grad", "Records nothing on this thread while it is entered.");
  bind_guard<EnableGrad>(m, "enable_grad", "Records on this thread while it is entered.");
  m.def("is_recording", [] { return recording(); });
  m.def(
      "grad",
      [](const Tensor& y, const std::vector<Tensor>& xs, const std::optional<Tensor>& dy, bool keep, bool create_graph,
         bool allow_unused) {
        std::vector<Tensor> gradients;
        {
          const Unlocked unlocked;
          gradients = grad(
              y, xs,
              {.dy = dy.value_or(Tensor()), .keep = keep, .create_graph = create_graph, .allow_unused = allow_unused});
        }
        return or_none(gradients);
      },
      "y"_a, "xs"_a, "dy"_a = nb::none(), "keep"_a = false, "create_graph"_a = false, "allow_unused"_a = false,
      "The gradients of y, or of sum(y dy), in xs. Nothing is added up in leaves, and no hook is called.");
  m.def("_record", [](const std::string& name, const Tensor& y, const std::vector<Tensor>& inputs,
                      std::function<std::vector<std::optional<Tensor>>(const Tensor&)> backward) {
    const auto count = inputs.size();
    static auto& names = *new std::set<std::string>;  // record() keeps the pointer; graphs may live to the very end
    return record(names.insert(name).first->c_str(), y, inputs,
                  Backward([backward = std::move(backward), count](const Tensor& dy) {
                    const std::vector<std::optional<Tensor>> given = backward(dy);
                    check(given.size() == count, ErrorKind::misuse, [&] {
                      return str("backward of a custom op: expected ", count, " gradients, one of each input, found ",
                                 given.size());
                    });
                    Grads grads;
                    for (const std::optional<Tensor>& g : given) grads.push_back(g.value_or(Tensor()));
                    return grads;
                  }));
  });
  m.def(
      "tap",
      [](const Tensor& x, std::function<std::optional<Tensor>(const Tensor&)> f) {
        return tap(x, [f = std::move(f)](const Tensor& g) { return f(g).value_or(Tensor()); });
      },
      "x"_a, "f"_a, "x, whose gradient f sees in a backward pass, and may replace by what it returns.");
  m.def(
      "recompute", [](Segment f, const std::vector<Tensor>& inputs) { return recompute(std::move(f), inputs); }, "f"_a,
      "inputs"_a, nb::call_guard<Unlocked>(), "f(inputs), computed again in backward() instead of kept.");
  const auto check_of = [&](const char* name,
                            GradcheckResult (*run)(const Function&, const std::vector<Tensor>&, double)) {
    m.def(
        name,
        [run](const Function& f, const std::vector<Tensor>& inputs, double step) {
          const GradcheckResult result = run(f, inputs, step);
          return std::tuple(result.error, result.where);
        },
        "f"_a, "inputs"_a, "step"_a = 1e-3,
        "(largest error of the derivative of f by finite differences, where). Inputs are f64.");
  };
  check_of("gradcheck", gradcheck);
  check_of("gradgradcheck", gradgradcheck);
  const auto pair = [](const auto& result) {
    const auto& [value, derivative] = result;
    return std::pair(value, derivative);
  };
  using Tensors = std::vector<Tensor>;
  m.def(
      "vjp", [pair](const TensorFunction& f, const Tensors& xs, const Tensor& dy) { return pair(vjp(f, xs, dy)); },
      "f"_a, "xs"_a, "dy"_a, nb::call_guard<Unlocked>(), "(y, the gradients of sum(y dy) in xs) for y = f(xs).");
  m.def(
      "value_and_grad", [pair](const TensorFunction& f, const Tensors& xs) { return pair(value_and_grad(f, xs)); },
      "f"_a, "xs"_a, nb::call_guard<Unlocked>(), "(y, its gradients in xs) for y = f(xs) of one element.");
  m.def(
      "jvp", [pair](const TensorFunction& f, const Tensors& xs, const Tensors& vs) { return pair(jvp(f, xs, vs)); },
      "f"_a, "xs"_a, "vs"_a, nb::call_guard<Unlocked>(), "(y, its derivative along vs) for y = f(xs).");
  m.def("hvp", hvp, "f"_a, "xs"_a, "vs"_a, nb::call_guard<Unlocked>(),
        "The second derivatives of y = f(xs), of one element, along vs.");
  m.def("jacobian", jacobian, "f"_a, "x"_a, nb::call_guard<Unlocked>(), "dy/dx of shape (shape of y, shape of x).");
  m.def("hessian", hessian, "f"_a, "x"_a, nb::call_guard<Unlocked>(), "d^2y/dx^2 of a y of one element.");
}

}  // namespace

void bind_errors(nb::module_& m) {
  const auto add = [&](const char* name, const char* doc, PyObject* base) {
    const std::string full = nb::cast<std::string>(m.attr("__name__")) + "." + name;
    PyObject* made = PyErr_NewExceptionWithDoc(full.c_str(), doc, base, nullptr);
    m.attr(name) = nb::steal(made);
    return made;
  };
  PyObject* base = add("Error", "Every error of the library.", PyExc_RuntimeError);
  for (size_t i = 0; i < std::size(kErrors); ++i) error_classes[i] = add(kErrors[i].name, kErrors[i].doc, base);
  out_of_memory = add("OutOfMemoryError", "There is no memory for a tensor.", error_classes[0]);
  nb::register_exception_translator(translate);
}

}  // namespace braid::python

NB_MODULE(_braid, m) {
  using namespace braid::python;
  add_signal_stack();
  m.attr("__version__") = BRAID_VERSION;
  m.def("threads", &braid::threads, "The number of threads that ops compute on.");
  m.def("set_threads", &braid::set_threads, "n"_a, "Results do not depend on it.");
  bind_errors(m);
  bind_tensor(m);
  bind_memory(m);
  bind_structs(m);
  for (const auto bind : {bind_ops_0, bind_ops_1, bind_ops_2, bind_ops_3}) bind(m);
  bind_sizes(m);
  bind_arange(m);
  // Functions travel to other processes by name.
  nb::module_::import_("copyreg").attr("pickle")(nb::handle(m.attr("abs").type()),
                                                 nb::cpp_function([](nb::handle f) { return f.attr("__name__"); }));
  bind_derivatives(m);
  m.attr("max_rank") = int{braid::Shape::max_rank};
  m.def("cuda_device_count", braid::cuda_device_count, "GPUs; 0 without CUDA.");
  nb::module_ layers = m.def_submodule("nn", "Modules, layers, optimizers.");
  bind_nn(layers);
  bind_models(m, layers);
  bind_runs(m);
  bind_charts(m);
}
