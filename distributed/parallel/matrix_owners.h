// One owner for each matrix that is updated as a whole (nn/optim/whole_matrices.h): the work is done once in the job.
//
// Among the ranks that hold the same shard, DataParallel gives each matrix to one. The tensor ranks of that one have
// the other shards; they send them to the owner among themselves and get their shards of the result back:
//
//   shards of w1, w2, w3 on tensor ranks 0 and 1     [1a 2a 3a] [1b 2b 3b]
//   gather       each matrix to its owner            [1 3]      [2]
//   scatter      shards of the results               [1a 2a 3a] [1b 2b 3b]
#pragma once
#include "braid/distributed/comm/communicator.h"
#include "braid/distributed/sharding/shard_spec.h"
#include "braid/nn/optim/whole_matrices.h"

namespace braid::dist {

// Pieces of work that cannot be divided, over ranks: the largest first, each to the rank that has least so far. The
// owner of each piece.
std::vector<int> balanced_owners(const std::vector<double>& work, int ranks);

class MatrixOwners final : public nn::WholeMatrices {
 public:
  struct Sharded {
    std::string name;
    Shard shard;
    Shape shape;  // of the complete matrix
  };
  // sharded: the matrices that this rank updates together with its tensor ranks, the same list on each of them.
  MatrixOwners(std::map<std::string, nn::ShardRule> rules, const std::vector<Sharded>& sharded, Communicator tensor);

  bool is_sharded(const std::string& name) const override { return matrices_.contains(name); }
  Tensor gather(const std::string& name, const Tensor& shard) const override;
  Tensor scatter(const std::string& name, const Tensor& matrix, const Tensor& like) const override;

 private:
  struct Matrix {
    int axis;
    Partition shards, owner;  // of the axis: as it is sharded; all of it on one rank
  };
  std::map<std::string, Matrix> matrices_;
  Communicator tensor_;
};

}  // namespace braid::dist
