// Collectives with derivatives, in conjugate pairs: the backward of one is the forward of the other. With one rank each
// returns x itself: no copy, no node in the graph.
//
//                          forward                              backward
//   copy_to_group          the same x on every rank             sum of the gradients over ranks       Megatron-LM's f
//   all_reduce             sum of x over ranks                  the same gradient on every rank       Megatron-LM's g
//   all_gather_replicated  own entries -> all entries           own entries of the (equal) gradients
//   local_shard            all entries -> own entries           all_gather of the gradients
//   all_gather             own entries -> all entries           reduce_scatter of the gradients
//   reduce_scatter         sum over ranks, own entries of it    all_gather of the gradients
//   all_to_all             own heads, all rows -> all heads, own rows     all_to_all back
//   sparse_all_gather      own entries -> required entries      sum over the ranks that required them
//
// The first four are for a value that is the same on all ranks and counts once; the last four for values that differ
// from rank to rank. all_gather before and reduce_scatter after a layer that is sharded by heads or columns do the work
// of copy_to_group and all_reduce with the same volume, and everything between such layers runs on 1/P of the rows.
//
// axis: of x; parts: the partition of that axis over the ranks of comm.
#pragma once
#include "braid/distributed/comm/communicator.h"

namespace braid::dist {

Tensor copy_to_group(const Tensor& x, const Communicator& comm);
Tensor all_reduce(const Tensor& x, const Communicator& comm);
Tensor all_gather_replicated(const Tensor& x, int axis, const Partition& parts, const Communicator& comm);
Tensor local_shard(const Tensor& x, int axis, const Partition& parts, const Communicator& comm);
Tensor all_gather(const Tensor& x, int axis, const Partition& parts, const Communicator& comm);
Tensor reduce_scatter(const Tensor& x, int axis, const Partition& parts, const Communicator& comm);
// x: own entries of axis `to`, all of axis `from` -> all of `to`, own entries of `from`. from_parts may overlap; the
// gradients of entries of several ranks are summed.
Tensor all_to_all(const Tensor& x, int from, const Partition& from_parts, int to, const Partition& to_parts,
                  const Communicator& comm);

// x: the entries have.of(rank) of the axis -> the entries need.of(rank). An example is in comm/communicator.h.
Tensor sparse_all_gather(const Tensor& x, int axis, const Partition& have, const Partition& need,
                         const Communicator& comm);

}  // namespace braid::dist
