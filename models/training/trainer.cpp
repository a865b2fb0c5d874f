#include "braid/models/training/trainer.h"

#include <cmath>
#include <map>

#include "braid/autograd/detail/check.h"
#include "braid/autograd/ops.h"
#include "braid/nn/optim/clip.h"

namespace braid::models {

namespace {
int64_t count_valid(const Tensor& targets) {
  int64_t n = 0;
  for (int64_t t : targets.to_vector<int64_t>()) n += t >= 0;
  return n;
}

// Ranks with the same samples or the same positions count their numbers once.
int64_t count_valid(const std::vector<Batch>& batches, const dist::ProcessMesh& mesh) {
  int64_t n = 0;
  for (const Batch& b : batches) n += count_valid(b.targets);
  return mesh.data.sum(n);
}
double sum_of_losses(double mine, const dist::ProcessMesh& mesh) {
  return mesh.world.sum(mesh.tensor.rank() == 0 ? mine : 0.0);
}

// The name of the first tensor of a forward pass that holds NaN or Inf on any rank, or "the loss itself".
std::string first_bad_tensor(const LanguageModel& model, const std::vector<Batch>& batches,
                             const dist::ProcessMesh& mesh) {
  NoGrad off;
  std::string bad;
  int64_t seen = 0;
  nn::ActivationObserver observer = [&](const std::string& name, const Tensor& value) {
    ++seen;
    if (bad.empty() && !nn::all_finite(value)) {
      std::string order = std::to_string(seen);
      bad = std::string(12 - order.size(), '0') + order + name;  // so that the first in order is the least text
    }
  };
  for (const Batch& b : batches) model.inspect(b.ids.to(model.device()), observer);
  std::string first;
  for (const std::string& text : mesh.world.gather_text(bad)) {
    if (!text.empty() && (first.empty() || text < first)) first = text;
  }
  return first.empty() ? "the loss itself" : first.substr(12);
}

}  // namespace

Trainer::Trainer(LanguageModel& model, const nn::OptimizerOptions& options, double clip, const dist::ProcessMesh& mesh,
                 std::optional<DType> compute)
    : model_(model),
      mesh_(mesh),
      masters_(model, compute.value_or(model.dtype()), computed_with),
      parameters_(nn::parameters(masters_)),
      parallel_(parameters_,
                [&](const std::string& name) -> const dist::Communicator& {
                  return model.shard_of(name) ? mesh_.replicas : mesh_.world;
                }),
      optimizer_(parallel_.pieces(), options),
      captured_step_(model, masters_, parallel_, optimizer_),
      clip_(clip) {}

StepResult Trainer::step(const std::vector<Batch>& micro_batches, double lr,
                         const std::function<void(const StepResult&)>& inspect) {
  StepResult& result = latest_ = {};
  result.tokens = count_valid(micro_batches, mesh_);
  check(result.tokens > 0, ErrorKind::input,
        [] { return std::string("the batch has no target that counts: there is nothing to learn from"); });
  const double share = 1 / static_cast<double>(result.tokens);
  const std::vector<double> numbers = captured_step_.gradients(micro_batches, share);
  double loss = 0, squares = 0;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (i < micro_batches.size()) {
      loss += numbers[i] * share;
    } else {
      squares += numbers[i];
    }
  }
  result.loss = sum_of_losses(loss, mesh_);
  std::string at_step = " at step " + std::to_string(optimizer_.steps() + 1);
  check(std::isfinite(result.loss), ErrorKind::numerical, [&] {
    return "the loss is " + std::string(std::isnan(result.loss) ? "NaN" : "infinite") + at_step +
           "; the first tensor with NaN or Inf is " + first_bad_tensor(model_, micro_batches, mesh_) +
           "; weights are untouched, lower the learning rate";
  });
  // Every number of the model belongs to one piece of one rank, so every gradient counts once.
  result.grad_norm = std::sqrt(mesh_.world.size() == 1 ? squares : mesh_.world.sum(squares));
  check(std::isfinite(result.grad_norm), ErrorKind::numerical, [&] {
    std::string name;
    for (const std::string& text : mesh_.world.gather_text(nn::first_not_finite(optimizer_.parameters()))) {
      if (name.empty()) name = text;
    }
    return "the gradient of " + name + " contains NaN or Inf" + at_step +
           "; weights are untouched, lower the learning rate";
  });
  if (inspect) inspect(result);
  captured_step_.update(lr, nn::clip_factor(result.grad_norm, clip_));
  return result;
}

// A piece -> what this tensor rank holds -> the whole tensor.
Tensor Trainer::join(const std::string& parameter, const Tensor& piece, DType dtype) const {
  Tensor held = parallel_.whole(parameter, piece, dtype);
  const dist::Shard* shard = model_.shard_of(parameter);
  return shard ? mesh_.tensor.all_gather(held, shard->axis, shard->parts) : held;
}

WholeState Trainer::whole_state(StateParts parts) const {
  WholeState state;
  bool root = mesh_.world.rank() == 0;
  for (const nn::NamedTensor& p : parameters_) {
    const dist::Shard* shard = model_.shard_of(p.name);
    Tensor whole = shard ? mesh_.tensor.all_gather(p.value, shard->axis, shard->parts) : p.value;
    if (root) state.weights.push_back({p.name, whole});
  }
  if (parts == StateParts::weights) return state;
  std::map<std::string, Tensor> own;
  for (const nn::NamedTensor& t : optimizer_.state()) own[t.name] = t.value;
  if (root) state.optimizer.push_back({"steps", own["steps"]});
  for (const nn::NamedTensor& p : parameters_) {
    DType moments = p.value.dtype() == DType::f64 ? DType::f64 : DType::f32;
    for (const std::string& ending : nn::state_endings(optimizer_.options())) {
      auto piece = own.find(p.name + ending);
      Tensor whole = join(p.name, piece == own.end() ? Tensor() : piece->second, moments);
      if (root) state.optimizer.push_back({p.name + ending, whole});
    }
  }
  return state;
}

Shape Trainer::whole_shape(const nn::NamedTensor& parameter) const {
  const dist::Shard* shard = model_.shard_of(parameter.name);
  Shape shape = parameter.value.shape();
  if (shard) shape[shard->axis] = shard->parts.total();
  return shape;
}

// Where numbers of what this tensor rank holds of a parameter stand in the whole.
std::vector<dist::Span> Trainer::spans(const nn::NamedTensor& parameter, dist::Range held) const {
  const dist::Shard* shard = model_.shard_of(parameter.name);
  if (!shard) return {{held.begin, 0, held.size()}};
  return dist::spans_of(whole_shape(parameter), shard->axis, shard->parts.of[static_cast<size_t>(mesh_.tensor.rank())],
                        held);
}

LocalState Trainer::local_state() const {
  LocalState state;
  std::map<std::string, Tensor> moments;
  for (const nn::NamedTensor& t : optimizer_.state()) moments[t.name] = t.value;
  LocalTensor steps{"steps", DType::i64, {1}, {}, {}};
  if (mesh_.world.rank() == 0) {
    steps.spans = {{0, 0, 1}};
    steps.values = moments["steps"];
  }
  state.optimizer.push_back(steps);
  for (const nn::NamedTensor& p : parameters_) {
    dist::Range own = parallel_.own_part(p.name);
    LocalTensor part{p.name, p.value.dtype(), whole_shape(p), {}, {}};
    if (own.size() > 0) {
      part.spans = spans(p, own);
      part.values = p.value.detach().reshaped({p.value.numel()}).sliced(0, own.begin, own.end);
    }
    state.weights.push_back(part);
    part.dtype = p.value.dtype() == DType::f64 ? DType::f64 : DType::f32;
    for (const std::string& ending : nn::state_endings(optimizer_.options())) {
      part.name = p.name + ending;
      part.values = own.size() > 0 ? moments.at(part.name) : Tensor();
      state.optimizer.push_back(part);
    }
  }
  return state;
}

void Trainer::load(const io::SafetensorsFile& weights_file, const io::SafetensorsFile& optimizer_file) {
  // Tensors that do not fit come back whole, for the loaders to report.
  auto read = [&](const io::SafetensorsFile& file, const io::TensorInfo& info, const nn::NamedTensor& parameter,
                  dist::Range held, const Shape& shape) {
    if (!(info.shape == whole_shape(parameter)) || !info.loadable) return file.load(info.name);
    Tensor part = empty(shape, info.dtype);
    auto* into = static_cast<char*>(part.mutable_raw());
    for (const dist::Span& span : spans(parameter, held))
      file.read(info, span.whole, span.count, into + span.part * size_of(info.dtype));
    return part;
  };
  std::map<std::string, const nn::NamedTensor*> parameters, parameter_of;  // by their names and by those of moments
  for (const nn::NamedTensor& p : parameters_) {
    parameters[p.name] = &p;
    for (const std::string& ending : nn::state_endings(optimizer_.options())) parameter_of[p.name + ending] = &p;
  }
  std::vector<nn::NamedTensor> weights, moments;
  for (const io::TensorInfo& info : weights_file.tensors()) {
    auto p = parameters.find(info.name);
    weights.push_back({info.name, p == parameters.end()
                                      ? weights_file.load(info.name)
                                      : read(weights_file, info, *p->second, {0, p->second->value.numel()},
                                             p->second->value.shape())});
  }
  std::map<std::string, Shape> shapes;  // of the moments that are ours
  for (const nn::NamedTensor& t : optimizer_.state()) shapes[t.name] = t.value.shape();
  for (const io::TensorInfo& info : optimizer_file.tensors()) {
    auto p = parameter_of.find(info.name);
    if (p == parameter_of.end()) {
      moments.push_back({info.name, optimizer_file.load(info.name)});
    } else if (auto shape = shapes.find(info.name); shape != shapes.end()) {
      dist::Range own = parallel_.own_part(p->second->name);
      moments.push_back({info.name, read(optimizer_file, info, *p->second, own, shape->second)});
    }
  }
  nn::load(masters_, weights, weights_file.path());
  masters_.refresh();
  optimizer_.load(moments, optimizer_file.path());
}

std::vector<nn::NamedTensor> Trainer::whole_gradients() const {
  std::map<std::string, Tensor> own;
  for (const nn::NamedTensor& piece : optimizer_.parameters()) own[piece.name] = grad(piece.value);
  std::vector<nn::NamedTensor> out;
  for (const nn::NamedTensor& p : parameters_) {
    auto piece = own.find(p.name);
    out.push_back({p.name, join(p.name, piece == own.end() ? Tensor() : piece->second, p.value.dtype())});
  }
  return out;
}

double evaluate(const LanguageModel& model, const std::vector<Batch>& batches, const dist::ProcessMesh& mesh) {
  NoGrad off;
  double sum = 0;
  const SkipIndexCheck checked;
  for (const Batch& b : batches) {
    if (b.ids.numel() == 0) continue;  // a data rank may have no sample of a batch
    const Batch there = on_device(model, b);
    sum += model.loss_sum(there.ids, there.targets).item();
  }
  sum = sum_of_losses(sum, mesh);
  int64_t tokens = count_valid(batches, mesh);
  return tokens > 0 ? sum / static_cast<double>(tokens) : 0;
}

}  // namespace braid::models
