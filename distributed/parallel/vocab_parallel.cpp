#include "braid/distributed/parallel/vocab_parallel.h"

#include <algorithm>
#include <cmath>

#include "braid/autograd/detail/linear_loss.h"
#include "braid/autograd/detail/token_losses.h"
#include "braid/autograd/ops.h"
#include "braid/distributed/parallel/mappings.h"
#include "braid/tensor/kernels/backend.h"
#include "braid/tensor/kernels/pointwise_ops.h"

namespace braid::dist {

namespace {

// Ids as rows of this rank's shard.
struct LocalIds {
  Tensor ids;     // i64, 0 for ids of other ranks
  Tensor labels;  // the same, -1 where the id is negative
  Tensor local;   // 1 for ids of this rank, else 0
  Tensor remote;  // 1 for ids of other ranks, else 0
};

LocalIds local_ids(const Tensor& ids, const Range& shard, DType type) {
  std::vector<int64_t> own = ids.to_vector<int64_t>(), labels = own;
  std::vector<double> local(own.size(), 0), remote(own.size(), 0);
  for (size_t i = 0; i < own.size(); ++i) {
    bool here = own[i] >= shard.begin && own[i] < shard.end;
    local[i] = here;
    remote[i] = !here && own[i] >= 0;
    labels[i] = here ? own[i] - shard.begin : own[i] < 0 ? -1 : 0;
    own[i] = here ? labels[i] : 0;
  }
  Device device = ids.device();
  return {from_vector(own, ids.shape(), device), from_vector(labels, ids.shape(), device),
          from_vector(local, ids.shape(), device).to(type), from_vector(remote, ids.shape(), device).to(type)};
}

void check_range(const char* op, const Tensor& ids, int64_t vocabulary, bool may_be_negative) {
  for (int64_t id : ids.to_vector<int64_t>()) {
    check(id < vocabulary && (id >= 0 || may_be_negative), op,
          [&] { return str("token id ", id, " is outside of the vocabulary of ", vocabulary); });
  }
}

}  // namespace

Tensor vocab_parallel_embedding(const Tensor& table, const Tensor& ids, const Partition& vocab,
                                const Communicator& tensor, DType type) {
  if (tensor.size() == 1) return cast(embedding(table, ids), type);
  check_range("vocab_parallel_embedding", ids, vocab.total(), false);
  LocalIds own = local_ids(ids, vocab.single(tensor.rank()), type);
  return mul(cast(embedding(table, own.ids), type), unsqueeze(own.local, 2));
}

// With x = h W^T, capped, each rank has the columns of its vocabulary. For every row
//   top = max over ranks of top_r,   log_sum = log sum over ranks of exp(top_r - top + log_sum_r)
//   loss = top - x[target] + log_sum + z (top + log_sum)^2   (a target is on one rank)
//   dx = gain exp(x - top - log_sum) - onehot(target),   gain = 1 + 2 z (top + log_sum)
//   dh = sum over ranks of dx W,   dW = dx^T h
// By chunks of rows (autograd/detail/linear_loss.h), with one exchange of three values per row and rank.
Tensor vocab_parallel_cross_entropy(const Tensor& hidden, const Tensor& weight, const Tensor& targets,
                                    const Partition& vocab, const Communicator& tensor,
                                    const LinearLossOptions& options) {
  const char* op = "vocab_parallel_cross_entropy";
  check(hidden.rank() == 3 && hidden.dim(-1) == weight.dim(1) && targets.rank() == 2 &&
            targets.dim(0) == hidden.dim(0) && targets.dim(1) == hidden.dim(1),
        op, [&] {
          return str("hidden ", hidden.shape(), ", weight ", weight.shape(), " and targets ", targets.shape(),
                     " do not fit: need (B, T, D), (v, D) and (B, T)");
        });
  if (tensor.size() == 1) return linear_cross_entropy(hidden, weight, targets, options);
  check(vocab.ranks() == tensor.size() && weight.dim(0) == vocab.size(tensor.rank()), op, [&] {
    return str("weight ", weight.shape(), " of rank ", tensor.rank(), " does not fit a vocabulary of ", vocab.total(),
               " over ", vocab.ranks(), " ranks of ", tensor.size());
  });
  check_range(op, targets, vocab.total(), true);

  const Backend& b = backend(hidden.device());
  const Device device = hidden.device();
  const Range shard = vocab.single(tensor.rank());
  const int64_t P = tensor.size();
  detail::LinearLoss linear(op, hidden, weight, options);
  const DType type = linear.type();
  MemoryScope scope(MemoryUse::workspace);
  Tensor ids = targets.contiguous().reshaped({linear.rows()}), one = full({1}, 1, type, device);
  double total = 0, squares = 0;  // of the cross-entropy; of the logsumexp
  std::vector<double> terms(TokenLosses::wanted() ? static_cast<size_t>(linear.rows()) : 0);
  linear.for_each_chunk([&](int64_t begin, int64_t end, Tensor& logits) {
    int64_t n = end - begin;
    Tensor chunk_ids = ids.sliced(0, begin, end);
    LocalIds own = local_ids(chunk_ids, shard, type);

    // Per row: top and log_sum of this rank's columns, and the logit of a local target.
    Tensor statistics = empty({1, 3, n}, type, device), loss = empty({n}, type, device);
    auto part = [&](int64_t which) { return statistics.sliced(1, which, which + 1).reshaped({n}); };
    Tensor own_top = part(0), own_log_sum = part(1), own_logit = part(2), picked = empty({n}, logits.dtype(), device);
    b.loss.cross_entropy(logits, own.ids, loss, own_top, own_log_sum);
    b.index.gather(logits, own.ids, picked);
    b.pointwise.binary(BinaryOp::mul, picked.to(type), own.local, own_logit);
    std::vector<double> gathered =
        tensor.all_gather(statistics, 0, even_partition(P, static_cast<int>(P))).to_vector<double>();
    std::vector<int64_t> target_ids = chunk_ids.to_vector<int64_t>();
    std::vector<double> tops(static_cast<size_t>(n)), log_sums(static_cast<size_t>(n)), gains(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) {
      auto at = [&](int64_t r, int64_t which) { return gathered[static_cast<size_t>((r * 3 + which) * n + i)]; };
      double largest = at(0, 0), sum = 0, logit = 0;
      for (int64_t r = 1; r < P; ++r) largest = std::max(largest, at(r, 0));
      for (int64_t r = 0; r < P; ++r) {
        sum += std::exp(at(r, 0) - largest + at(r, 1));
        logit += at(r, 2);
      }
      auto k = static_cast<size_t>(i);
      tops[k] = largest;
      log_sums[k] = std::log(sum);
      gains[k] = 1 + 2 * options.z_loss * (largest + log_sums[k]);
      if (target_ids[k] < 0) continue;
      squares += (largest + log_sums[k]) * (largest + log_sums[k]);
      total += largest - logit + log_sums[k];
      if (!terms.empty()) terms[static_cast<size_t>(begin) + k] = largest - logit + log_sums[k];
    }
    if (!linear.gradients()) return;

    // logits -> their gradient, in place. A row with a remote target takes column 0 as its target; the true gradient of
    // that column, gain exp(x - top - log_sum), replaces the wrong one afterwards.
    Tensor top = from_vector(tops, {n}, device).to(type), log_sum = from_vector(log_sums, {n}, device).to(type);
    Tensor first = logits.sliced(1, 0, 1), of_first = first.to(type);
    Tensor remote = own.remote.reshaped({n, 1}), local = own.local.reshaped({n, 1}), kept = empty({n, 1}, type, device);
    b.pointwise.binary(BinaryOp::sub, of_first, top.reshaped({n, 1}), kept);
    b.pointwise.binary(BinaryOp::sub, kept, log_sum.reshaped({n, 1}), kept);
    b.pointwise.unary(UnaryOp::exp, 0, 0, kept, kept);
    b.pointwise.binary(BinaryOp::mul, kept, remote, kept);
    if (options.z_loss > 0) b.pointwise.binary(BinaryOp::mul, kept, from_vector(gains, {n, 1}, device).to(type), kept);
    b.loss.cross_entropy_backward(logits, own.labels, top, log_sum, one, options.z_loss, logits);
    of_first = first.to(type).contiguous();
    b.pointwise.binary(BinaryOp::mul, of_first, local, of_first);
    b.pointwise.binary(BinaryOp::add, of_first, kept, of_first);
    first.copy_(of_first);
  });
  const Tensor plain = full({}, total, type, device);
  if (!terms.empty()) TokenLosses::keep(from_vector(terms, {linear.rows()}), options.z_loss > 0 ? plain : Tensor());
  if (options.z_loss == 0) return linear.record(plain);
  return linear.record(full({}, total + options.z_loss * squares, type, device));
}

}  // namespace braid::dist
