// A solution of exercise 12.
#pragma once
#include <braid/autograd/manipulate.h>
#include <braid/autograd/ops.h>
#include <braid/distributed/comm/communicator.h>

#include "course/checks.h"

namespace exercise {

using namespace braid;
using dist::Communicator;

inline Tensor exchange(const Communicator& comm, int peer, const Tensor& mine, const Shape& theirs) {
  Tensor out = empty(theirs, mine.dtype());
  if (comm.rank() < peer) comm.send(mine, peer);
  comm.receive(out, peer);
  if (comm.rank() > peer) comm.send(mine, peer);
  return out;
}

inline dist::Range part(const Communicator& comm, int64_t n, int rank) {
  return dist::even_partition(n, comm.size()).single(rank);
}

inline Tensor reduce_scatter(const Communicator& comm, const Tensor& x) {
  const auto of = [&](int rank) {
    const dist::Range range = part(comm, x.dim(0), rank);
    return x.sliced(0, range.begin, range.end).contiguous();
  };
  const Tensor own = of(comm.rank());
  Tensor sum;
  for (int r = 0; r < comm.size(); ++r) {
    const Tensor next = r == comm.rank() ? own : exchange(comm, r, of(r), own.shape());
    sum = r == 0 ? next : sum + next;
  }
  return sum;
}

inline Tensor all_gather(const Communicator& comm, const Tensor& own, int64_t n) {
  std::vector<Tensor> parts;
  for (int r = 0; r < comm.size(); ++r) {
    Shape shape = own.shape();
    shape[0] = part(comm, n, r).size();
    parts.push_back(r == comm.rank() ? own : exchange(comm, r, own, shape));
  }
  return concat(parts, 0);
}

inline Tensor all_reduce(const Communicator& comm, const Tensor& x) {
  const Tensor flat = reshape(x, {x.numel()});
  return reshape(all_gather(comm, reduce_scatter(comm, flat), x.numel()), x.shape());
}

inline void mean_gradients(const Communicator& comm, std::vector<Tensor>& gradients, int64_t samples) {
  const double mine = static_cast<double>(samples), all = all_reduce(comm, full({1}, mine, DType::f64)).item();
  for (Tensor& gradient : gradients) gradient = all_reduce(comm, gradient * (mine / all));
}

// The parts of axis `from` go to their ranks, those of axis `to` come together.
inline Tensor change(const Communicator& comm, const Tensor& x, int from, int to) {
  std::vector<Tensor> parts;
  for (int r = 0; r < comm.size(); ++r) {
    const dist::Range range = part(comm, x.dim(from), r);
    const Tensor theirs = x.sliced(from, range.begin, range.end).contiguous();
    parts.push_back(r == comm.rank() ? theirs : exchange(comm, r, theirs, theirs.shape()));
  }
  return concat(parts, to);
}
inline Tensor heads_to_rows(const Communicator& comm, const Tensor& x) { return change(comm, x, 0, 1); }
inline Tensor rows_to_heads(const Communicator& comm, const Tensor& x) { return change(comm, x, 1, 0); }

inline Tensor composed_attention(const Communicator& comm, const Tensor& q, const Tensor& k, const Tensor& v,
                                 const Tensor& base) {
  const auto all_rows = [&](const Tensor& x) {
    return unsqueeze(all_gather(comm, heads_to_rows(comm, x), x.dim(0)), 0);
  };
  const Tensor rows = heads_to_rows(comm, q);  // (T/P, N, d)
  DcmhaOptions options;
  options.mask.offset = comm.rank() * rows.dim(0);
  const Tensor y = dcmha(unsqueeze(rows, 0), all_rows(k), all_rows(v), {.base = unsqueeze(base, 0)}, {}, options);
  return rows_to_heads(comm, squeeze(y, 0));
}

}  // namespace exercise
