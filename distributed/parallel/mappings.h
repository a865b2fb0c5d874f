// Collectives with derivatives, in conjugate pairs: the backward of one is the forward of the other. With one rank
// each is the identity.
//
//                      forward                         backward
//   copy_to_group      the same x on every rank        sum of the gradients over ranks
//   all_reduce     sum of x over ranks             the same gradient on every rank
//   all_gather_replicated      our part -> the whole           our part of the (equal) gradients
//   local_shard          the whole -> our part           the whole of the gradients
//   gather             our part -> the whole           sum of the gradients, our part of it
//   reduce_scatter        sum over ranks, our part of it  the whole of the gradients
//   exchange           all-to-all                      the all-to-all back
//   fetch              what we have -> what we need    sum of the gradients over those who needed it
//
// The first four deal with a value that all ranks hold alike and that counts once; the last four with values that
// differ from rank to rank. `gather` and `reduce_scatter` around a layer that is split by heads or columns do the work
// of copy_to_group and all_reduce at the same volume, and everything between such layers runs on 1/P of the rows.
#pragma once
#include "braid/distributed/comm/communicator.h"

namespace braid::dist {

Tensor copy_to_group(const Tensor& x, const Communicator& comm);
Tensor all_reduce(const Tensor& x, const Communicator& comm);
Tensor all_gather_replicated(const Tensor& x, int axis, const Partition& parts, const Communicator& comm);
Tensor local_shard(const Tensor& x, int axis, const Partition& parts, const Communicator& comm);
Tensor all_gather(const Tensor& x, int axis, const Partition& parts, const Communicator& comm);
Tensor reduce_scatter(const Tensor& x, int axis, const Partition& parts, const Communicator& comm);
// x: our part of axis `to`, whole along `from`. Result: whole along `to`, our part of `from`. Entries of `from` may be
// part of several ranks; their gradients are summed.
Tensor all_to_all(const Tensor& x, int from, const Partition& from_parts, int to, const Partition& to_parts,
                  const Communicator& comm);

// x: our entries have.of[rank] of the axis. Result: need.of[rank] of it. With need = everything it is gather.
Tensor sparse_all_gather(const Tensor& x, int axis, const Partition& have, const Partition& need,
                         const Communicator& comm);

}  // namespace braid::dist
