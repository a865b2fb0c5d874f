// Module: a plain class whose `visit` names each parameter and child once. The names are the checkpoint's names.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "braid/tensor/tensor.h"

namespace braid::nn {

class Module;

struct NamedTensor {
  std::string name;
  Tensor value;
};

// Walks a module tree; a module's visit calls it once per parameter and child.
class Visitor {
 public:
  using Action = std::function<void(const std::string& name, Tensor& parameter)>;
  explicit Visitor(Action action) : action_(std::move(action)) {}
  void operator()(const std::string& name, Tensor& parameter);  // empty handles (an unused bias) are passed over
  void operator()(const std::string& name, Module& child);

 private:
  Action action_;
  std::string prefix_;
};

class Module {
 public:
  virtual ~Module() = default;
  virtual void visit(Visitor& v) = 0;

 protected:
  Module() = default;
  Module(const Module&) = default;
  Module(Module&&) = default;
  Module& operator=(const Module&) = default;
  Module& operator=(Module&&) = default;
};

std::vector<NamedTensor> parameters(Module& m);  // handles, in visiting order
int64_t count(Module& m);                        // number of elements
void require_grad(Module& m);                    // marks every parameter as a leaf
void zero_grad(Module& m);
void to(Module& m, DType dtype);  // replaces the parameters; wanted gradients stay wanted, gradients are dropped
void to(Module& m, Device device);

bool all_finite(const Tensor& x);  // no NaN and no Inf

// Fills every parameter from `source`. All missing, surplus and mis-shaped names and all tensors with NaN or Inf are
// reported together in one Error(input); then nothing has been changed.
void load(Module& m, const std::vector<NamedTensor>& source, const std::string& what);

}  // namespace braid::nn
