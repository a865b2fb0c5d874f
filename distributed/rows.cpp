#include "distributed/rows.h"

namespace braid::dist {

namespace {
Intervals joined(const Intervals& list) {
  Intervals out;
  for (const Interval& i : list) {
    if (i.size() == 0) continue;
    if (!out.empty() && out.back().end == i.begin) {
      out.back().end = i.end;
    } else {
      out.push_back(i);
    }
  }
  return out;
}
}  // namespace

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

}  // namespace braid::dist
