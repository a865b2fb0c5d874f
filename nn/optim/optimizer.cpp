#include "braid/nn/optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "braid/autograd/ops.h"
#include "braid/autograd/record.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/kernels/backend.h"
#include "braid/tensor/layer_scope.h"

namespace braid::nn {

namespace {

// "a, b, c and 4 more"
std::string list(const std::vector<std::string>& names) {
  constexpr size_t kMaxNames = 20;
  std::string text;
  for (size_t i = 0; i < names.size() && i < kMaxNames; ++i) text += (i > 0 ? ", " : "") + names[i];
  if (names.size() > kMaxNames) text += str(" and ", names.size() - kMaxNames, " more");
  return text;
}

// Why a tensor cannot be a state of the optimizer; "" when it can.
std::string problem_of(const std::string& name, const Tensor& x) {
  const NoGrad off;
  if (name == "steps") return x.item() < 0 ? "steps is negative" : "";
  if (!all_finite(x)) return name + " contains NaN or Inf";
  const bool negative = is_second_moment(name) && x.numel() > 0 && sum(cast(x < 0, DType::f32)).item() > 0;
  return negative ? name + " is a mean of squares, but contains negative values" : "";
}

}  // namespace

bool is_second_moment(const std::string& name) { return name.ends_with(".second"); }

void check_setting(bool ok, const char* name, double value, const char* range) {
  check(ok, ErrorKind::setting,
        [&] { return str("optimizer setting ", name, " must be ", range, ", found ", detail::shortest(value)); });
}

OptimizerOptions::Decay parse_decay(const std::string& text) {
  if (text == "all") return OptimizerOptions::Decay::all;
  if (text == "matrices") return OptimizerOptions::Decay::matrices;
  fail(ErrorKind::setting, "unknown weight decay rule '" + text + "': expected all or matrices");
}

MuonOptions::Scale parse_muon_scale(const std::string& text) {
  if (text == "rms") return MuonOptions::Scale::rms;
  if (text == "spectral") return MuonOptions::Scale::spectral;
  fail(ErrorKind::setting, "unknown muon.scale '" + text + "': expected rms or spectral");
}

MuonOptions::Normalise parse_muon_normalise(const std::string& text) {
  using enum MuonOptions::Normalise;
  for (const auto& [name, value] : {std::pair{"none", none}, {"rows", rows}, {"columns", columns}, {"both", both}})
    if (text == name) return value;
  fail(ErrorKind::setting, "unknown muon.normalise '" + text + "': expected none, rows, columns or both");
}

Optimizer::Optimizer(std::vector<NamedTensor> parameters, const OptimizerOptions& options,
                     const std::vector<std::string>& state_suffixes,
                     const std::optional<std::vector<std::string>>& matrix_suffixes)
    : parameters_(std::move(parameters)),
      options_(options),
      suffixes_(state_suffixes),
      of_matrices_(matrix_suffixes.value_or(std::vector<std::string>())) {
  for (const ParameterGroup& group : options.groups)
    check(matrix_suffixes || group.elementwise.value_or(true), ErrorKind::setting, [&] {
      return str("optimizer.groups: '", group.pattern,
                 " update=matrix' needs a rule that updates whole matrices, found ", options.name,
                 "; set optimizer.name to muon or leave it out");
    });
  check_setting(options.weight_decay >= 0, "weight_decay", options.weight_decay, "at least 0");
  const Device device = parameters_.empty() ? kCpu : parameters_[0].value.device();
  std::set<std::string> names;
  for (const NamedTensor& p : parameters_) {
    check(names.insert(p.name).second, "optimizer", [&] { return "two parameters are called " + p.name; });
    check(p.value && is_float(p.value.dtype()) && p.value.is_contiguous(), "optimizer",
          [&] { return p.name + " must be a contiguous floating-point tensor"; });
    check(requires_grad(p.value) && !p.value.has_history(), "optimizer", [&] {
      return p.name + " is not a leaf made by require_grad(): leave out frozen parameters, or require_grad(model)";
    });
    check(p.value.device() == device, "optimizer", [&] {
      return str(p.name, " is on ", p.value.device(), ", but ", parameters_[0].name, " on ", device,
                 "; all parameters must be on one device");
    });
    MemoryScope scope(MemoryUse::optimizer);
    std::vector<Tensor> state;
    by_matrix_.push_back(matrix_suffixes && is_matrix(options.groups, p));
    for (size_t i = 0; i < suffixes_of(states_.size()).size(); ++i)
      state.push_back(zeros(p.value.shape(), accumulate_type(p.value.dtype()), device));
    states_.push_back(std::move(state));
    const ParameterRule rule = rule_of(options.groups, p.name);
    const bool decays = options.decay == OptimizerOptions::Decay::all || p.value.rank() >= 2;
    decay_.push_back(rule.weight_decay.value_or(decays ? options.weight_decay : 0));
    auto group = std::ranges::find_if(groups_, [&](const Group& g) {
      return g.lr == rule.lr && g.tail == rule.tail && g.frozen_until == rule.frozen_until;
    });
    if (group == groups_.end()) group = groups_.insert(group, {rule.lr, rule.tail, rule.frozen_until, {}});
    group->members.push_back(decay_.size() - 1);
  }
  std::ranges::sort(groups_, {}, [](const Group& g) { return std::tuple(g.lr, g.tail, g.frozen_until); });
  copies_.resize(parameters_.size());
  scalars_ = empty({static_cast<int64_t>(groups_.size()), 4}, DType::f64, device);
  check_separate(parameters_);
  check_rate(options.lr);
}

double Optimizer::largest() const {
  const bool f64 = std::ranges::all_of(parameters_, [](const auto& p) { return p.value.dtype() == DType::f64; });
  return f64 ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
}

double Optimizer::smallest() const {
  const bool f64 = std::ranges::all_of(parameters_, [](const auto& p) { return p.value.dtype() == DType::f64; });
  return f64 ? std::numeric_limits<double>::min() : std::numeric_limits<float>::min();
}

void Optimizer::check_rate(double lr) const {
  if (std::fabs(lr) <= largest()) return;
  check_setting(std::isfinite(lr), "lr", lr, "finite");
  const std::string range = "at most " + detail::shortest(largest()) + ", which the type of the update holds";
  check_setting(false, "lr", lr, range.c_str());
}

std::array<double, 2> Optimizer::bias_corrections(int64_t) const { return {1, 1}; }

void Optimizer::set_copies(std::vector<Tensor> copies) {
  check(copies.size() == parameters_.size(), "optimizer",
        [&] { return str(copies.size(), " copies do not fit ", parameters_.size(), " parameters"); });
  for (size_t i = 0; i < copies.size(); ++i) {
    if (!copies[i]) continue;
    const Tensor &x = parameters_[i].value, &y = copies[i];
    const bool narrow = x.dtype() == DType::f32 && (y.dtype() == DType::bf16 || y.dtype() == DType::f16);
    check(narrow && y.shape() == x.shape() && y.device() == x.device() && y.is_contiguous(), "optimizer", [&] {
      return str("the copy of ", parameters_[i].name, " is ", y.dtype(), " ", y.shape(), " on ", y.device(),
                 ", expected bf16 or f16 ", x.shape(), " on ", x.device(), ", contiguous, of an f32 parameter");
    });
  }
  copies_ = std::move(copies);
}

void Optimizer::round_stochastically(RandomKey key, std::vector<std::vector<ElementSpan>> spans) {
  const Device device = scalars_.device();
  check(device == kCpu, ErrorKind::setting, [&] {
    return str("stochastic rounding of weights is for the CPU, found ", device,
               ": expected f32 master weights there (train.rounding = nearest)");
  });
  if (spans.empty()) spans.resize(parameters_.size());
  check(spans.size() == parameters_.size(), "optimizer",
        [&] { return str("spans of ", spans.size(), " parameters do not fit ", parameters_.size()); });
  rounding_ = {key, std::move(spans)};
}

// The gradients of update number `update`.
void Optimizer::check_gradients(MissingGradient missing, int64_t update) const {
  std::vector<std::string> without, unlike;
  const auto kind = [](const Tensor& x) { return str(x.dtype(), " ", x.shape(), " on ", x.device()); };
  for (const Group& group : groups_) {
    if (update <= group.frozen_until) continue;
    for (const size_t i : group.members) {
      const Tensor &x = parameters_[i].value, g = grad(x);
      if (!g) without.push_back(parameters_[i].name);
      const auto has_type = [&] {
        return g.dtype() == x.dtype() || g.dtype() == accumulate_type(x.dtype()) ||
               (copies_[i] && g.dtype() == copies_[i].dtype());
      };
      const bool fits = !g || (has_type() && g.shape() == x.shape() && g.device() == x.device());
      if (!fits) unlike.push_back(parameters_[i].name + " is " + kind(g) + ", expected " + kind(x));
    }
  }
  check(without.empty() || missing == MissingGradient::skip, "optimizer", [&] {
    return "no gradient has arrived for " + list(without) + "; run backward() first, or skip them on purpose";
  });
  check(unlike.empty(), "optimizer", [&] { return "gradients do not fit their parameters: " + list(unlike); });
}

void Optimizer::step(const Rates& lr, double grad_scale, MissingGradient missing) {
  check_gradients(missing, steps_ + 1);  // before the update is counted; apply() checks for those who call it alone
  prepare(lr, grad_scale);
  apply(missing);
}

void Optimizer::prepare(const Rates& lr, double grad_scale) {
  for (const Group& group : groups_) check_rate(lr.of(group.tail) * group.lr);
  ++steps_;
  std::vector<double> scalars;
  for (const Group& group : groups_) {
    const auto [first, second] = bias_corrections(std::max<int64_t>(1, steps_ - group.frozen_until));
    scalars.insert(scalars.end(), {lr.of(group.tail) * group.lr, grad_scale, first, second});
  }
  scalars_.copy_(from_vector(scalars, scalars_.shape()));
}

void Optimizer::apply(MissingGradient missing) {
  const LayerScope layer("optimizer");
  check_gradients(missing, steps_);
  for (size_t g = 0; g < groups_.size(); ++g) {
    if (steps_ <= groups_[g].frozen_until) continue;
    std::vector<Item> items, matrices;
    std::vector<size_t> rounded;
    for (const size_t i : groups_[g].members) {
      Tensor p = parameters_[i].value;
      if (!grad(p)) continue;
      p.storage().count_write("optimizer");  // so that backward() notices a graph that was recorded before the update
      if (rounding_ && p.dtype() == DType::bf16) {
        rounded.push_back(i);
        continue;
      }
      const Tensor gradient = copies_[i] ? grad(p) : grad(p).to(p.dtype());
      (by_matrix_[i] ? matrices : items)
          .push_back({p, gradient.contiguous(), states_[i], decay_[i], copies_[i], parameters_[i].name});
    }
    const auto row = static_cast<int64_t>(g);
    const Tensor scalars = scalars_.sliced(0, row, row + 1).reshaped({4});
    copies_written_ = false;
    if (!items.empty()) update(items, scalars);
    for (Item& item : items)
      if (item.copy && !copies_written_) item.copy.copy_(item.parameter);
    if (!matrices.empty()) update_matrices(matrices, scalars);
    for (Item& item : matrices)
      if (item.copy) item.copy.copy_(item.parameter);
    update_and_round(rounded, scalars);
  }
}

// Parts of parameters in f32 exist a few at a time; matrices, whose ranks wait for each other, one at a time.
void Optimizer::update_and_round(const std::vector<size_t>& members, const Tensor& scalars) {
  constexpr int64_t kElements = 1 << 22;
  struct Part {
    size_t of;
    int64_t begin;
    Tensor wide, gradient;
    std::vector<Tensor> state;
  };
  const NoGrad off;
  std::vector<Part> parts;
  int64_t elements = 0;
  const auto finish = [&] {
    std::vector<Item> items;
    for (const Part& p : parts)
      items.push_back({p.wide, p.gradient, p.state, decay_[p.of], {}, parameters_[p.of].name});
    if (!parts.empty()) by_matrix_[parts[0].of] ? update_matrices(items, scalars) : update(items, scalars);
    for (const Part& p : parts) {
      const RandomKey key = child(child(rounding_->key, steps_), parameters_[p.of].name.c_str());
      round_at_random(p.wide, key, rounding_->spans[p.of], p.begin, parameters_[p.of].value.detach());
    }
    parts.clear(), elements = 0;
  };
  const auto add = [&](size_t i, int64_t begin, int64_t end) {
    const auto part = [&](const Tensor& x) {
      return by_matrix_[i] ? x : x.reshaped({x.numel()}).sliced(0, begin, end);
    };
    const Tensor p = parameters_[i].value.detach();
    parts.push_back(
        {i, begin, part(p).to(DType::f32), part(grad(parameters_[i].value).contiguous()).to(DType::f32), {}});
    for (const Tensor& state : states_[i]) parts.back().state.push_back(part(state));
    if ((elements += end - begin) >= kElements || by_matrix_[i]) finish();
  };
  for (const bool matrices : {false, true}) {
    for (const size_t i : members) {
      if (by_matrix_[i] != matrices) continue;
      const int64_t n = parameters_[i].value.numel();
      if (matrices) add(i, 0, n);
      for (int64_t begin = 0; !matrices && begin < n; begin += kElements) add(i, begin, std::min(n, begin + kElements));
    }
    finish();
  }
}

void Optimizer::fused_update(UpdateRule rule, const std::array<double, 4>& constants, const std::vector<Item>& items,
                             const Tensor& scalars) {
  UpdateStep step{{}, constants, scalars};
  for (const Item& i : items)
    step.items.push_back({i.parameter, i.gradient, {i.state.begin(), i.state.end()}, i.weight_decay, i.copy});
  backend(scalars.device()).optimizer.update(rule, step);
  copies_written_ = true;
}

void Optimizer::zero_grad() {
  for (const NamedTensor& p : parameters_) {
    if (requires_grad(p.value)) braid::zero_grad(p.value);
  }
}

std::vector<NamedTensor> Optimizer::state() const {
  std::vector<NamedTensor> out{{"steps", from_vector(std::vector<int64_t>{steps_}, {1})}};
  for (size_t i = 0; i < parameters_.size(); ++i) {
    for (size_t k = 0; k < states_[i].size(); ++k)
      out.push_back({parameters_[i].name + suffixes_of(i)[k], states_[i][k]});
  }
  return out;
}

void Optimizer::load(const std::vector<NamedTensor>& state_given, const std::string& source) {
  std::map<std::string, Tensor> given;
  for (const NamedTensor& t : state_given) given[t.name] = t.value;
  std::vector<NamedTensor> own = state();
  std::vector<std::string> problems;
  for (const NamedTensor& t : own) {
    auto it = given.find(t.name);
    if (it == given.end()) {
      problems.push_back(str(t.name, " is missing (expected ", t.value.shape(), ")"));
      continue;
    }
    const Tensor& x = it->second;
    if (!(x.shape() == t.value.shape()) || x.dtype() != t.value.dtype()) {
      problems.push_back(
          str(t.name, " is ", x.dtype(), " ", x.shape(), ", expected ", t.value.dtype(), " ", t.value.shape()));
    } else if (const std::string problem = problem_of(t.name, x); !problem.empty()) {
      problems.push_back(problem);
    }
    given.erase(it);
  }
  for (const auto& [name, tensor] : given)
    problems.push_back(str(name, " ", tensor.shape(), " is not part of this optimizer"));
  check(problems.empty(), ErrorKind::input,
        [&] { return "the optimizer state in " + source + " does not fit: " + list(problems); });
  for (const NamedTensor& t : state_given) given[t.name] = t.value;
  for (NamedTensor& t : own) {
    if (t.name == "steps") {
      steps_ = given[t.name].to_vector<int64_t>()[0];
    } else {
      t.value.copy_(given[t.name]);
    }
  }
}

}  // namespace braid::nn
