#include "braid/nn/module.h"

#include <algorithm>
#include <set>

#include "braid/autograd/record.h"
#include "braid/tensor/io/safetensors.h"
#include "braid/tensor/kernels/backend.h"
#include "braid/tensor/kernels/pointwise_ops.h"

namespace braid::nn {

void Visitor::operator()(const std::string& name, const Tensor& parameter, const ShardRule& rule) {
  if (parameter) action_(prefix_ + name, parameter, rule);
}

void Visitor::buffer(const std::string& name, const Tensor& values) {
  if (values && buffer_) buffer_(prefix_ + name, values);
}

void Visitor::operator()(const std::string& name, const Module& child) {
  if (enter_) enter_(prefix_ + name, child);
  std::string outer = prefix_;
  prefix_ += name + ".";
  child.visit(*this);
  prefix_ = outer;
}

namespace {
void each(const Module& m, Visitor::Action action) {
  Visitor v(std::move(action));
  m.visit(v);
}
void each_buffer(const Module& m, Visitor::BufferAction action) {
  Visitor v([](const std::string&, const Tensor&, const ShardRule&) {}, {}, std::move(action));
  m.visit(v);
}

// Parameters, then buffers.
std::vector<NamedTensor> state(const Module& m) {
  std::vector<NamedTensor> list = parameters(m);
  for (NamedTensor& b : buffers(m)) list.push_back(std::move(b));
  return list;
}
}  // namespace

Tensor parameter(Tensor x) {
  braid::require_grad(x);
  return x;
}

bool all_finite(const Tensor& x) {
  if (!is_float(x.dtype()) || x.numel() == 0) return true;
  // 0 * x is 0 for finite x and NaN otherwise, and NaN survives the sum. Kernels and no ops: BRAID_DEBUG=ops lists the
  // ops of the model, not those that inspect its weights.
  Tensor product = empty_like(x), total = empty({1}, x.dtype(), x.device());
  backend(x.device()).pointwise.unary(UnaryOp::affine, 0, 0, x.detach(), product);
  backend(x.device()).reduce.axes(ReduceOp::sum, product.reshaped({x.numel()}), total);
  return total.item() == 0;
}

std::vector<NamedTensor> parameters(const Module& m) {
  std::vector<NamedTensor> list;
  std::set<const void*> listed;
  each(m, [&](const std::string& name, const Tensor& p, const ShardRule&) {
    if (listed.insert(p.id()).second) list.push_back({name, p});
  });
  return list;
}

std::vector<NamedTensor> buffers(const Module& m) {
  std::vector<NamedTensor> list;
  each_buffer(m, [&](const std::string& name, const Tensor& values) { list.push_back({name, values}); });
  return list;
}

int64_t count(const Module& m) {
  int64_t n = 0;
  for (const NamedTensor& p : parameters(m)) n += p.value.numel();
  return n;
}

std::map<std::string, ShardRule> shard_rules(const Module& m) {
  std::map<std::string, ShardRule> rules;
  each(m, [&](const std::string& name, const Tensor&, const ShardRule& rule) { rules[name] = rule; });
  return rules;
}

void each_module(Module& m, const std::function<void(const std::string&, Module&)>& f) {
  Visitor v([](const std::string&, const Tensor&, const ShardRule&) {},
            [&](const std::string& name, const Module& child) {
              f(name, const_cast<Module&>(child));  // a part of m, which is not const: only visit() passes it as const
            });
  m.visit(v);
}

void check_separate(const std::vector<NamedTensor>& parameters) {
  struct Extent {
    const char *begin, *end;
    const std::string* name;
  };
  std::vector<Extent> extents;
  for (const auto& [name, x] : parameters) {
    check(x.is_contiguous(), "parameters", [&name = name] { return name + " is not contiguous"; });
    const char* begin = static_cast<const char*>(x.raw());
    if (x.numel() > 0) extents.push_back({begin, begin + x.numel() * size_of(x.dtype()), &name});
  }
  std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < extents.size(); ++i) {
    check(extents[i - 1].end <= extents[i].begin, "parameters", [&] {
      return *extents[i - 1].name + " and " + *extents[i].name +
             " share memory; tie parameters by giving both modules one handle, which parameters() then lists once";
    });
  }
}

void check_no_buffers(const Module& m, const char* what) {
  for (const NamedTensor& b : buffers(m))
    fail(ErrorKind::setting, str("the model has a buffer, ", b.name, ", which ", what,
                                 " would lose: they hold parameters alone; save it with nn::save"));
}

void check_not_quantized(const Module& m, const char* purpose) {
  for (const NamedTensor& p : parameters(m)) {
    check(is_float(p.value.dtype()), ErrorKind::setting, [&] {
      return "the model has quantised weights (" + p.name + "), which are for inference: it cannot be " + purpose +
             "; load it without them";
    });
  }
}

void require_grad(Module& m) {
  check_not_quantized(m, "trained");
  for (NamedTensor& p : parameters(m)) braid::require_grad(p.value);
}

void freeze(Module& m) {
  for (NamedTensor& p : parameters(m)) {
    if (requires_grad(p.value)) braid::require_grad(p.value, false);
  }
}

void zero_grad(Module& m) {
  for (const NamedTensor& p : parameters(m)) {
    if (requires_grad(p.value)) braid::zero_grad(p.value);
  }
}

void replace_parameters(Module& m, const MakeParameter& make) {
  std::map<const void*, Tensor> made;  // by the id of the old handle, which the replacement of a tie looks up
  std::set<const Tensor*> replaced;    // the members: a module may be visited under two names
  each(m, [&](const std::string& name, const Tensor& old, const ShardRule&) {
    if (!replaced.insert(&old).second) return;
    auto [it, first] = made.try_emplace(old.id());
    if (first) it->second = make(name, old);
    const_cast<Tensor&>(old) = it->second;  // a member of m, which is not const: only visit() passes it as const
  });
}

namespace {
template <class Target>
void convert(Module& m, Target target) {
  std::set<std::string> kept;  // quantised weights and their scales have types of their own
  if (std::is_same_v<Target, DType>) {
    each(m, [&](const std::string& name, const Tensor& old, const ShardRule&) {
      if (is_float(old.dtype())) return;
      kept.insert(name);
      if (name.ends_with("weight")) kept.insert(name.substr(0, name.size() - 6) + "scale");
    });
  }
  replace_parameters(m, [&](const std::string& name, const Tensor& old) {
    if (kept.contains(name)) return old;
    Tensor x = old.detach().to(target);
    return requires_grad(old) ? parameter(x) : x;
  });
  each_buffer(m, [&](const std::string&, const Tensor& old) {
    if (std::is_same_v<Target, DType> && !is_float(old.dtype())) return;
    const_cast<Tensor&>(old) = old.to(target);  // as in replace_parameters
  });
}
}  // namespace

void to(Module& m, DType dtype) {
  if (dtype != DType::f32) check_not_quantized(m, str("converted to ", dtype).c_str());
  convert(m, dtype);
}
void to(Module& m, Device device) { convert(m, device); }

void load(Module& m, const std::vector<NamedTensor>& source, const std::string& what) {
  check_not_quantized(m, "filled with other weights");
  std::map<std::string, const Tensor*> given;
  for (const NamedTensor& t : source) given[t.name] = &t.value;
  std::string problems;
  int found = 0;
  auto problem = [&](const std::string& text) {
    if (++found <= 20) problems += (problems.empty() ? "" : "; ") + text;
  };
  for (const auto& [name, p] : state(m)) {
    auto it = given.find(name);
    if (it == given.end()) {
      problem(str(name, " is missing (expected ", p.shape(), ")"));
      continue;
    }
    const Tensor& x = *it->second;
    if (!(x.shape() == p.shape())) {
      problem(str(name, " has shape ", x.shape(), ", expected ", p.shape()));
    } else if (!all_finite(x)) {
      problem(str(name, " ", x.shape(), " contains NaN or Inf"));
    } else if (x.dtype() != p.dtype() && size_of(p.dtype()) <= size_of(x.dtype()) && !all_finite(x.to(p.dtype()))) {
      problem(str(name, " ", x.shape(), " contains numbers beyond ", p.dtype()));
    }
    given.erase(it);
  }
  for (const auto& [name, tensor] : given)
    problem(str(name, " ", tensor->shape(), " is not a parameter of this model"));
  if (found > 20) problems += str("; and ", found - 20, " more");
  check(found == 0, ErrorKind::input, [&] { return "the weights in " + what + " do not fit the model: " + problems; });
  for (const NamedTensor& t : source) given[t.name] = &t.value;
  for (NamedTensor& p : state(m)) p.value.copy_(*given[p.name]);
}

void save(const Module& m, const std::string& path) {
  check_not_quantized(m, "saved");
  io::save_safetensors(path, state(m));
}

void load(Module& m, const std::string& path) {
  const io::TensorFiles files(path);
  std::vector<NamedTensor> source;
  for (const io::TensorInfo& info : files.tensors()) source.push_back({info.name, files.load(info.name)});
  load(m, source, files.path());
}

}  // namespace braid::nn
