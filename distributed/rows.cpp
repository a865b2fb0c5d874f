#include "distributed/rows.h"

#include <algorithm>

namespace braid::dist {

Rows rows_of(int64_t T, const Layout& layout) {
  int C = layout.context.size(), P = layout.tensor.size();
  Rows rows;
  rows.over_context = causal_parts(T, C);
  for (int c = 0; c < C; ++c) {
    Parts inner = causal_parts_within(rows.over_context, c, P);
    for (int t = 0; t < P; ++t) {
      check(inner.size(t) > 0, ErrorKind::setting, [&] {
        return "sequences of " + std::to_string(T) +
               " tokens are too short for parallel.context = " + std::to_string(C) +
               " and parallel.tensor = " + std::to_string(P) + ": some process would have no token";
      });
    }
  }
  const Intervals& context = rows.over_context.of[static_cast<size_t>(layout.context.rank())];
  rows.over_tensor = causal_parts_within(rows.over_context, layout.context.rank(), P);
  rows.context = joined(context);
  rows.own = joined(within(context, rows.over_tensor.of[static_cast<size_t>(layout.tensor.rank())]));
  std::vector<int64_t> positions;
  for (const Interval& i : rows.context) {
    for (int64_t p = i.begin; p < i.end; ++p) positions.push_back(p);
  }
  rows.positions = from_vector(positions, {static_cast<int64_t>(positions.size())});
  return rows;
}

KeyRows key_rows(int64_t T, const RankInBox& rank, const Visibility& sight, bool own_rows) {
  Parts contexts = causal_parts(T, rank.contexts);
  auto seen_by = [&](int c, int t) {  // positions, from the first key of the first query to the last query, per run
    if (!sight.causal) return Intervals{{0, T}};
    const Intervals& rows = contexts.of[static_cast<size_t>(c)];
    Intervals runs = joined(rows);
    if (own_rows)
      runs = joined(within(rows, causal_parts_within(contexts, c, rank.tensors).of[static_cast<size_t>(t)]));
    for (Interval& run : runs) run.begin = sight.first(run.begin);
    return joined(runs);
  };
  auto held_by = [&](int c, int t) {
    Intervals wanted;
    for (int other = 0; other < rank.contexts; ++other) {
      for (const Interval& i : seen_by(other, t)) wanted.push_back(i);
    }
    std::sort(wanted.begin(), wanted.end(), [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
    return overlap(joined(contexts.of[static_cast<size_t>(c)]), joined(wanted));
  };
  KeyRows keys;
  for (int c = 0; c < rank.contexts; ++c) {
    keys.held.of.push_back(held_by(c, rank.tensor));
    keys.needed.of.push_back(seen_by(c, rank.tensor));
  }
  for (int t = 0; t < rank.tensors; ++t)
    keys.to_tensor.of.push_back(places_in(contexts.of[static_cast<size_t>(rank.context)], held_by(rank.context, t)));
  return keys;
}

}  // namespace braid::dist
