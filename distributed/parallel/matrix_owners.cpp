#include "braid/distributed/parallel/matrix_owners.h"

#include <algorithm>
#include <numeric>

namespace braid::dist {

std::vector<int> balanced_owners(const std::vector<double>& work, int ranks) {
  std::vector<size_t> order(work.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](size_t i) { return work[i]; });
  std::vector<double> load(static_cast<size_t>(ranks));
  std::vector<int> owners(work.size());
  for (const size_t i : order) {
    const auto least = std::ranges::min_element(load);
    *least += work[i];
    owners[i] = static_cast<int>(least - load.begin());
  }
  return owners;
}

MatrixOwners::MatrixOwners(std::map<std::string, nn::ShardRule> rules, const std::vector<Sharded>& sharded,
                           Communicator tensor)
    : WholeMatrices(std::move(rules)), tensor_(std::move(tensor)) {
  std::vector<double> work;
  for (const Sharded& s : sharded) work.push_back(nn::matrix_work(s.shape));
  const std::vector<int> owners = balanced_owners(work, tensor_.size());
  for (size_t i = 0; i < sharded.size(); ++i) {
    const Shard& shard = sharded[i].shard;
    Partition owner{std::vector<Ranges>(static_cast<size_t>(tensor_.size()))};
    owner.ranges[static_cast<size_t>(owners[i])] = {{0, shard.partition.total()}};
    matrices_[sharded[i].name] = {shard.axis, shard.partition, std::move(owner)};
  }
}

Tensor MatrixOwners::gather(const std::string& name, const Tensor& shard) const {
  const auto at = matrices_.find(name);
  if (at == matrices_.end()) return shard;
  const auto& [axis, shards, owner] = at->second;
  const Tensor matrix = tensor_.sparse_all_gather(shard, axis, shards, owner);
  return owner.size(tensor_.rank()) > 0 ? matrix : Tensor();
}

Tensor MatrixOwners::scatter(const std::string& name, const Tensor& matrix, const Tensor& like) const {
  const auto at = matrices_.find(name);
  if (at == matrices_.end()) return matrix;
  const auto& [axis, shards, owner] = at->second;
  Shape none = like.shape();
  none[axis] = 0;
  return tensor_.sparse_all_gather(matrix ? matrix : empty(none, like.dtype(), like.device()), axis, owner, shards);
}

}  // namespace braid::dist
