#include "braid/distributed/parallel/sequence_shard.h"

#include <algorithm>

namespace braid::dist {

bool every_rank_has_rows(int64_t T, const ProcessMesh& mesh) {
  Partition over_context = zigzag_partition(T, mesh.context.size());
  for (int c = 0; c < mesh.context.size(); ++c) {
    Partition over_tensor = zigzag_partition_within(over_context, c, mesh.tensor.size());
    for (int t = 0; t < mesh.tensor.size(); ++t) {
      if (over_tensor.size(t) == 0) return false;
    }
  }
  return true;
}

SequenceShard shard_sequence(int64_t T, const ProcessMesh& mesh) {
  int C = mesh.context.size(), P = mesh.tensor.size();
  SequenceShard rows{.over_context = zigzag_partition(T, C)};
  check(every_rank_has_rows(T, mesh), ErrorKind::setting, [&] {
    return str("sequences of ", T, " tokens are too short for parallel.context = ", C, " and parallel.tensor = ", P,
               ": some process would have no token");
  });
  const Ranges& context = rows.over_context.of(mesh.context.rank());
  rows.over_tensor = zigzag_partition_within(rows.over_context, mesh.context.rank(), P);
  rows.context = merge(context);
  rows.own = merge(index_ranges(context, rows.over_tensor.of(mesh.tensor.rank())));
  std::vector<int64_t> positions;
  for (const Range& i : rows.context) {
    for (int64_t p = i.begin; p < i.end; ++p) positions.push_back(p);
  }
  rows.positions = from_vector(positions, {static_cast<int64_t>(positions.size())});
  return rows;
}

KeyExchangePlan plan_key_exchange(int64_t T, const MeshCoord& rank, const AttentionMask& mask, bool own_rows) {
  Partition contexts = zigzag_partition(T, rank.contexts);
  // Per range of queries: from the first key of its first query to its last query.
  auto required_by = [&](int c, int t) {
    if (!mask.causal) return Ranges{{0, T}};
    Ranges queries = contexts.of(c);
    if (own_rows) queries = index_ranges(queries, zigzag_partition_within(contexts, c, rank.tensors).of(t));
    Ranges keys = merge(queries);
    for (Range& range : keys) range.begin = mask.first(range.begin);
    return merge(keys);
  };
  // The keys of context rank c that tensor rank t of any context rank requires.
  auto local_to = [&](int c, int t) {
    Ranges required;
    for (int other = 0; other < rank.contexts; ++other) {
      for (const Range& i : required_by(other, t)) required.push_back(i);
    }
    std::sort(required.begin(), required.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
    return intersect(merge(contexts.of(c)), merge(required));
  };
  KeyExchangePlan plan;
  for (int c = 0; c < rank.contexts; ++c) {
    plan.local.ranges.push_back(local_to(c, rank.tensor));
    plan.required.ranges.push_back(required_by(c, rank.tensor));
  }
  for (int t = 0; t < rank.tensors; ++t)
    plan.to_tensor_ranks.ranges.push_back(locate(contexts.of(rank.context), local_to(rank.context, t)));
  return plan;
}

}  // namespace braid::dist
