// How a layer communicates with the other processes that share it: tensor parallelism (heads, columns) and context
// parallelism (positions), as in Megatron-LM.
//
//   own rows (B, t, D) --gather_rows--> (B, T, D) --weights of this rank's heads or columns--> partial sums (B, T, D)
//                      --reduce_rows--> own rows (B, t, D)
//
// There is one implementation of each layer. Its pass (attention/pass.h) points to a ShardContext: null means one
// process, and then the layer calls nothing of this file. Parameters may be shards; layers read their sizes from their
// parameters. The implementations of the interface are in distributed/parallel/.
#pragma once
#include <functional>

#include "braid/autograd/dcmha.h"

namespace braid::nn {

class AttentionVariant;
class PagedLayer;

// In place of the softmax of q k^T, for all heads. They record, and may run again in the backward pass.
struct ScoreFunctions {
  // q (B, T, N, d), k (B, S, Nkv, d or more) -> what the softmax reads, (B, N, T, S), -inf where the mask excludes a
  // key
  std::function<Tensor(const Tensor& q, const Tensor& k, const DcmhaOptions& options, const AttentionMask& mask)>
      scores;
  // of these -> what multiplies the values, 0 where the mask excludes a key
  std::function<Tensor(const Tensor& s, const AttentionMask& mask)> probabilities;
  explicit operator bool() const { return scores != nullptr; }
};

// Operands of the attention op. N, S: heads and keys of this process at that point.
struct AttentionOperands {
  Tensor q;              // (B, T, N, d)
  Tensor k, v;           // (B, S, Nkv, d)
  HeadMixing pre, post;  // weights of DCMHA, empty for plain attention
  // If set, k, v and the key side are those of the rows alone, and this contains the keys of the tokens before them.
  PagedLayer* paged = nullptr;
  ScoreFunctions composed = {};              // where pre and post are empty
  const AttentionVariant* pseudo = nullptr;  // if set, attention is among the pseudo tokens that it makes of these
};

// The attention op on these operands -> (B, T, N, d): dcmha, scaled_dot_product_attention where no heads are mixed, or
// composed_attention() where they are `composed`.
Tensor attend(const AttentionOperands& x, const DcmhaOptions& options);

class ShardContext {
 public:
  virtual ~ShardContext() = default;

  // x (B, t, D), the rows of this rank -> (B, T, D), the rows that layers sharded by heads or columns work on.
  virtual Tensor gather_rows(const Tensor& x) const = 0;
  // partial (B, T, D), this rank's term of a sum over ranks -> (B, t, D), this rank's rows of the sum.
  virtual Tensor reduce_rows(const Tensor& partial) const = 0;
  // First and one past the last of `units` units (gates) that belong to this rank.
  struct Units {
    int64_t begin, end;
  };
  virtual Units local_units(int64_t units) const = 0;
  // Positions of the gathered rows in the sequence, (T) i64; empty: consecutive, from the cache's position on.
  virtual Tensor positions() const = 0;

  // The heads of a layer, of all ranks together.
  struct Heads {
    int64_t queries, keys;  // N, Nkv
    bool mixed;  // heads are mixed across ranks: then a rank attends with all of them, and its compose weights are
                 // those of all heads for its own rows
    int64_t joined = 1;  // consecutive query heads that make one head, which stay on one rank
  };
  // Before attention: the operands of this rank's heads for the gathered rows -> the operands of the queries that this
  // rank computes, with every key that they attend to. A rank may have no key/value heads of its own.
  virtual AttentionOperands exchange(const AttentionOperands& local, const AttentionMask& mask,
                                     const Heads& heads) const = 0;
  // The attention op on the result of exchange() -> (B, T, heads of this rank, d) for the gathered rows.
  virtual Tensor attend(const AttentionOperands& x, const DcmhaOptions& options, const Heads& heads) const = 0;

 protected:
  ShardContext() = default;
  ShardContext(const ShardContext&) = default;
  ShardContext& operator=(const ShardContext&) = default;
};

}  // namespace braid::nn
