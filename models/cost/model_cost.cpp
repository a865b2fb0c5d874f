#include "braid/models/cost/model_cost.h"

#include <algorithm>

#include "braid/distributed/parallel/data_parallel.h"
#include "braid/distributed/parallel/tensor_shards.h"
#include "braid/tensor/base/integers.h"

namespace braid::models {
namespace {

// Elements of the parameters of a tensor rank, in the order in which backward reaches them: first those that are
// sharded over the tensor ranks, then those that all ranks hold.
struct Held {
  std::vector<int64_t> sharded, replicated;
};
Held held_by(const nn::Module& model, int64_t ranks, int64_t rank,
             const std::function<bool(const std::string&)>& counts = {}) {
  const dist::ShardMap shards = dist::tensor_shards(model, static_cast<int>(ranks));
  const std::vector<nn::NamedTensor> parameters = nn::parameters(model);
  Held held;
  for (auto p = parameters.rbegin(); p != parameters.rend(); ++p) {
    if (counts && !counts(p->name)) continue;
    const auto shard = shards.find(p->name);
    const bool split = shard != shards.end();
    Shape shape = p->value.shape();
    if (split) shape[shard->second.axis] = shard->second.partition.size(static_cast<int>(rank));
    (split ? held.sharded : held.replicated).push_back(numel(shape));
  }
  return held;
}

void add_buckets(dist::CommStats& stats, const std::vector<int64_t>& elements, int64_t holders, int64_t rank,
                 int64_t bytes_per_element) {
  if (holders == 1) return;
  const auto add = [&](dist::Collective c, int64_t n) { stats.bytes[static_cast<size_t>(c)] += n * bytes_per_element; };
  size_t next = 0;
  for (size_t end : dist::bucket_ends(elements, bytes_per_element, dist::kBucketBytes)) {
    int64_t size = 0;
    for (; next <= end; ++next) size += elements[next];
    const int64_t own = dist::even_partition(size, static_cast<int>(holders)).size(static_cast<int>(rank));
    add(dist::Collective::reduce_scatter, size - own);
    add(dist::Collective::all_gather, (holders - 1) * own);
  }
}

}  // namespace

RankParameters rank_parameters(const nn::Module& model, const MeshShape& mesh, int64_t tensor_rank) {
  const Held held = held_by(model, mesh.tensor, tensor_rank);
  int64_t sharded = 0, replicated = 0;
  for (int64_t n : held.sharded) sharded += n;
  for (int64_t n : held.replicated) replicated += n;
  return {sharded + replicated,
          detail::ceil_div(sharded, mesh.data * mesh.context) + detail::ceil_div(replicated, mesh.ranks())};
}

void add_gradient_volume(StepVolume& volume, const nn::Module& model, const MeshShape& mesh, const MeshCoord& rank,
                         const StepShape& step) {
  const int64_t wide = std::max<int64_t>(4, step.bytes_per_element);  // masters and their gradients
  const Held held = held_by(step.module ? *step.module : model, mesh.tensor, rank.tensor, step.trained);
  const int64_t replica = rank.data * mesh.context + rank.context;
  add_buckets(volume.replicas, held.sharded, mesh.data * mesh.context, replica, wide);
  add_buckets(volume.world, held.replicated, mesh.ranks(), replica * mesh.tensor + rank.tensor, wide);
}

}  // namespace braid::models
