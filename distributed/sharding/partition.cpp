#include "braid/distributed/sharding/partition.h"

#include <algorithm>

namespace braid::dist {

namespace {
// Runs [0, n) of `pieces` lengths that differ by at most one, the longer ones first.
Ranges runs(int64_t n, int64_t pieces) {
  Ranges out;
  int64_t at = 0;
  for (int64_t i = 0; i < pieces; ++i) {
    int64_t length = n / pieces + (i < n % pieces);
    out.push_back({at, at + length});
    at += length;
  }
  return out;
}

Range shifted(Range i, int64_t by) { return {i.begin + by, i.end + by}; }
}  // namespace

int64_t Partition::size(int rank) const { return entries(of.at(static_cast<size_t>(rank))); }

int64_t Partition::total() const {
  int64_t n = 0;
  for (const Ranges& list : of) n += entries(list);
  return n;
}

int64_t Partition::extent() const {
  int64_t end = 0;
  for (const Ranges& list : of) {
    if (!list.empty()) end = std::max(end, list.back().end);
  }
  return end;
}

Partition even_partition(int64_t n, int ranks) {
  check(ranks >= 1, "parts", [&] { return "needs at least one rank, got " + std::to_string(ranks); });
  Partition p;
  for (const Range& run : runs(n, ranks)) p.of.push_back({run});
  return p;
}

Partition zigzag_partition(int64_t n, int ranks) {
  return zigzag_partition_within({{{{0, n / 2 + n % 2}, {n / 2 + n % 2, n}}}}, 0, ranks);
}

Partition zigzag_partition_within(const Partition& whole, int rank, int ranks) {
  const Ranges& mine = whole.of.at(static_cast<size_t>(rank));
  check(mine.size() == 2, "parts", [&] {
    return "causal parts are cut from an early and a late run, got " + std::to_string(mine.size()) + " runs";
  });
  int64_t first = mine[0].size();
  Ranges early = runs(first, ranks), late = runs(mine[1].size(), ranks);
  Partition p;
  for (int r = 0; r < ranks; ++r) {
    p.of.push_back({early[static_cast<size_t>(r)], shifted(late[static_cast<size_t>(ranks - 1 - r)], first)});
  }
  return p;
}

Partition widened(const Partition& p, int64_t times) {
  Partition out = p;
  for (Ranges& list : out.of) {
    for (Range& i : list) i = {i.begin * times, i.end * times};
  }
  return out;
}

Partition stacked(const Partition& p, int copies) {
  Partition out{std::vector<Ranges>(p.of.size())};
  int64_t n = p.total();
  for (size_t r = 0; r < p.of.size(); ++r) {
    for (int64_t c = 0; c < copies; ++c) {
      for (const Range& i : p.of[r]) out.of[r].push_back(shifted(i, c * n));
    }
  }
  return out;
}

Ranges within(const Ranges& outer, const Ranges& inner) {
  Ranges out;
  for (const Range& want : inner) {
    int64_t before = 0;
    for (const Range& o : outer) {
      Range cut{std::max(want.begin, before), std::min(want.end, before + o.size())};
      if (cut.size() > 0) out.push_back(shifted(cut, o.begin - before));
      before += o.size();
    }
  }
  return out;
}

int64_t entries(const Ranges& list) {
  int64_t n = 0;
  for (const Range& i : list) n += i.size();
  return n;
}

Ranges overlap(const Ranges& a, const Ranges& b) {
  Ranges out;
  for (const Range& i : a) {
    for (const Range& j : b) {
      Range cut{std::max(i.begin, j.begin), std::min(i.end, j.end)};
      if (cut.size() > 0) out.push_back(cut);
    }
  }
  return out;
}

Ranges places_in(const Ranges& outer, const Ranges& part) {
  Ranges out;
  for (const Range& want : part) {
    int64_t before = 0;
    for (const Range& o : outer) {
      Range cut{std::max(want.begin, o.begin), std::min(want.end, o.end)};
      if (cut.size() > 0) out.push_back(shifted(cut, before - o.begin));
      before += o.size();
    }
  }
  return out;
}

Ranges joined(const Ranges& list) {
  Ranges out;
  for (const Range& i : list) {
    if (i.size() == 0) continue;
    if (!out.empty() && i.begin <= out.back().end) {
      out.back().end = std::max(out.back().end, i.end);
    } else {
      out.push_back(i);
    }
  }
  return out;
}

Tensor take(const Tensor& whole, int axis, const Ranges& list) {
  Shape shape = whole.shape();
  shape[axis] = entries(list);
  Tensor part = empty(shape, whole.dtype(), whole.device());
  int64_t at = 0;
  for (const Range& i : list) {
    if (i.size() > 0) part.sliced(axis, at, at + i.size()).copy_(whole.sliced(axis, i.begin, i.end));
    at += i.size();
  }
  return part;
}

void put(const Tensor& part, int axis, const Ranges& list, Tensor& whole) {
  int64_t at = 0;
  for (const Range& i : list) {
    if (i.size() > 0) whole.sliced(axis, i.begin, i.end).copy_(part.sliced(axis, at, at + i.size()));
    at += i.size();
  }
}

std::vector<Span> spans_of(const Shape& whole, int axis, const Ranges& list, Range flat) {
  std::vector<Span> runs;
  int64_t inner = 1, rows = entries(list);  // numbers per entry; entries of the part per index of the axes before
  for (int i = axis + 1; i < whole.rank(); ++i) inner *= whole[i];
  if (flat.size() <= 0 || rows * inner == 0) return runs;
  int64_t at = flat.begin / (rows * inner) * rows * inner;  // in the part
  for (int64_t outer = at / (rows * inner); at < flat.end; ++outer) {
    for (const Range& i : list) {
      Range cut{std::max(at, flat.begin), std::min(at + i.size() * inner, flat.end)};
      int64_t place = (outer * whole[axis] + i.begin) * inner + cut.begin - at;
      at += i.size() * inner;
      if (cut.size() <= 0) continue;
      bool joins = !runs.empty() && runs.back().whole + runs.back().count == place;
      if (joins) {
        runs.back().count += cut.size();
      } else {
        runs.push_back({place, cut.begin - flat.begin, cut.size()});
      }
    }
  }
  return runs;
}

}  // namespace braid::dist
