#include "distributed/mappings.h"

#include "autograd/record.h"

namespace braid::dist {

namespace {
const Intervals& own(const Parts& parts, const Communicator& comm) {
  return parts.of.at(static_cast<size_t>(comm.rank()));
}
}  // namespace

Tensor copy_to_ranks(const Tensor& x, const Communicator& comm) {
  return record("copy_to_ranks", x, {x}, [comm](const Tensor& dy) -> Grads { return {comm.all_reduce(dy)}; });
}

Tensor sum_over_ranks(const Tensor& x, const Communicator& comm) {
  return record("sum_over_ranks", comm.all_reduce(x), {x}, [](const Tensor& dy) -> Grads { return {dy}; });
}

Tensor gather_copies(const Tensor& x, int axis, const Parts& parts, const Communicator& comm) {
  return record("gather_copies", comm.all_gather(x, axis, parts), {x},
                [=](const Tensor& dy) -> Grads { return {take(dy, axis, own(parts, comm))}; });
}

Tensor keep_part(const Tensor& x, int axis, const Parts& parts, const Communicator& comm) {
  return record("keep_part", take(x, axis, own(parts, comm)), {x},
                [=](const Tensor& dy) -> Grads { return {comm.all_gather(dy, axis, parts)}; });
}

Tensor gather(const Tensor& x, int axis, const Parts& parts, const Communicator& comm) {
  return record("gather", comm.all_gather(x, axis, parts), {x},
                [=](const Tensor& dy) -> Grads { return {comm.reduce_scatter(dy, axis, parts)}; });
}

Tensor sum_scatter(const Tensor& x, int axis, const Parts& parts, const Communicator& comm) {
  return record("sum_scatter", comm.reduce_scatter(x, axis, parts), {x},
                [=](const Tensor& dy) -> Grads { return {comm.all_gather(dy, axis, parts)}; });
}

Tensor exchange(const Tensor& x, int from, const Parts& from_parts, int to, const Parts& to_parts,
                const Communicator& comm) {
  return record("exchange", comm.all_to_all(x, from, from_parts, to, to_parts), {x},
                [=](const Tensor& dy) -> Grads { return {comm.all_to_all(dy, to, to_parts, from, from_parts)}; });
}

Tensor fetch(const Tensor& x, int axis, const Parts& have, const Parts& need, const Communicator& comm) {
  return record("fetch", comm.fetch(x, axis, have, need), {x},
                [=](const Tensor& dy) -> Grads { return {comm.give_back(dy, axis, have, need)}; });
}

}  // namespace braid::dist
