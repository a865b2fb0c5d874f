#include "braid/models/training/trainer_strict.h"

#include <algorithm>
#include <set>

#include "braid/autograd/detail/check.h"
#include "braid/autograd/record.h"
#include "braid/distributed/parallel/tree_sum.h"
#include "braid/models/exact_sum.h"
#include "braid/models/folders/lora.h"
#include "braid/models/training/source_losses.h"
#include "braid/models/whole_parameters.h"
#include "braid/nn/optim/clip.h"

namespace braid::models {

void check_strict_shards(const std::vector<nn::NamedTensor>& parameters) {
  std::set<std::string> names;
  for (const nn::NamedTensor& p : parameters) names.insert(p.name);
  for (const nn::NamedTensor& p : parameters) {
    const std::string layer = p.name.substr(0, p.name.rfind(".lora_"));
    check(!is_lora(p.name) || names.contains(layer + ".weight"), ErrorKind::setting, [&] {
      return str("run.strict = true over tensor ranks gathers weights, but not ", p.name,
                 ", LoRA of a part of one: expected parallel.tensor = 1, or lora.targets that are whole weights");
    });
  }
}

StrictShare strict_share(const std::vector<Batch>& batches, const Objective& objective, const dist::ProcessMesh& mesh) {
  std::vector<Batch> all;  // of this data rank
  const int64_t rows = objective.sample_rows();
  for (const Batch& b : batches)
    for (int64_t i = 0; i < b.samples(); i += rows) all.push_back(b.slice(i, i + rows));
  const int ranks = mesh.data.size(), contexts = mesh.context.size(), tensors = mesh.tensor.size();
  const std::vector<int64_t> counts =
      mesh.data
          .all_gather(from_vector(std::vector<int64_t>{std::ssize(all)}, {1}), 0, dist::even_partition(ranks, ranks))
          .to_vector<int64_t>();
  StrictShare share;
  int64_t first = 0;  // of the samples of a data rank
  for (int d = 0; d < ranks; ++d) {
    const int64_t count = counts.at(static_cast<size_t>(d));
    const dist::Partition over_context = dist::even_partition(count, contexts);
    for (int c = 0; c < contexts; ++c) {
      const dist::Range own = over_context.single(c);
      share.samples.push_back({first + own.begin, first + own.end});
      if (d != mesh.data.rank() || c != mesh.context.rank()) continue;
      share.own = share.samples.back();
      for (int64_t round = own.begin; round < own.end; round += tensors) {
        const int64_t sample = round + mesh.tensor.rank();
        share.counted += sample < own.end;
        share.batches.push_back(all.at(static_cast<size_t>(std::min(sample, own.end - 1))));
      }
    }
    first += count;
  }
  return share;
}

void drop_repeated(StrictShare& share, StepSums& sums) {
  if (share.batches.empty()) return;
  sums.sample_losses.resize(sums.sample_losses.size() / share.batches.size() * share.counted);
  share.batches.resize(share.counted);
  sums.losses.resize(share.counted);
}

// As compute_gradients(), of batches of one sample.
void Trainer::compute_strict_gradients(const StepBuffers& buffers, const StrictShare& share) {
  const SkipIndexCheck checked;
  WholeParameters parameters(model_, parameters_, mesh_.tensor);
  dist::TreeSum sum;
  int64_t next = share.own.begin;
  for (int64_t i = 0; i < std::ssize(buffers.batches); ++i) {
    MemoryScope scope(MemoryUse::activations);
    masters_.attach_cast();
    parameters.attach();
    const Tensor loss = loss_of(*objective_, model_, i, buffers);
    backward(loss, buffers.loss_scale.to(loss.dtype()));
    for (dist::TreeSum::Terms& terms : parameters.take_gradients()) {
      if (next < share.own.end) sum.add({0, next}, std::move(terms));
      ++next;
    }
  }
  parallel_.finish(std::move(sum), parameters_, share.samples);
  nn::sum_of_squares(optimizer_->parameters(), buffers.squared_norms);
  nn::sum_of_squared_values(optimizer_->parameters(), buffers.squared_weights, copies_);
}

void make_exact(StepMetrics& metrics, const StepSums& sums, double loss_scale,
                const std::vector<nn::NamedTensor>& pieces, const dist::ProcessMesh& mesh) {
  metrics.loss = exact_sum(sums.losses, mesh.world) * loss_scale;
  metrics.grad_norm = std::isfinite(metrics.loss) ? std::sqrt(exact_sum_of_squares(pieces, mesh.world)) : NAN;
}

}  // namespace braid::models
