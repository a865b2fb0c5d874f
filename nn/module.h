// Module: a plain class whose `visit` names each parameter and each child once. The names are those of its files.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "braid/nn/shard_rule.h"
#include "braid/tensor/tensor.h"

namespace braid::nn {

using braid::NamedTensor;

class Module;

// Walks a tree of modules; a module's visit calls it once per parameter and child.
class Visitor {
 public:
  using Action = std::function<void(const std::string& name, const Tensor& parameter, const ShardRule& rule)>;
  using ModuleAction = std::function<void(const std::string& name, const Module& child)>;  // before its parameters
  using BufferAction = std::function<void(const std::string& name, const Tensor& values)>;
  explicit Visitor(Action action, ModuleAction enter = {}, BufferAction buffer = {})
      : action_(std::move(action)), enter_(std::move(enter)), buffer_(std::move(buffer)) {}
  // Skips empty handles (an unused bias).
  void operator()(const std::string& name, const Tensor& parameter, const ShardRule& rule = {});
  void operator()(const std::string& name, const Module& child);
  // Values that belong to the module but are not trained, such as running statistics: saved, loaded and converted with
  // the parameters, and in no list of them.
  void buffer(const std::string& name, const Tensor& values);

 private:
  Action action_;
  ModuleAction enter_;
  BufferAction buffer_;
  std::string prefix_;
};

class Module {
 public:
  virtual ~Module() = default;
  virtual void visit(Visitor& v) const = 0;

 protected:
  Module() = default;
  Module(const Module&) = default;
  Module(Module&&) = default;
  Module& operator=(const Module&) = default;
  Module& operator=(Module&&) = default;
};

// Marks x as a parameter: a leaf that collects a gradient. Layers wrap each of their parameters in it:
//   Linear(...) : weight_(parameter(init.make({out, in}, key)))
Tensor parameter(Tensor x);

// A tied parameter (one handle, or one module, under several names) is listed, counted and loaded once, under its first
// name.
std::vector<NamedTensor> parameters(const Module& m);  // handles, in visiting order
std::vector<NamedTensor> buffers(const Module& m);     // the same of buffers
int64_t count(const Module& m);                        // number of elements of the parameters
// The rules of the parameters, by name.
std::map<std::string, ShardRule> shard_rules(const Module& m);
// Calls f for every module below m, in visiting order.
void each_module(Module& m, const std::function<void(const std::string& name, Module& module)>& f);
// Throws when two of them share elements: each would be updated as if it were alone.
void check_separate(const std::vector<NamedTensor>& parameters);

void require_grad(Module& m);  // every parameter collects a gradient: the state after construction
void freeze(Module& m);        // no parameter does, so that a pass through the module alone records nothing
void zero_grad(Module& m);     // drops the gradients

// Replaces every parameter by make(name, old). Ties are kept: a tied parameter is made once.
using MakeParameter = std::function<Tensor(const std::string& name, const Tensor& old)>;
void replace_parameters(Module& m, const MakeParameter& make);
// Replaces parameters and buffers by converted copies; those that collected gradients still do, the gradients are
// dropped.
void to(Module& m, DType dtype);  // 8-bit weights stay; with them, only f32 is allowed
void to(Module& m, Device device);

// Throws Error(setting) when m has buffers: what is called `what` holds parameters alone, and would lose them.
void check_no_buffers(const Module& m, const char* what);
// Throws Error(setting) "... it cannot be PURPOSE" when m has quantised weights (quantize.h). purpose: "trained".
void check_not_quantized(const Module& m, const char* purpose);

bool all_finite(const Tensor& x);  // no NaN and no Inf

// Fills every parameter and buffer from `source`. All missing, surplus and mis-shaped names and all tensors with NaN or
// Inf, or with numbers that the module's type rounds to Inf, are reported together in one Error(input) that names
// `what`; then nothing has been changed.
void load(Module& m, const std::vector<NamedTensor>& source, const std::string& what);

// Parameters and buffers as one safetensors file, under their names. Error(output) when it cannot be written.
void save(const Module& m, const std::string& path);
// Fills them from such a file, or from a folder with model.safetensors; errors as above. Element types are converted to
// the module's.
void load(Module& m, const std::string& path);

}  // namespace braid::nn
