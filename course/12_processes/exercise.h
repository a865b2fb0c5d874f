// Exercise 12: the collectives from send and receive, and what a model on several ranks needs of them.
//
//   comm.rank()           this rank, 0 to P - 1          comm.send(x, to)         waits until rank `to` has received x
//   comm.size()           the number of ranks, P         comm.receive(x, from)    fills x, contiguous
//
// Every rank calls each function of this file, in the same order. Inputs stay as they are, the list of mean_gradients()
// excepted. Parts of an axis are those of
// dist::even_partition(n, P).single(r), a Range with begin, end and size().
#pragma once
#include <braid/autograd/manipulate.h>
#include <braid/autograd/ops.h>
#include <braid/distributed/comm/communicator.h>

#include "course/checks.h"

namespace exercise {

using namespace braid;
using dist::Communicator;

// Sends `mine` to the rank `peer` and returns what that one sends here, of shape `theirs` and the type of `mine`. Both
// ranks call it. A send may wait for its receive, so the two ranks cannot both begin with a send, nor with a receive.
inline Tensor exchange(const Communicator& comm, int peer, const Tensor& mine, const Shape& theirs) {
  throw course::NotWritten("exchange()");
}

// x (n, ...), the same shape on every rank -> this rank's part of axis 0 of the sum over ranks. The sum is formed in
// rank order, ((x_0 + x_1) + x_2) + ..., so that it has the same bits in every run. Each rank sends at most n (P-1)/P.
inline Tensor reduce_scatter(const Communicator& comm, const Tensor& x) {
  throw course::NotWritten("reduce_scatter()");
}

// own (part of n, ...), each rank's part of axis 0 -> (n, ...) on every rank.
inline Tensor all_gather(const Communicator& comm, const Tensor& own, int64_t n) {
  throw course::NotWritten("all_gather()");
}

// The sum over ranks of x, of any shape, with the same bits on every rank. Each rank sends 2 (P-1)/P of x's elements.
inline Tensor all_reduce(const Communicator& comm, const Tensor& x) { throw course::NotWritten("all_reduce()"); }

// Data parallel. gradients: of the mean loss over the `samples` of this rank -> of the mean loss over the samples of
// all ranks, whose numbers may differ.
inline void mean_gradients(const Communicator& comm, std::vector<Tensor>& gradients, int64_t samples) {
  throw course::NotWritten("mean_gradients()");
}

// Own heads, all rows (T, N/P, d) -> all heads, own rows (T/P, N, d), and back. P divides T and N; rank r has the r-th
// part of each.
inline Tensor heads_to_rows(const Communicator& comm, const Tensor& x) { throw course::NotWritten("heads_to_rows()"); }
inline Tensor rows_to_heads(const Communicator& comm, const Tensor& x) { throw course::NotWritten("rows_to_heads()"); }

// Tensor parallel: causal attention of this rank's heads, q, k, v and result (T, N/P, d), with all N heads mixed before
// softmax: S'[n] = S[n] + sum_m S[m] base[m,n], S = q k^T / sqrt(d), base (N, N). By attention of
// all heads for own rows: q goes from own heads to own rows, k and v too and then to all rows. By ops of your own, or
// by dcmha(q, k, v, pre, {}, options) on q (1, T/P, N, d), k and v (1, T, N, d) with pre.base (1, N, N) and
// options.mask.offset, the position of the first own row.
inline Tensor composed_attention(const Communicator& comm, const Tensor& q, const Tensor& k, const Tensor& v,
                                 const Tensor& base) {
  throw course::NotWritten("composed_attention()");
}

}  // namespace exercise
