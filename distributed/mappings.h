// Collectives with derivatives, in conjugate pairs: the backward of one is the forward of the other. With one rank
// each is the identity.
//
//                      forward                         backward
//   copy_to_ranks      the same x on every rank        sum of the gradients over ranks
//   sum_over_ranks     sum of x over ranks             the same gradient on every rank
//   gather_copies      our part -> the whole           our part of the (equal) gradients
//   keep_part          the whole -> our part           the whole of the gradients
//   gather             our part -> the whole           sum of the gradients, our part of it
//   sum_scatter        sum over ranks, our part of it  the whole of the gradients
//   exchange           all-to-all                      the all-to-all back
//   fetch              what we have -> what we need    sum of the gradients over those who needed it
//
// The first four deal with a value that all ranks hold alike and that counts once; the last four with values that
// differ from rank to rank. `gather` and `sum_scatter` around a layer that is split by heads or columns do the work of
// copy_to_ranks and sum_over_ranks at the same volume, and everything between such layers runs on 1/P of the rows.
#pragma once
#include "distributed/communicator.h"

namespace braid::dist {

Tensor copy_to_ranks(const Tensor& x, const Communicator& comm);
Tensor sum_over_ranks(const Tensor& x, const Communicator& comm);
Tensor gather_copies(const Tensor& x, int axis, const Parts& parts, const Communicator& comm);
Tensor keep_part(const Tensor& x, int axis, const Parts& parts, const Communicator& comm);
Tensor gather(const Tensor& x, int axis, const Parts& parts, const Communicator& comm);
Tensor sum_scatter(const Tensor& x, int axis, const Parts& parts, const Communicator& comm);
// x: our part of axis `to`, whole along `from`. Result: whole along `to`, our part of `from`. Entries of `from` may be
// part of several ranks; their gradients are summed.
Tensor exchange(const Tensor& x, int from, const Parts& from_parts, int to, const Parts& to_parts,
                const Communicator& comm);

// x: our entries have.of[rank] of the axis. Result: need.of[rank] of it. With need = everything it is gather.
Tensor fetch(const Tensor& x, int axis, const Parts& have, const Parts& need, const Communicator& comm);

}  // namespace braid::dist
