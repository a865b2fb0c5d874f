// The trainer's weights and moments for checkpoints: the elements of this rank, out of and into files.
#include <map>

#include "braid/models/training/trainer.h"
#include "braid/nn/optim/registry.h"

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
    state.weights.push_back(part);
    part.dtype = accumulate_type(p.value.dtype());
    for (const std::string& suffix : nn::state_suffixes(optimizer_->options())) {
      part.name = p.name + suffix;
      part.values = own.size() > 0 ? moments.at(part.name) : Tensor();
      state.optimizer.push_back(part);
    }
  }
  return state;
}

std::vector<LocalTensor> Trainer::local_gradients() const {
  std::map<std::string, Tensor> gradients;
  for (const nn::NamedTensor& piece : optimizer_->parameters()) gradients[piece.name] = grad(piece.value).contiguous();
  std::vector<LocalTensor> out;
  for (const nn::NamedTensor& p : parameters_) {
    out.push_back(owned_part(p));
    if (!out.back().spans.empty()) out.back().values = gradients.at(p.name);
  }
  return out;
}

void Trainer::load(const io::SafetensorsFile& weights_file, const io::SafetensorsFile& optimizer_file) {
  // Tensors that do not fit are returned as the file has them, for the loaders to report.
  auto read = [&](const io::SafetensorsFile& file, const io::TensorInfo& info, const nn::NamedTensor& parameter,
                  dist::Range held, const Shape& shape) {
    if (!(info.shape == unsharded_shape(parameter)) || !info.loadable) return file.load(info.name);
    Tensor part = empty(shape, info.dtype);
    auto* into = static_cast<char*>(part.mutable_raw());
    for (const dist::Span& span : spans(parameter, held))
      file.read(info, span.whole, span.count, into + span.part * size_of(info.dtype));
    return part;
  };
  std::map<std::string, const nn::NamedTensor*> parameters, parameter_of;  // by name, and by the names of their moments
  for (const nn::NamedTensor& p : parameters_) {
    parameters[p.name] = &p;
    for (const std::string& suffix : nn::state_suffixes(optimizer_->options())) parameter_of[p.name + suffix] = &p;
  }
  std::vector<nn::NamedTensor> weights, moments;
  for (const io::TensorInfo& info : weights_file.tensors()) {
    auto p = parameters.find(info.name);
    weights.push_back({info.name, p == parameters.end()
                                      ? weights_file.load(info.name)
                                      : read(weights_file, info, *p->second, {0, p->second->value.numel()},
                                             p->second->value.shape())});
  }
  std::map<std::string, Shape> shapes;  // of this rank's moments
  for (const nn::NamedTensor& t : optimizer_->state()) shapes[t.name] = t.value.shape();
  for (const io::TensorInfo& info : optimizer_file.tensors()) {
    auto p = parameter_of.find(info.name);
    if (p == parameter_of.end()) {
      moments.push_back({info.name, optimizer_file.load(info.name)});
    } else if (auto shape = shapes.find(info.name); shape != shapes.end()) {
      dist::Range own = parallel_.owned_range(p->second->name);
      moments.push_back({info.name, read(optimizer_file, info, *p->second, own, shape->second)});
    }
  }
  nn::load(masters_, weights, weights_file.path());
  masters_.refresh();
  optimizer_->load(moments, optimizer_file.path());
}

}  // namespace braid::models
