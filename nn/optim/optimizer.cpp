#include "braid/nn/optim/optimizer.h"

#include <cmath>
#include <map>
#include <set>

#include "braid/autograd/record.h"
#include "braid/tensor/kernels/backend.h"

namespace braid::nn {

namespace {

DType moment_type(const Tensor& p) { return p.dtype() == DType::f64 ? DType::f64 : DType::f32; }

// "a, b, c and 4 more"
std::string list(const std::vector<std::string>& names) {
  constexpr size_t kShown = 20;
  std::string text;
  for (size_t i = 0; i < names.size() && i < kShown; ++i) text += (i > 0 ? ", " : "") + names[i];
  if (names.size() > kShown) text += " and " + std::to_string(names.size() - kShown) + " more";
  return text;
}

void check_range(bool ok, const char* name, double value, const char* range) {
  check(ok, ErrorKind::setting, [&] {
    return std::string("optimizer setting ") + name + " must be " + range + ", found " + std::to_string(value);
  });
}

}  // namespace

OptimizerOptions::Name parse_optimizer(const std::string& text) {
  if (text == "adamw") return OptimizerOptions::Name::adamw;
  if (text == "adam") return OptimizerOptions::Name::adam;
  if (text == "sgd") return OptimizerOptions::Name::sgd;
  fail(ErrorKind::setting, "unknown optimizer '" + text + "': expected adamw, adam or sgd");
}

OptimizerOptions::Decay parse_decay(const std::string& text) {
  if (text == "all") return OptimizerOptions::Decay::all;
  if (text == "matrices") return OptimizerOptions::Decay::matrices;
  fail(ErrorKind::setting, "unknown weight decay rule '" + text + "': expected all or matrices");
}

std::vector<std::string> state_endings(const OptimizerOptions& options) {
  if (options.name != OptimizerOptions::Name::sgd) return {".first", ".second"};
  return options.momentum > 0 ? std::vector<std::string>{".momentum"} : std::vector<std::string>{};
}

Optimizer::Optimizer(std::vector<NamedTensor> parameters, const OptimizerOptions& options)
    : parameters_(std::move(parameters)), options_(options) {
  const OptimizerOptions& o = options_;
  check_range(o.beta1 >= 0 && o.beta1 < 1, "beta1", o.beta1, "at least 0 and below 1");
  check_range(o.beta2 >= 0 && o.beta2 < 1, "beta2", o.beta2, "at least 0 and below 1");
  check_range(o.eps >= 0, "eps", o.eps, "at least 0");
  check_range(o.weight_decay >= 0, "weight_decay", o.weight_decay, "at least 0");
  check_range(o.momentum >= 0 && o.momentum < 1, "momentum", o.momentum, "at least 0 and below 1");
  const Device device = parameters_.empty() ? kCpu : parameters_[0].value.device();
  scalars_ = empty({4}, DType::f64, device);
  std::set<std::string> names;
  MemoryScope scope(MemoryUse::optimizer);
  for (const NamedTensor& p : parameters_) {
    check(names.insert(p.name).second, "optimizer", [&] { return "two parameters are called " + p.name; });
    check(p.value && is_float(p.value.dtype()) && p.value.is_contiguous(), "optimizer",
          [&] { return p.name + " must be a contiguous floating-point tensor"; });
    check(requires_grad(p.value) && !p.value.has_history(), "optimizer",
          [&] { return p.name + " is not a leaf made by require_grad()"; });
    check(p.value.device() == device, "optimizer", [&] {
      return p.name + " is on " + str(p.value.device()) + ", but " + parameters_[0].name + " on " + str(device) +
             "; all parameters must be on one device";
    });
    Slot slot{{}, {}, o.decay == OptimizerOptions::Decay::all || p.value.rank() >= 2};
    auto moment = [&] { return zeros(p.value.shape(), moment_type(p.value), p.value.device()); };
    if (o.name != OptimizerOptions::Name::sgd) {
      slot.first = moment();
      slot.second = moment();
    } else if (o.momentum > 0) {
      slot.first = moment();
    }
    slots_.push_back(std::move(slot));
  }
}

void Optimizer::check_gradients(MissingGradient missing) const {
  std::vector<std::string> without;
  for (const NamedTensor& p : parameters_) {
    if (!grad(p.value)) without.push_back(p.name);
  }
  check(without.empty() || missing == MissingGradient::skip, "optimizer", [&] {
    return "no gradient has arrived for " + list(without) + "; run backward() first, or skip them on purpose";
  });
}

void Optimizer::step(double lr, double grad_scale, MissingGradient missing) {
  check_gradients(missing);  // before the update is counted
  prepare(lr, grad_scale);
  apply(missing);
}

void Optimizer::prepare(double lr, double grad_scale) {
  const auto t = static_cast<double>(++steps_);
  auto correction = [&](double beta) { return 1 / (1 - std::pow(beta, t)); };
  const StepScalars now{lr, grad_scale, correction(options_.beta1), correction(options_.beta2)};
  scalars_.copy_(from_values({now.lr, now.grad_scale, now.first_scale, now.second_scale}, {4}, DType::f64));
}

void Optimizer::apply(MissingGradient missing) {
  check_gradients(missing);
  const OptimizerOptions& o = options_;
  AdamWStep adamw{{}, o.beta1, o.beta2, o.eps, o.name == OptimizerOptions::Name::adam, scalars_};
  SgdStep sgd{{}, o.momentum, scalars_};
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor& p = parameters_[i].value;
    if (!grad(p)) continue;
    const Slot& slot = slots_[i];
    const double decay = slot.decays ? o.weight_decay : 0;
    if (o.name == OptimizerOptions::Name::sgd) {
      sgd.items.push_back({p, grad(p).contiguous(), slot.first, decay});
    } else {
      adamw.items.push_back({p, grad(p).contiguous(), slot.first, slot.second, decay});
    }
  }
  const Backend& b = backend(scalars_.device());
  o.name == OptimizerOptions::Name::sgd ? b.optimizer.sgd(sgd) : b.optimizer.adamw(adamw);
}

void Optimizer::zero_grad() {
  for (const NamedTensor& p : parameters_) braid::zero_grad(p.value);
}

std::vector<NamedTensor> Optimizer::state() const {
  std::vector<std::string> endings = state_endings(options_);
  std::vector<NamedTensor> out{{"steps", from_vector(std::vector<int64_t>{steps_}, {1})}};
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (slots_[i].first) out.push_back({parameters_[i].name + endings[0], slots_[i].first});
    if (slots_[i].second) out.push_back({parameters_[i].name + endings[1], slots_[i].second});
  }
  return out;
}

void Optimizer::load(const std::vector<NamedTensor>& source, const std::string& what) {
  std::map<std::string, Tensor> given;
  for (const NamedTensor& t : source) given[t.name] = t.value;
  std::vector<NamedTensor> own = state();
  std::vector<std::string> problems;
  for (const NamedTensor& t : own) {
    auto it = given.find(t.name);
    if (it == given.end()) {
      problems.push_back(t.name + " is missing (expected " + str(t.value.shape()) + ")");
      continue;
    }
    const Tensor& x = it->second;
    if (!(x.shape() == t.value.shape()) || x.dtype() != t.value.dtype()) {
      problems.push_back(t.name + " is " + str(x.dtype()) + " " + str(x.shape()) + ", expected " +
                         str(t.value.dtype()) + " " + str(t.value.shape()));
    } else if (t.name == "steps" && x.item() < 0) {
      problems.push_back("steps is negative");
    }
    given.erase(it);
  }
  for (const auto& [name, tensor] : given)
    problems.push_back(name + " " + str(tensor.shape()) + " is not part of this optimizer");
  check(problems.empty(), ErrorKind::input,
        [&] { return "the optimizer state in " + what + " does not fit: " + list(problems); });
  for (const NamedTensor& t : source) given[t.name] = t.value;
  for (NamedTensor& t : own) {
    if (t.name == "steps") {
      steps_ = given[t.name].to_vector<int64_t>()[0];
    } else {
      t.value.copy_(given[t.name]);
    }
  }
}

}  // namespace braid::nn
