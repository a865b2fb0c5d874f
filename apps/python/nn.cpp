// braid.nn: modules whose parameters are found among their attributes, the library's layers, optimizers.
#include <algorithm>

#include "apps/python/bindings.h"
#include "braid/nn.h"

namespace braid::python {

namespace {

using nn::Module;

// A module of Python: its parameters and children are its attributes, in the order in which they were set. Tensors that
// collect no gradient are its buffers, so that a frozen parameter is saved too.
class PythonModule final : public Module {
 public:
  void visit(nn::Visitor& v) const override {
    const nb::gil_scoped_acquire locked;
    const nb::object self = nb::find(static_cast<const Module*>(this));
    const Opened opened(self);
    if (opened.again) return;
    for (const auto& [name, value] : nb::cast<nb::dict>(self.attr("__dict__")))
      visit_attribute(v, nb::cast<std::string>(name), value);
  }

 private:
  // While a module is visited: what leads back to it, such as a child's attribute `parent`, meets it again.
  class Opened {
   public:
    explicit Opened(nb::handle value) : again(std::ranges::find(open_, value.ptr()) != open_.end()) {
      open_.push_back(value.ptr());
    }
    ~Opened() { open_.pop_back(); }
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;
    const bool again;

   private:
    inline static thread_local std::vector<PyObject*> open_;
  };

  // Lists, tuples and dicts of modules and parameters have one name for each entry: blocks.0, blocks.1.
  static void visit_attribute(nn::Visitor& v, const std::string& name, nb::handle value) {
    if (nb::isinstance<Module>(value)) {
      v(name, nb::cast<const Module&>(value));
    } else if (nb::isinstance<Tensor>(value)) {
      const Tensor& x = *nb::inst_ptr<Tensor>(value);
      if (requires_grad(x) && !x.has_history())
        v(name, x);
      else if (x && !x.has_history())
        v.buffer(name, x);
    } else if (nb::isinstance<nb::list>(value) || nb::isinstance<nb::tuple>(value)) {
      size_t i = 0;
      for (nb::handle entry : nb::borrow<nb::sequence>(value))
        visit_attribute(v, name + "." + std::to_string(i++), entry);
    } else if (nb::isinstance<nb::dict>(value)) {
      for (const auto& [key, entry] : nb::borrow<nb::dict>(value))
        visit_attribute(v, name + "." + nb::cast<std::string>(nb::str(key)), entry);
    }
  }
};

// Parameters that visit() would not find are refused.
int set_attribute(PyObject* self, PyObject* name, PyObject* value) noexcept {
  const char* wrong = nullptr;
  if (value != nullptr && (nb::isinstance<Module>(value) || nb::isinstance<Tensor>(value))) {
    if (!nb::inst_ready(self))
      wrong = "a module gets its parameters after super().__init__(): call it first";
    else if (dynamic_cast<const PythonModule*>(nb::inst_ptr<Module>(self)) == nullptr)
      wrong = "a layer of the library has its own parameters alone: put it and yours into a class derived from Module";
  }
  if (wrong == nullptr) return PyObject_GenericSetAttr(self, name, value);
  PyErr_SetString(PyExc_AttributeError, wrong);
  return -1;
}

PyType_Slot module_slots[] = {{Py_tp_setattro, reinterpret_cast<void*>(set_attribute)}, {0, nullptr}};

std::vector<NamedTensor> listed(const NamedDict& tensors) {
  std::vector<NamedTensor> list;
  for (const auto& [name, value] : tensors) list.emplace_back(nb::cast<std::string>(name), nb::cast<Tensor>(value));
  return list;
}

template <class Layer>
nb::class_<Layer, Module> layer(nb::module_& m, const char* name, const char* doc) {
  nb::class_<Layer, Module> c(m, name, doc);
  c.def(
      "__call__", [](const Layer& l, const Tensor& x) { return l(x); }, "x"_a, nb::call_guard<Unlocked>());
  return c;
}

// Size: Pixels or int64_t.
template <class Layer, class Size>
void convolution(nb::module_& m, const char* name, const char* doc, Size one, Size none) {
  layer<Layer>(m, name, doc)
      .def(
          "__init__",
          [](Layer* self, int64_t in, int64_t out, const Size& kernel, const Size& stride, const Size& padding,
             const Size& dilation, int64_t groups, bool same, bool bias, RandomKey key) {
            new (self) Layer(in, out, kernel,
                             {.stride = stride,
                              .padding = padding,
                              .dilation = dilation,
                              .groups = groups,
                              .same = same,
                              .bias = bias},
                             key);
          },
          "inputs"_a, "outputs"_a, "kernel"_a, "stride"_a = one, "padding"_a = none, "dilation"_a = one, "groups"_a = 1,
          "same"_a = false, "bias"_a = true, "key"_a = RandomKey{});
}

void bind_module(nb::module_& m) {
  nb::class_<Module, PythonModule> c(m, "Module", nb::dynamic_attr(), nb::is_weak_referenceable(),
                                     nb::type_slots(module_slots),
                                     "A part of a model. Attributes of a class derived from it that are parameters, "
                                     "modules, or lists or dicts of them are its parameters and children, under those "
                                     "names; other tensors are its buffers.");
  c.def(nb::init<>());
  c.def(
      "parameters", [](const Module& self) { return named(nn::parameters(self)); }, "By name, in order.");
  c.def(
      "buffers", [](const Module& self) { return named(nn::buffers(self)); },
      "Values that are saved but not trained, such as running statistics, by name.");
  c.def(
      "count", [](const Module& self) { return nn::count(self); }, "The number of elements of the parameters.");
  c.def("zero_grad", [](Module& self) { nn::zero_grad(self); });
  c.def(
      "freeze", [](Module& self) { nn::freeze(self); }, "No parameter collects a gradient any more.");
  c.def(
      "to", [](Module& self, DType dtype) { nn::to(self, dtype); }, "dtype"_a, "Converts every parameter.");
  c.def(
      "to", [](Module& self, Device device) { nn::to(self, device); }, "device"_a, "Moves every parameter.");
  c.def(
      "save", [](const Module& self, const std::filesystem::path& path) { nn::save(self, path.string()); }, "path"_a,
      "Writes parameters and buffers as one safetensors file.");
  c.def(
      "load", [](Module& self, const std::filesystem::path& path) { nn::load(self, path.string()); }, "path"_a,
      "Fills parameters and buffers from a safetensors file: all of them, or none and an InputError.");
  c.def(
      "load", [](Module& self, const NamedDict& tensors) { nn::load(self, listed(tensors), "a dict of tensors"); },
      "tensors"_a);
  m.def(
      "parameter", [](const Tensor& x) { return nn::parameter(x.detach()); }, "x"_a,
      "x as a leaf that collects a gradient: a parameter of the module whose attribute it becomes.");
}

void bind_layers(nb::module_& m) {
  layer<nn::Linear>(m, "Linear", "y = x W^T + b.  (..., inputs) -> (..., outputs)")
      .def(
          "__init__",
          [](nn::Linear* self, int64_t in, int64_t out, bool bias, RandomKey key) {
            new (self) nn::Linear(in, out, {.bias = bias}, key);
          },
          "inputs"_a, "outputs"_a, "bias"_a = false, "key"_a = RandomKey{})
      .def_prop_ro("weight", &nn::Linear::weight);
  layer<nn::Embedding>(m, "Embedding", "Looks up rows of a table.  ids (...) -> (..., width)")
      .def(
          "__init__",
          [](nn::Embedding* self, int64_t rows, int64_t width, double deviation, RandomKey key) {
            new (self) nn::Embedding(rows, width, nn::Init::normal(deviation), key);
          },
          "rows"_a, "width"_a, "deviation"_a = 1.0, "key"_a = RandomKey{})
      .def_prop_ro("weight", &nn::Embedding::weight);
  layer<nn::RmsNorm>(m, "RMSNorm", "y = x / sqrt(mean(x^2) + eps) * weight over the last axis.")
      .def(
          "__init__", [](nn::RmsNorm* self, int64_t width, double eps) { new (self) nn::RmsNorm(width, eps); },
          "width"_a, "eps"_a = 1e-5);
  layer<nn::LayerNorm>(m, "LayerNorm", "y = (x - mean) / sqrt(var + eps) * weight + bias over the last axis.")
      .def(
          "__init__", [](nn::LayerNorm* self, int64_t width, double eps) { new (self) nn::LayerNorm(width, eps); },
          "width"_a, "eps"_a = 1e-5);
  layer<nn::GroupNorm>(m, "GroupNorm", "Normalises groups of channels.  (B, C, ...) -> (B, C, ...)")
      .def(nb::init<int64_t, int64_t, double>(), "groups"_a, "channels"_a, "eps"_a = 1e-5);
  nb::class_<nn::BatchNorm, Module>(m, "BatchNorm", "Normalises channels over a batch.  (B, C, ...) -> (B, C, ...)")
      .def(
          "__init__",
          [](nn::BatchNorm* self, int64_t channels, double eps, double momentum, bool affine) {
            new (self) nn::BatchNorm(channels, {.eps = eps, .momentum = momentum, .affine = affine});
          },
          "channels"_a, "eps"_a = 1e-5, "momentum"_a = 0.1, "affine"_a = true)
      .def(
          "__call__", [](const nn::BatchNorm& l, const Tensor& x, bool train) { return l(x, mode_of(train)); }, "x"_a,
          "train"_a = false, nb::call_guard<Unlocked>());
  convolution<nn::Conv2d>(m, "Conv2d", "(B, C, H, W) -> (B, O, H', W')", Pixels{1, 1}, Pixels{0, 0});
  convolution<nn::Conv1d>(m, "Conv1d", "(B, C, L) -> (B, O, L')", int64_t{1}, int64_t{0});
  const auto recurrent = [&]<class Layer>(nb::class_<Layer, Module> c) {
    c.def(
        "__init__",
        [](Layer* self, int64_t in, int64_t width, int64_t layers, bool bidirectional, double dropout, bool bias,
           RandomKey key) {
          new (self) Layer(in, width,
                           {.layers = layers, .bidirectional = bidirectional, .dropout = dropout, .bias = bias}, key);
        },
        "inputs"_a, "width"_a, "layers"_a = 1, "bidirectional"_a = false, "dropout"_a = 0.0, "bias"_a = true,
        "key"_a = RandomKey{});
  };
  recurrent(layer<nn::Gru>(m, "GRU", "(B, T, inputs) -> (B, T, directions width)"));
  recurrent(layer<nn::Lstm>(m, "LSTM", "(B, T, inputs) -> (B, T, directions width)"));
}

struct PythonOptimizer {
  std::unique_ptr<nn::Optimizer> rule;
};

void bind_optimizers(nb::module_& m) {
  nb::class_<PythonOptimizer> c(m, "Optimizer", "Updates the parameters of a module by a rule: adamw, muon, sgd, ...");
  c.def(
      "__init__",
      [](PythonOptimizer* self, nb::object parameters, const std::string& rule, double lr, double beta1, double beta2,
         double eps, double weight_decay, double momentum) {
        nn::OptimizerOptions o;
        o.name = rule, o.lr = lr, o.beta1 = beta1, o.beta2 = beta2, o.eps = eps;
        o.weight_decay = weight_decay, o.momentum = momentum;
        check(nb::isinstance<Module>(parameters) || nb::isinstance<nb::dict>(parameters), ErrorKind::misuse,
              "Optimizer: expected a module, or a dict of tensors by name");
        std::vector<NamedTensor> list = nb::isinstance<Module>(parameters)
                                            ? nn::parameters(nb::cast<const Module&>(parameters))
                                            : listed(nb::cast<NamedDict>(parameters));
        new (self) PythonOptimizer{nn::make_optimizer(std::move(list), o)};
      },
      "parameters"_a, "rule"_a = "adamw", "lr"_a = 3e-4, "beta1"_a = 0.9, "beta2"_a = 0.95, "eps"_a = 1e-8,
      "weight_decay"_a = 0.1, "momentum"_a = 0.0, "parameters: of a module, or a dict of tensors by name.");
  c.def(
      "step",
      [](PythonOptimizer& self, std::optional<double> lr, double grad_scale) {
        self.rule->step(lr.value_or(self.rule->options().lr), grad_scale);
      },
      "lr"_a = nb::none(), "grad_scale"_a = 1.0, nb::call_guard<Unlocked>(),
      "One update of every parameter, or of none and an error.");
  c.def("zero_grad", [](PythonOptimizer& self) { self.rule->zero_grad(); });
  c.def(
      "state", [](const PythonOptimizer& self) { return named(self.rule->state()); },
      "Its state by name; the tensors share the optimizer's memory.");
  c.def(
      "load",
      [](PythonOptimizer& self, const NamedDict& state) { self.rule->load(listed(state), "a dict of tensors"); },
      "state"_a);
  c.def_prop_ro("steps", [](const PythonOptimizer& self) { return self.rule->steps(); });
  m.def(
      "global_norm", [](const Module& module) { return nn::global_norm(nn::parameters(module)); }, "module"_a,
      "The norm of all gradients together.");
  m.def("clip_factor", &nn::clip_factor, "norm"_a, "limit"_a,
        "The factor by which gradients of this norm stay within the limit: Optimizer.step(grad_scale=...).");
  m.def(
      "learning_rate",
      [](int64_t step, const std::string& kind, double peak, int64_t steps, int64_t warmup, double final_fraction,
         int64_t decay_steps, const std::string& tail) {
        return nn::learning_rate({.kind = nn::parse_schedule(kind),
                                  .peak = peak,
                                  .steps = steps,
                                  .warmup = warmup,
                                  .final_fraction = final_fraction,
                                  .decay_steps = decay_steps,
                                  .tail = nn::parse_schedule_tail(tail)},
                                 step);
      },
      "step"_a, "kind"_a = "cosine", "peak"_a = 3e-4, "steps"_a = 1000, "warmup"_a = 0, "final_fraction"_a = 0.1,
      "decay_steps"_a = 0, "tail"_a = "linear", "The learning rate of a schedule at a step.");
}

}  // namespace

void bind_nn(nb::module_& m) {
  bind_module(m);
  bind_layers(m);
  bind_attention_layers(m);
  bind_optimizers(m);
}

}  // namespace braid::python
