#include "braid/distributed/sharding/partition.h"

#include <algorithm>

namespace braid::dist {

namespace {
// [0, n) cut into `pieces` ranges whose lengths differ by at most one, the longer ones first.
Ranges cut(int64_t n, int64_t pieces) {
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

int64_t Partition::size(int rank) const { return entries(of(rank)); }

int64_t Partition::total() const {
  int64_t n = 0;
  for (const Ranges& list : ranges) n += entries(list);
  return n;
}

int64_t Partition::extent() const {
  int64_t end = 0;
  for (const Ranges& list : ranges) {
    if (!list.empty()) end = std::max(end, list.back().end);
  }
  return end;
}

Partition even_partition(int64_t n, int ranks) {
  check(ranks >= 1, "partition", [&] { return str("needs at least one rank, got ", ranks); });
  Partition p;
  for (const Range& range : cut(n, ranks)) p.ranges.push_back({range});
  return p;
}

Partition zigzag_partition(int64_t n, int ranks) {
  return zigzag_partition_within({{{{0, n / 2 + n % 2}, {n / 2 + n % 2, n}}}}, 0, ranks);
}

Partition zigzag_partition_within(const Partition& outer, int rank, int ranks) {
  const Ranges& mine = outer.of(rank);
  check(mine.size() == 2, "partition",
        [&] { return str("a zigzag partition is cut from an early and a late range, got ", mine.size(), " ranges"); });
  int64_t first = mine[0].size();
  Ranges early = cut(first, ranks), late = cut(mine[1].size(), ranks);
  Partition p;
  for (int r = 0; r < ranks; ++r) {
    p.ranges.push_back({early[static_cast<size_t>(r)], shifted(late[static_cast<size_t>(ranks - 1 - r)], first)});
  }
  return p;
}

Partition scale_partition(const Partition& p, int64_t times) {
  Partition out = p;
  for (Ranges& list : out.ranges) {
    for (Range& i : list) i = {i.begin * times, i.end * times};
  }
  return out;
}

Partition append_partition(const Partition& p, const Partition& q) {
  check(p.ranks() == q.ranks(), "partition",
        [&] { return str("cannot join partitions over ", p.ranks(), " and ", q.ranks(), " ranks"); });
  Partition out = p;
  const int64_t n = p.total();
  for (size_t r = 0; r < out.ranges.size(); ++r) {
    for (const Range& i : q.ranges[r])
      if (i.size() > 0) out.ranges[r].push_back(shifted(i, n));
  }
  return out;
}

Ranges index_ranges(const Ranges& outer, const Ranges& inner) {
  Ranges out;
  for (const Range& want : inner) {
    int64_t before = 0;
    for (const Range& o : outer) {
      Range both{std::max(want.begin, before), std::min(want.end, before + o.size())};
      if (both.size() > 0) out.push_back(shifted(both, o.begin - before));
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

Ranges intersect(const Ranges& a, const Ranges& b) {
  Ranges out;
  for (const Range& i : a) {
    for (const Range& j : b) {
      Range both{std::max(i.begin, j.begin), std::min(i.end, j.end)};
      if (both.size() > 0) out.push_back(both);
    }
  }
  return out;
}

Ranges locate(const Ranges& outer, const Ranges& part) {
  Ranges out;
  for (const Range& want : part) {
    int64_t before = 0;
    for (const Range& o : outer) {
      Range both{std::max(want.begin, o.begin), std::min(want.end, o.end)};
      if (both.size() > 0) out.push_back(shifted(both, before - o.begin));
      before += o.size();
    }
  }
  return out;
}

Ranges merge(const Ranges& list) {
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

Tensor gather_ranges(const Tensor& full, int axis, const Ranges& list) {
  Shape shape = full.shape();
  shape[axis] = entries(list);
  Tensor part = empty(shape, full.dtype(), full.device());
  int64_t at = 0;
  for (const Range& i : list) {
    if (i.size() > 0) part.sliced(axis, at, at + i.size()).copy_(full.sliced(axis, i.begin, i.end));
    at += i.size();
  }
  return part;
}

void scatter_ranges(const Tensor& part, int axis, const Ranges& list, Tensor& full) {
  int64_t at = 0;
  for (const Range& i : list) {
    if (i.size() > 0) full.sliced(axis, i.begin, i.end).copy_(part.sliced(axis, at, at + i.size()));
    at += i.size();
  }
}

std::vector<Span> spans_of(const Shape& full, int axis, const Ranges& list, Range flat) {
  std::vector<Span> spans;
  int64_t inner = 1, rows = entries(list);  // elements per entry; entries of the part per index of the axes before
  for (int i = axis + 1; i < full.rank(); ++i) inner *= full[i];
  if (flat.size() <= 0 || rows * inner == 0) return spans;
  int64_t at = flat.begin / (rows * inner) * rows * inner;  // in the part
  for (int64_t outer = at / (rows * inner); at < flat.end; ++outer) {
    for (const Range& i : list) {
      Range both{std::max(at, flat.begin), std::min(at + i.size() * inner, flat.end)};
      int64_t place = (outer * full[axis] + i.begin) * inner + both.begin - at;
      at += i.size() * inner;
      if (both.size() <= 0) continue;
      bool joins = !spans.empty() && spans.back().full + spans.back().count == place;
      if (joins) {
        spans.back().count += both.size();
      } else {
        spans.push_back({place, both.begin - flat.begin, both.size()});
      }
    }
  }
  return spans;
}

}  // namespace braid::dist
