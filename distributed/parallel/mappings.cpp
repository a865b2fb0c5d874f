#include "braid/distributed/parallel/mappings.h"

#include "braid/autograd/record.h"

namespace braid::dist {

Tensor copy_to_group(const Tensor& x, const Communicator& comm) {
  if (comm.size() == 1) return x;
  return record("copy_to_group", x, {x}, [comm](const Tensor& dy) -> Grads { return {comm.all_reduce(dy)}; });
}

Tensor all_reduce(const Tensor& x, const Communicator& comm) {
  if (comm.size() == 1) return x;
  return record("all_reduce", comm.all_reduce(x.detach()), {x}, [](const Tensor& dy) -> Grads { return {dy}; });
}

Tensor all_gather_replicated(const Tensor& x, int axis, const Partition& parts, const Communicator& comm) {
  if (comm.size() == 1) return x;
  return record("all_gather_replicated", comm.all_gather(x.detach(), axis, parts), {x},
                [=](const Tensor& dy) -> Grads { return {gather_ranges(dy, axis, parts.of(comm.rank()))}; });
}

Tensor local_shard(const Tensor& x, int axis, const Partition& parts, const Communicator& comm) {
  if (comm.size() == 1) return x;
  return record("local_shard", gather_ranges(x.detach(), axis, parts.of(comm.rank())), {x},
                [=](const Tensor& dy) -> Grads { return {comm.all_gather(dy, axis, parts)}; });
}

Tensor all_gather(const Tensor& x, int axis, const Partition& parts, const Communicator& comm) {
  if (comm.size() == 1) return x;
  return record("all_gather", comm.all_gather(x.detach(), axis, parts), {x},
                [=](const Tensor& dy) -> Grads { return {comm.reduce_scatter(dy, axis, parts)}; });
}

Tensor reduce_scatter(const Tensor& x, int axis, const Partition& parts, const Communicator& comm) {
  if (comm.size() == 1) return x;
  return record("reduce_scatter", comm.reduce_scatter(x.detach(), axis, parts), {x},
                [=](const Tensor& dy) -> Grads { return {comm.all_gather(dy, axis, parts)}; });
}

Tensor all_to_all(const Tensor& x, int from, const Partition& from_parts, int to, const Partition& to_parts,
                  const Communicator& comm) {
  if (comm.size() == 1) return x;
  return record("all_to_all", comm.all_to_all(x.detach(), from, from_parts, to, to_parts), {x},
                [=](const Tensor& dy) -> Grads { return {comm.all_to_all(dy, to, to_parts, from, from_parts)}; });
}

Tensor sparse_all_gather(const Tensor& x, int axis, const Partition& have, const Partition& need,
                         const Communicator& comm) {
  if (comm.size() == 1 && have == need) return x;
  return record("sparse_all_gather", comm.sparse_all_gather(x.detach(), axis, have, need), {x},
                [=](const Tensor& dy) -> Grads { return {comm.sparse_reduce_scatter(dy, axis, have, need)}; });
}

}  // namespace braid::dist
