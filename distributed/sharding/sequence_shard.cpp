#include "braid/distributed/sharding/sequence_shard.h"

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
  SequenceShard rows;
  rows.over_context = zigzag_partition(T, C);
  check(every_rank_has_rows(T, mesh), ErrorKind::setting, [&] {
    return "sequences of " + std::to_string(T) + " tokens are too short for parallel.context = " + std::to_string(C) +
           " and parallel.tensor = " + std::to_string(P) + ": some process would have no token";
  });
  const Ranges& context = rows.over_context.of[static_cast<size_t>(mesh.context.rank())];
  rows.over_tensor = zigzag_partition_within(rows.over_context, mesh.context.rank(), P);
  rows.context = joined(context);
  rows.own = joined(within(context, rows.over_tensor.of[static_cast<size_t>(mesh.tensor.rank())]));
  std::vector<int64_t> positions;
  for (const Range& i : rows.context) {
    for (int64_t p = i.begin; p < i.end; ++p) positions.push_back(p);
  }
  rows.positions = from_vector(positions, {static_cast<int64_t>(positions.size())});
  return rows;
}

KeyExchangePlan plan_key_exchange(int64_t T, const MeshCoord& rank, const AttentionMask& sight, bool own_rows) {
  Partition contexts = zigzag_partition(T, rank.contexts);
  auto seen_by = [&](int c, int t) {  // positions, from the first key of the first query to the last query, per run
    if (!sight.causal) return Ranges{{0, T}};
    const Ranges& rows = contexts.of[static_cast<size_t>(c)];
    Ranges runs = joined(rows);
    if (own_rows)
      runs = joined(within(rows, zigzag_partition_within(contexts, c, rank.tensors).of[static_cast<size_t>(t)]));
    for (Range& run : runs) run.begin = sight.first(run.begin);
    return joined(runs);
  };
  auto held_by = [&](int c, int t) {
    Ranges wanted;
    for (int other = 0; other < rank.contexts; ++other) {
      for (const Range& i : seen_by(other, t)) wanted.push_back(i);
    }
    std::sort(wanted.begin(), wanted.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
    return overlap(joined(contexts.of[static_cast<size_t>(c)]), joined(wanted));
  };
  KeyExchangePlan keys;
  for (int c = 0; c < rank.contexts; ++c) {
    keys.held.of.push_back(held_by(c, rank.tensor));
    keys.needed.of.push_back(seen_by(c, rank.tensor));
  }
  for (int t = 0; t < rank.tensors; ++t)
    keys.to_tensor.of.push_back(places_in(contexts.of[static_cast<size_t>(rank.context)], held_by(rank.context, t)));
  return keys;
}

}  // namespace braid::dist
