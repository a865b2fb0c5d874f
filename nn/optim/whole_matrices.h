// Matrices as a rule needs them that does not work element by element (muon): into which parts a fused one falls, and
// how one comes together whose shards are on several ranks.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "braid/nn/shard_rule.h"
#include "braid/tensor/tensor.h"

namespace braid::nn {

// The matrices of an optimizer, by the names of its parameters. This class knows complete ones;
// distributed/parallel/matrix_owners.h implements it for shards.
class WholeMatrices {
 public:
  WholeMatrices() = default;
  // rules: shard_rules() of the module (module.h).
  explicit WholeMatrices(std::map<std::string, ShardRule> rules) : rules_(std::move(rules)) {}
  virtual ~WholeMatrices() = default;

  // The blocks and units of a matrix; one block where nothing is known.
  ShardRule rule(const std::string& name) const;

  virtual bool is_sharded(const std::string& name) const { return (void)name, false; }
  // This rank's shard -> the matrix on the rank that owns it, an empty handle on all others. Collective over the ranks
  // that share the matrix, as scatter() is.
  virtual Tensor gather(const std::string& name, const Tensor& shard) const { return (void)name, shard; }
  // The matrix of the owner -> every rank's shard of it. like: a tensor of the shard's shape, type and device.
  virtual Tensor scatter(const std::string& name, const Tensor& matrix, const Tensor& like) const {
    return (void)name, (void)like, matrix;
  }

 private:
  std::map<std::string, ShardRule> rules_;
};

// Entries begin, ..., end - 1 of an axis of a matrix.
struct MatrixPart {
  int axis;
  int64_t begin, end;
  friend bool operator==(const MatrixPart&, const MatrixPart&) = default;
};

// The parts of a matrix of this shape that are matrices of their own: the blocks of its rule (queries, keys, values).
// heads > 0: blocks of which each unit makes scores are cut further, into so many units each; the last part may have
// fewer. A shape that does not fit the rule is one part.
std::vector<MatrixPart> matrix_parts(const ShardRule& rule, const Shape& shape, int64_t heads);

// What it costs to work on a matrix (R, C), relative to others: R C min(R, C).
double matrix_work(const Shape& shape);

}  // namespace braid::nn
