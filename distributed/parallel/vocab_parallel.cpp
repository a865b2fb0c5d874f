#include "braid/distributed/parallel/vocab_parallel.h"

#include <algorithm>
#include <cmath>

#include "braid/autograd/ops.h"
#include "braid/distributed/parallel/mappings.h"
#include "braid/tensor/kernels/backend.h"
#include "braid/tensor/kernels/pointwise_ops.h"

namespace braid::dist {

namespace {

// Ids counted from our first word on.
struct OwnIds {
  Tensor ids;     // i64, 0 where not ours
  Tensor labels;  // the same, -1 where the id is negative
  Tensor mask;    // 1 where ours, else 0, in the type asked for
  Tensor others;  // 1 where another rank's, else 0
};

OwnIds own_ids(const Tensor& ids, const Range& words, DType type) {
  std::vector<int64_t> own = ids.to_vector<int64_t>(), labels = own;
  std::vector<double> mask(own.size(), 0), others(own.size(), 0);
  for (size_t i = 0; i < own.size(); ++i) {
    bool ours = own[i] >= words.begin && own[i] < words.end;
    mask[i] = ours;
    others[i] = !ours && own[i] >= 0;
    labels[i] = ours ? own[i] - words.begin : own[i] < 0 ? -1 : 0;
    own[i] = ours ? labels[i] : 0;
  }
  Device device = ids.device();
  return {from_vector(own, ids.shape(), device), from_vector(labels, ids.shape(), device),
          from_vector(mask, ids.shape(), device).to(type), from_vector(others, ids.shape(), device).to(type)};
}

void check_range(const char* op, const Tensor& ids, int64_t words, bool may_be_negative) {
  for (int64_t id : ids.to_vector<int64_t>()) {
    check(id < words && (id >= 0 || may_be_negative), op, [&] {
      return "token id " + std::to_string(id) + " is outside of the vocabulary of " + std::to_string(words);
    });
  }
}

}  // namespace

Tensor vocab_parallel_embedding(const Tensor& table, const Tensor& ids, const Partition& words,
                                const Communicator& tensor, DType type) {
  if (tensor.size() == 1) return cast(embedding(table, ids), type);
  check_range("vocab_parallel_embedding", ids, words.total(), false);
  OwnIds own = own_ids(ids, words.of[static_cast<size_t>(tensor.rank())][0], type);
  return mul(cast(embedding(table, own.ids), type), unsqueeze(own.mask, 2));
}

// With x = h W^T, each rank has the columns of its words. For every row
//   lse = log sum over ranks of exp(lse of our columns),   loss = lse - x[target]   (a target is on one rank)
//   dx = exp(x - lse) - onehot(target),   dh = sum over ranks of dx W,   dW = dx^T h
// By chunks of rows, with one exchange of two numbers per row and rank; as in linear_cross_entropy the gradients are
// formed while the chunk's logits are at hand, and with 16-bit inputs only dx is rounded for its products.
Tensor vocab_parallel_cross_entropy(const Tensor& hidden, const Tensor& weight, const Tensor& targets,
                                    const Partition& words, const Communicator& tensor, int64_t chunk_rows) {
  const char* op = "vocab_parallel_cross_entropy";
  check(hidden.rank() == 3 && hidden.dim(-1) == weight.dim(1) && targets.rank() == 2 &&
            targets.dim(0) == hidden.dim(0) && targets.dim(1) == hidden.dim(1),
        op, [&] {
          return "hidden " + str(hidden.shape()) + ", weight " + str(weight.shape()) + " and targets " +
                 str(targets.shape()) + " do not fit: need (B, T, D), (v, D) and (B, T)";
        });
  if (tensor.size() == 1) return linear_cross_entropy(hidden, weight, targets, chunk_rows);
  check_range(op, targets, words.total(), true);

  const Backend& b = backend(hidden.device());
  DType type = accumulate_type(hidden.dtype());
  const Range& mine = words.of[static_cast<size_t>(tensor.rank())][0];
  int64_t rows = targets.numel(), width = hidden.dim(2), v = mine.size(), P = tensor.size();
  Tensor h = hidden.contiguous().reshaped({rows, width}), w = weight.contiguous();
  Tensor ids = targets.contiguous().reshaped({rows});
  Device device = hidden.device();
  bool record_on = recording({hidden, weight});
  Tensor dhidden, dweight;
  if (record_on && requires_grad(hidden)) dhidden = empty({rows, width}, type, device);
  if (record_on && requires_grad(weight)) {
    MemoryScope scope(MemoryUse::gradients);
    dweight = zeros({v, width}, type, device);
  }
  MemoryScope scope(MemoryUse::workspace);
  Tensor buffer = empty({std::min(chunk_rows, rows), v}, type, device), one = full({1}, 1, type, device);
  double total = 0;
  for (int64_t begin = 0; begin < rows; begin += chunk_rows) {
    int64_t end = std::min(rows, begin + chunk_rows), n = end - begin;
    Tensor chunk = h.sliced(0, begin, end), logits = buffer.sliced(0, 0, n);
    Tensor chunk_ids = ids.sliced(0, begin, end);
    OwnIds own = own_ids(chunk_ids, mine, type);
    b.matmul.product(chunk, w.transposed(), false, logits);

    // Per row: our logsumexp, and the target's logit where it is ours.
    Tensor loss = empty({n}, type, device), lse = empty({n}, type, device), picked = empty({n}, type, device);
    b.loss.cross_entropy(logits, own.ids, loss, lse);
    b.index.gather(logits, own.ids, picked);
    b.pointwise.binary(BinaryOp::mul, picked, own.mask, picked);
    Tensor pair = empty({1, 2, n}, type, device);
    pair.sliced(1, 0, 1).copy_(lse.reshaped({1, 1, n}));
    pair.sliced(1, 1, 2).copy_(picked.reshaped({1, 1, n}));
    std::vector<double> pairs = tensor.all_gather(pair, 0, even_partition(P, static_cast<int>(P))).to_vector<double>();
    std::vector<int64_t> wanted = chunk_ids.to_vector<int64_t>();
    std::vector<double> whole(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) {
      auto at = [&](int64_t r, int64_t which) { return pairs[static_cast<size_t>((r * 2 + which) * n + i)]; };
      double most = at(0, 0), sum = 0, logit = 0;
      for (int64_t r = 1; r < P; ++r) most = std::max(most, at(r, 0));
      for (int64_t r = 0; r < P; ++r) {
        sum += std::exp(at(r, 0) - most);
        logit += at(r, 1);
      }
      auto k = static_cast<size_t>(i);
      whole[k] = most + std::log(sum);
      if (wanted[k] >= 0) total += whole[k] - logit;
    }
    if (!dhidden && !dweight) continue;

    // logits -> their gradient, in place. A row whose target another rank has takes our first word for it; that word's
    // own gradient, exp(x - lse), is put in its place afterwards.
    Tensor row_lse = from_vector(whole, {n}, device).to(type), first = logits.sliced(1, 0, 1);
    Tensor others = own.others.reshaped({n, 1}), ours = own.mask.reshaped({n, 1}), kept = empty({n, 1}, type, device);
    b.pointwise.binary(BinaryOp::sub, first, row_lse.reshaped({n, 1}), kept);
    b.pointwise.unary(UnaryOp::exp, 0, 0, kept, kept);
    b.pointwise.binary(BinaryOp::mul, kept, others, kept);
    b.loss.cross_entropy_backward(logits, own.labels, row_lse, one, logits);
    b.pointwise.binary(BinaryOp::mul, first, ours, first);
    b.pointwise.binary(BinaryOp::add, first, kept, first);
    Tensor dlogits = logits.to(hidden.dtype());
    if (dhidden) {
      Tensor part = dhidden.sliced(0, begin, end);
      b.matmul.product(dlogits, w, false, part);
    }
    if (dweight) b.matmul.product(dlogits.transposed(), chunk, true, dweight);
  }
  Shape shape = hidden.shape();
  DType stored = hidden.dtype();
  return record(op, full({}, total, type, device), {hidden, weight}, [=](const Tensor& dy) -> Grads {
    auto scaled = [&](const Tensor& g, const Shape& to) {
      if (!g) return Tensor();
      Tensor out = g;
      backend(out.device())
          .pointwise.binary(BinaryOp::mul, out, dy.contiguous().reshaped({1, 1}).expanded(out.shape()), out);
      return out.to(stored).reshaped(to);
    };
    return {scaled(dhidden, shape), scaled(dweight, {v, width})};
  });
}

}  // namespace braid::dist
