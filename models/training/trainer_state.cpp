// The trainer's weights, their average and moments for checkpoints: the elements of this rank, out of and into files.
#include <algorithm>
#include <map>
#include <set>

#include "braid/models/folders/adapter.h"
#include "braid/models/folders/lora.h"
#include "braid/models/model_spec.h"
#include "braid/models/training/stored_weights.h"
#include "braid/models/training/trainer.h"
#include "braid/nn/optim/registry.h"
#include "braid/tensor/base/strings.h"

namespace braid::models {

Shape Trainer::unsharded_shape(const nn::NamedTensor& parameter) const {
  const dist::Shard* shard = model_.shard_of(parameter.name);
  Shape shape = parameter.value.shape();
  if (shard) shape[shard->axis] = shard->partition.total();
  return shape;
}

// Where the elements `held` of this tensor rank's shard of a parameter stand in the unsharded parameter.
std::vector<dist::Span> Trainer::spans(const nn::NamedTensor& parameter, dist::Range held) const {
  const dist::Shard* shard = model_.shard_of(parameter.name);
  if (!shard) return {{held.begin, 0, held.size()}};
  return dist::spans_of(unsharded_shape(parameter), shard->axis, shard->partition.of(mesh_.tensor.rank()), held);
}

// Name, shape and spans of what this rank owns of a parameter, without values.
LocalTensor Trainer::owned_part(const nn::NamedTensor& parameter) const {
  const dist::Range own = parallel_.owned_range(parameter.name);
  LocalTensor part{parameter.name, parameter.value.dtype(), unsharded_shape(parameter), {}, {}};
  if (own.size() > 0) part.spans = spans(parameter, own);
  return part;
}

// The moments of a parameter; none of one that is never trained.
std::vector<std::string> Trainer::state_names(const nn::NamedTensor& parameter) const {
  std::vector<std::string> names;
  if (!is_trained(parameter.name)) return names;
  for (const std::string& suffix : nn::state_suffixes(optimizer_->options(), parameter))
    names.push_back(parameter.name + suffix);
  return names;
}

bool Trainer::is_trained(const std::string& parameter) const {
  return nn::rule_of(optimizer_->options().groups, parameter).frozen_until != nn::kNeverTrained;
}

void Trainer::average_weights(double decay) {
  check(decay >= 0 && decay < 1, ErrorKind::setting, [&] {
    return "bad decay of an average of the weights: expected a number from 0 (none) to below 1, found " +
           detail::shortest(decay);
  });
  average_.reset();
  const bool wide = std::ranges::all_of(
      parallel_.pieces(), [](const auto& p) { return p.value.dtype() == accumulate_type(p.value.dtype()); });
  check(decay == 0 || wide, ErrorKind::setting,
        "an average of the weights needs f32 masters: expected train.ema = 0 with train.rounding = stochastic");
  if (decay > 0) average_.emplace(parallel_.pieces(), decay);
}

void Trainer::with_average(const std::function<void()>& work) {
  if (!average_) return work();
  const auto exchange = [&] {
    average_->exchange();
    parallel_.gather_all_parameters();  // a parameter that is frozen since a resume has an average of its own
    masters_.refresh();
  };
  exchange();
  try {
    work();
  } catch (...) {
    average_->exchange();  // without the other ranks, which may not come here: the run ends
    masters_.refresh();
    throw;
  }
  exchange();
}

LocalState Trainer::local_state() const {
  LocalState state;
  std::map<std::string, Tensor> moments;
  for (const nn::NamedTensor& t : optimizer_->state()) moments[t.name] = t.value;
  LocalTensor steps{"steps", DType::i64, {1}, {}, {}};
  if (mesh_.world.rank() == 0) {
    steps.spans = {{0, 0, 1}};
    steps.values = moments["steps"];
  }
  state.optimizer.push_back(steps);
  for (const nn::NamedTensor& p : parameters_) {
    const dist::Range own = parallel_.owned_range(p.name);
    LocalTensor part = owned_part(p);
    if (own.size() > 0) part.values = p.value.detach().reshaped({p.value.numel()}).sliced(0, own.begin, own.end);
    LocalTensor weights = part;
    if (average_ && is_trained(p.name)) {
      if (own.size() > 0) weights.values = average_->of(p.name).reshaped({own.size()});
      part.name = p.name + kUnaveraged;
      state.optimizer.push_back(part);
    }
    (is_lora(p.name) ? state.adapter : state.weights).push_back(weights);
    part.dtype = accumulate_type(p.value.dtype());
    for (const std::string& name : state_names(p)) {
      part.name = name;
      part.values = own.size() > 0 ? moments.at(part.name) : Tensor();
      state.optimizer.push_back(part);
    }
  }
  return state;
}

std::vector<LocalTensor> Trainer::local_gradients() const {
  std::map<std::string, Tensor> gradients;
  for (const nn::NamedTensor& piece : optimizer_->parameters()) {
    const Tensor g = requires_grad(piece.value) ? grad(piece.value) : Tensor();
    if (g) gradients[piece.name] = g.contiguous().to(piece.value.dtype());
  }
  std::vector<LocalTensor> out;
  for (const nn::NamedTensor& p : parameters_) {
    if (nn::rule_of(optimizer_->options().groups, p.name).frozen_until > optimizer_->steps()) continue;
    out.push_back(owned_part(p));
    if (!out.back().spans.empty()) out.back().values = gradients.at(p.name);
  }
  return out;
}

// This rank's shard of a parameter from the tensors that store it; none where one is missing. Tensors that do not fit
// are returned as the file has them, for the loader to report.
std::vector<nn::NamedTensor> Trainer::read_weight(const io::SafetensorsFile& file, const nn::NamedTensor& p,
                                                  const StoredParameter& stored) const {
  std::vector<nn::NamedTensor> as_they_are;
  bool fits = true;
  for (const StoredParameter::Stored& t : stored.tensors) {
    const io::TensorInfo* info = file.find(t.name);
    if (!info) return {};
    const bool same_type = info->dtype == file.find(stored.tensors[0].name)->dtype;
    fits = fits && info->loadable && info->shape == t.shape && same_type;
  }
  if (!fits) {
    for (const StoredParameter::Stored& t : stored.tensors)
      as_they_are.push_back({stored.whole() ? p.name : t.name, file.load(t.name)});
    return as_they_are;
  }
  Tensor shard = empty(p.value.shape(), file.find(stored.tensors[0].name)->dtype);
  auto* into = static_cast<char*>(shard.mutable_raw());
  const auto parts = spans_in_stored(stored, spans(p, {0, p.value.numel()}));
  for (size_t i = 0; i < parts.size(); ++i) {
    const io::TensorInfo& info = *file.find(stored.tensors[i].name);
    for (const dist::Span& span : parts[i])
      file.read(info, span.full, span.count, into + span.local * size_of(info.dtype));
  }
  return {{p.name, shard}};
}

void Trainer::load(const io::SafetensorsFile& weights_file, const io::SafetensorsFile& optimizer_file,
                   const io::SafetensorsFile* adapter) {
  auto read = [&](const io::SafetensorsFile& file, const io::TensorInfo& info, const nn::NamedTensor& parameter,
                  dist::Range held, const Shape& shape) {
    if (!(info.shape == unsharded_shape(parameter)) || !info.loadable) return file.load(info.name);
    Tensor part = empty(shape, info.dtype);
    auto* into = static_cast<char*>(part.mutable_raw());
    for (const dist::Span& span : spans(parameter, held))
      file.read(info, span.full, span.count, into + span.local * size_of(info.dtype));
    return part;
  };
  std::map<std::string, const nn::NamedTensor*> parameter_of;  // by the names of their moments
  std::set<std::string> stored_names;
  std::vector<nn::NamedTensor> weights, moments;
  std::map<std::string, Tensor> unaveraged;  // trained weights, where the model's are averages
  const std::unique_ptr<const ModelSpec> spec = model_.spec();
  for (const nn::NamedTensor& p : parameters_) {
    for (const std::string& name : state_names(p)) parameter_of[name] = &p;
    const bool lora = is_lora(p.name);
    if (lora && !adapter) continue;
    const Shape shape = unsharded_shape(p);
    const StoredParameter stored =
        lora ? adapter_parameter(*spec, p.name, shape) : spec->folder().stored(p.name, shape);
    for (const StoredParameter::Stored& t : stored.tensors) stored_names.insert(t.name);
    stored_names.insert(stored.copies.begin(), stored.copies.end());
    for (nn::NamedTensor& t : read_weight(lora ? *adapter : weights_file, p, stored)) weights.push_back(std::move(t));
  }
  for (const io::SafetensorsFile* file : {&weights_file, adapter}) {
    for (const io::TensorInfo& info : file ? file->tensors() : std::vector<io::TensorInfo>())
      if (!stored_names.contains(info.name)) weights.push_back({info.name, file->load(info.name)});
  }
  for (const nn::NamedTensor& p : parameters_) {
    const io::TensorInfo* info = optimizer_file.find(p.name + kUnaveraged);
    if (info) unaveraged[p.name] = read(optimizer_file, *info, p, {0, p.value.numel()}, p.value.shape());
  }
  std::map<std::string, Shape> shapes;  // of this rank's moments
  for (const nn::NamedTensor& t : optimizer_->state()) shapes[t.name] = t.value.shape();
  for (const io::TensorInfo& info : optimizer_file.tensors()) {
    if (info.name.ends_with(kUnaveraged)) continue;
    auto p = parameter_of.find(info.name);
    if (p == parameter_of.end()) {
      moments.push_back({info.name, optimizer_file.load(info.name)});
    } else if (auto shape = shapes.find(info.name); shape != shapes.end()) {
      dist::Range own = parallel_.owned_range(p->second->name);
      moments.push_back({info.name, read(optimizer_file, info, *p->second, own, shape->second)});
    }
  }
  nn::load(masters_, weights, weights_file.path());
  if (average_) average_->restart();
  if (!unaveraged.empty()) {
    for (nn::NamedTensor& t : weights)
      if (const auto found = unaveraged.find(t.name); found != unaveraged.end()) t.value = found->second;
    nn::load(masters_, weights, optimizer_file.path());
  }
  masters_.refresh();
  optimizer_->load(moments, optimizer_file.path());
}

}  // namespace braid::models
