#include "braid/nn/module.h"

#include <cmath>
#include <map>

#include "braid/autograd/ops.h"

namespace braid::nn {

void Visitor::operator()(const std::string& name, Tensor& parameter) {
  if (parameter) action_(prefix_ + name, parameter);
}

void Visitor::operator()(const std::string& name, Module& child) {
  std::string outer = prefix_;
  prefix_ += name + ".";
  child.visit(*this);
  prefix_ = outer;
}

namespace {
void each(Module& m, Visitor::Action action) {
  Visitor v(std::move(action));
  m.visit(v);
}

template <class Convert>
void replace(Module& m, Convert convert) {
  each(m, [&](const std::string&, Tensor& p) {
    bool wanted = requires_grad(p);
    p = convert(p.detach());
    if (wanted) braid::require_grad(p);
  });
}

}  // namespace

bool all_finite(const Tensor& x) {
  if (!is_float(x.dtype())) return true;
  // 0 * x is 0 for finite x and NaN otherwise, and NaN survives the sum.
  NoGrad off;
  return x.numel() == 0 || sum(scale(x, 0)).item() == 0;
}
std::vector<NamedTensor> parameters(Module& m) {
  std::vector<NamedTensor> list;
  each(m, [&](const std::string& name, Tensor& p) { list.push_back({name, p}); });
  return list;
}

int64_t count(Module& m) {
  int64_t n = 0;
  each(m, [&](const std::string&, Tensor& p) { n += p.numel(); });
  return n;
}

void require_grad(Module& m) {
  each(m, [](const std::string&, Tensor& p) { braid::require_grad(p); });
}

void zero_grad(Module& m) {
  each(m, [](const std::string&, Tensor& p) { braid::zero_grad(p); });
}

void to(Module& m, DType dtype) {
  replace(m, [&](const Tensor& p) { return p.to(dtype); });
}

void to(Module& m, Device device) {
  replace(m, [&](const Tensor& p) { return p.to(device); });
}

void load(Module& m, const std::vector<NamedTensor>& source, const std::string& what) {
  std::map<std::string, const Tensor*> given;
  for (const NamedTensor& t : source) given[t.name] = &t.value;
  std::string problems;
  int found = 0;
  auto problem = [&](const std::string& text) {
    if (++found <= 20) problems += (problems.empty() ? "" : "; ") + text;
  };
  each(m, [&](const std::string& name, Tensor& p) {
    auto it = given.find(name);
    if (it == given.end()) {
      problem(name + " is missing (expected " + str(p.shape()) + ")");
      return;
    }
    const Tensor& x = *it->second;
    if (!(x.shape() == p.shape())) {
      problem(name + " has shape " + str(x.shape()) + ", expected " + str(p.shape()));
    } else if (!all_finite(x)) {
      problem(name + " " + str(x.shape()) + " contains NaN or Inf");
    }
    given.erase(it);
  });
  for (const auto& [name, tensor] : given)
    problem(name + " " + str(tensor->shape()) + " is not a parameter of this model");
  if (found > 20) problems += "; and " + std::to_string(found - 20) + " more";
  check(found == 0, ErrorKind::input, [&] { return "the weights in " + what + " do not fit the model: " + problems; });
  for (const NamedTensor& t : source) given[t.name] = &t.value;
  each(m, [&](const std::string& name, Tensor& p) { p.copy_(*given[name]); });
}

}  // namespace braid::nn
