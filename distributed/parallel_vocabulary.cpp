#include "distributed/parallel_vocabulary.h"

#include <algorithm>
#include <cmath>

#include "autograd/ops.h"
#include "distributed/mappings.h"

namespace braid::dist {

namespace {

// Ids counted from our first word on, and where they are ours.
struct OwnIds {
  Tensor ids;                  // i64, 0 where not ours
  Tensor mask;                 // 1 where ours, else 0, in the type asked for
  std::vector<int64_t> where;  // flat places of those that are ours
};

OwnIds own_ids(const Tensor& ids, const Interval& words, DType type) {
  std::vector<int64_t> all = ids.to_vector<int64_t>();
  std::vector<double> mask(all.size(), 0);
  OwnIds own;
  for (size_t i = 0; i < all.size(); ++i) {
    bool ours = all[i] >= words.begin && all[i] < words.end;
    all[i] = ours ? all[i] - words.begin : 0;
    mask[i] = ours;
    if (ours) own.where.push_back(static_cast<int64_t>(i));
  }
  own.ids = from_vector(all, ids.shape());
  own.mask = from_vector(mask, ids.shape()).to(type);
  return own;
}

void check_range(const char* op, const Tensor& ids, int64_t words, bool may_be_negative) {
  for (int64_t id : ids.to_vector<int64_t>()) {
    check(id < words && (id >= 0 || may_be_negative), op, [&] {
      return "token id " + std::to_string(id) + " is outside of the vocabulary of " + std::to_string(words);
    });
  }
}

}  // namespace

Tensor parallel_embedding(const Tensor& table, const Tensor& ids, const Parts& words, const Parts& rows,
                          const Communicator& tensor) {
  check_range("parallel_embedding", ids, words.total(), false);
  if (tensor.size() == 1) return embedding(table, ids);
  OwnIds own = own_ids(ids, words.of[static_cast<size_t>(tensor.rank())][0], table.dtype());
  Tensor x = mul(embedding(table, own.ids), unsqueeze(own.mask, 2));  // (B, Tc, D)
  return sum_scatter(x, 1, rows, tensor);
}

// With x = h W^T, each rank has the columns of its words. For every row
//   lse = log sum over ranks of exp(lse of our columns),   loss = lse - x[target]   (a target is on one rank)
//   dx = exp(x - lse) - onehot(target),   dh = sum over ranks of dx W,   dW = dx^T h
// By chunks of rows, with one exchange of two numbers per row and rank; as in linear_cross_entropy the gradients are
// formed while the chunk's logits are at hand.
Tensor parallel_cross_entropy(const Tensor& hidden, const Tensor& weight, const Tensor& targets, const Parts& words,
                              const Communicator& tensor, int64_t chunk_rows) {
  const char* op = "parallel_cross_entropy";
  check(hidden.rank() == 3 && hidden.dim(-1) == weight.dim(1) && targets.rank() == 2 &&
            targets.dim(0) == hidden.dim(0) && targets.dim(1) == hidden.dim(1),
        op, [&] {
          return "hidden " + str(hidden.shape()) + ", weight " + str(weight.shape()) + " and targets " +
                 str(targets.shape()) + " do not fit: need (B, T, D), (v, D) and (B, T)";
        });
  check_range(op, targets, words.total(), true);
  if (tensor.size() == 1) return linear_cross_entropy(hidden, weight, targets, chunk_rows);

  const Backend& b = backend(hidden.device());
  DType type = hidden.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Interval& mine = words.of[static_cast<size_t>(tensor.rank())][0];
  int64_t rows = targets.numel(), width = hidden.dim(2), v = mine.size(), P = tensor.size();
  Tensor h = hidden.contiguous().reshaped({rows, width}), w = weight.contiguous().to(type);
  Tensor ids = targets.contiguous().reshaped({rows});
  bool record_on = recording({hidden, weight});
  Tensor dhidden, dweight;
  if (record_on && requires_grad(hidden)) dhidden = empty({rows, width}, type);
  if (record_on && requires_grad(weight)) dweight = zeros({v, width}, type);
  Tensor buffer = empty({std::min(chunk_rows, rows), v}, type);
  double total = 0;
  for (int64_t begin = 0; begin < rows; begin += chunk_rows) {
    int64_t end = std::min(rows, begin + chunk_rows), n = end - begin;
    Tensor chunk = h.sliced(0, begin, end).to(type), logits = buffer.sliced(0, 0, n);
    Tensor chunk_ids = ids.sliced(0, begin, end);
    OwnIds own = own_ids(chunk_ids, mine, type);
    b.matmul(chunk, w.transposed(), false, logits);

    // Per row: our logsumexp, and the target's logit where it is ours.
    Tensor loss = empty({n}, type), lse = empty({n}, type), picked = empty({n}, type);
    b.cross_entropy(logits, own.ids, loss, lse);
    b.gather_last(logits, own.ids, picked);
    b.binary(BinaryOp::mul, picked, own.mask, picked);
    Tensor pair = empty({1, 2, n}, type);
    pair.sliced(1, 0, 1).copy_from(lse.reshaped({1, 1, n}));
    pair.sliced(1, 1, 2).copy_from(picked.reshaped({1, 1, n}));
    std::vector<double> pairs = tensor.all_gather(pair, 0, even_parts(P, static_cast<int>(P))).to_vector<double>();
    std::vector<int64_t> wanted = chunk_ids.to_vector<int64_t>();
    std::vector<double> whole(static_cast<size_t>(n)), counted(whole.size());
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
      counted[k] = wanted[k] >= 0;
      if (wanted[k] >= 0) total += whole[k] - logit;
    }
    if (!dhidden && !dweight) continue;

    // logits -> their gradient, in place
    Tensor column = from_vector(whole, {n, 1}).to(type), rows_counted = from_vector(counted, {n, 1}).to(type);
    b.binary(BinaryOp::sub, logits, column.expanded({n, v}), logits);
    b.unary(UnaryOp::exp, 0, 0, logits, logits);
    b.binary(BinaryOp::mul, logits, rows_counted.expanded({n, v}), logits);
    visit_float(type, op, [&]<class T>() {
      T* dx = logits.mutable_data<T>();
      const int64_t* id = own.ids.data<int64_t>();
      for (int64_t i : own.where) dx[i * v + id[i]] = static_cast<T>(static_cast<Accumulate<T>>(dx[i * v + id[i]]) - 1);
    });
    if (dhidden) {
      Tensor part = dhidden.sliced(0, begin, end);
      b.matmul(logits, w, false, part);
    }
    if (dweight) b.matmul(logits.transposed(), chunk, true, dweight);
  }
  Shape shape = hidden.shape();
  DType stored = hidden.dtype();
  return record(op, full({}, total, type), {hidden, weight}, [=](const Tensor& dy) -> Grads {
    auto scaled = [&](const Tensor& g, const Shape& to) {
      if (!g) return Tensor();
      Tensor out = g;
      backend(out.device()).unary(UnaryOp::affine, dy.item(), 0, out, out);
      return out.to(stored).reshaped(to);
    };
    return {scaled(dhidden, shape), scaled(dweight, {v, width})};
  });
}

}  // namespace braid::dist
