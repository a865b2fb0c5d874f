#include "braid/autograd/detail/index_parts.h"

#include <algorithm>

namespace braid::index_parts {

namespace {

int64_t inside(const char* op, int64_t id, int64_t n) {
  check(id >= -n && id < n, op,
        [&] { return str("index ", id, " is not in [", -n, ", ", n, "): the axis has ", n, " entries"); });
  return id < 0 ? id + n : id;
}

Range range_of(const Slice& s, int64_t n) {
  check(s.step != 0, "index", "the step of a slice must not be 0");
  const bool forwards = s.step > 0;
  const int64_t low = forwards ? 0 : -1, high = forwards ? n : n - 1;  // where bounds are cut
  const auto bound = [&](const std::optional<int64_t>& given, int64_t otherwise) {
    if (!given) return otherwise;
    return std::clamp(*given < 0 ? *given + n : *given, low, high);
  };
  const int64_t begin = bound(s.begin, forwards ? 0 : n - 1), end = bound(s.end, forwards ? n : -1);
  const int64_t distance = forwards ? end - begin : begin - end;
  if (distance <= 0) return {0, 1, 0};
  const uint64_t step = forwards ? static_cast<uint64_t>(s.step) : 0 - static_cast<uint64_t>(s.step);
  const auto count = static_cast<int64_t>((static_cast<uint64_t>(distance) - 1) / step) + 1;
  return {begin, count == 1 ? 1 : s.step, count};  // of one entry any step, whose multiples an i64 may not hold
}

// `at` with a whole slice for every axis that it leaves out.
std::vector<Index> complete(const char* op, const Tensor& x, const std::vector<Index>& at) {
  int taken = 0, ellipses = 0;
  for (const Index& i : at) {
    const auto* tensor = std::get_if<Tensor>(&i.value);
    ellipses += std::holds_alternative<Ellipsis>(i.value);
    if (tensor && tensor->dtype() == DType::u8)
      taken += tensor->rank();
    else if (!std::holds_alternative<Ellipsis>(i.value) && !std::holds_alternative<NewAxis>(i.value))
      ++taken;
  }
  check(taken <= x.rank() && ellipses <= 1, op, [&] {
    return str("the index takes ", taken, " axes and has ", ellipses, " ellipses, expected at most the ", x.rank(),
               " axes of ", x.shape(), "; one ellipsis may stand");
  });
  std::vector<Index> all;
  for (const Index& i : at) {
    if (std::holds_alternative<Ellipsis>(i.value))
      all.insert(all.end(), static_cast<size_t>(x.rank() - taken), Slice{});
    else
      all.push_back(i);
  }
  if (ellipses == 0) all.insert(all.end(), static_cast<size_t>(x.rank() - taken), Slice{});
  return all;
}

}  // namespace

Positions Range::list() const {
  Positions all(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) all[static_cast<size_t>(i)] = begin + i * step;
  return all;
}

std::vector<Positions> places(const Tensor& mask) {
  const Tensor flags = (mask.dtype() == DType::u8 ? mask : ne(mask.detach(), 0.0)).to(kCpu).contiguous();
  const uint8_t* flag = flags.data<uint8_t>();
  std::vector<Positions> axes(static_cast<size_t>(mask.rank()));
  for (int64_t i = 0; i < flags.numel(); ++i) {
    if (flag[i] == 0) continue;
    int64_t rest = i;
    for (int a = mask.rank() - 1; a >= 0; --a) {
      axes[static_cast<size_t>(a)].push_back(rest % mask.dim(a));
      rest /= mask.dim(a);
    }
  }
  return axes;
}

Positions ids_of(const char* op, const Tensor& ids, int64_t n) {
  check(ids.dtype() == DType::i64 || ids.dtype() == DType::i32, op,
        [&] { return str("needs ids of i64 or i32, or a mask of u8, got ", ids.dtype()); });
  Positions list = ids.to_vector<int64_t>();
  for (int64_t& id : list) id = inside(op, id, n);
  return list;
}

std::vector<Part> read(const Tensor& x, const std::vector<Index>& at) {
  const std::vector<Index> all = complete("index", x, at);
  const bool has_ids = std::ranges::any_of(all, [](const Index& i) { return std::holds_alternative<Tensor>(i.value); });
  std::vector<Part> parts;
  int axis = 0;
  for (const Index& i : all) {
    if (const auto* position = std::get_if<int64_t>(&i.value)) {
      const int64_t entry = inside("index", *position, x.dim(axis++));
      parts.push_back(has_ids ? Part(Ids{{}, {entry}}) : Part(entry));
    } else if (const auto* slice_of = std::get_if<Slice>(&i.value)) {
      parts.push_back(range_of(*slice_of, x.dim(axis++)));
    } else if (std::holds_alternative<NewAxis>(i.value)) {
      parts.push_back(newaxis);
    } else {
      const Tensor& t = std::get<Tensor>(i.value);
      if (t.dtype() != DType::u8) {
        parts.push_back(Ids{t.shape(), ids_of("index", t, x.dim(axis++))});
        continue;
      }
      check(t.rank() > 0, "index", "a mask needs at least one axis");
      for (int a = 0; a < t.rank(); ++a)
        check(t.dim(a) == x.dim(axis + a), "index", [&] {
          return str("the mask ", t.shape(), " does not fit axes ", axis, " to ", axis + t.rank() - 1, " of ",
                     x.shape(), "; its sizes must be theirs (masked_select() takes one that broadcasts)");
        });
      axis += t.rank();
      for (Positions& list : places(t)) {
        const auto count = static_cast<int64_t>(list.size());
        parts.push_back(Ids{{count}, std::move(list)});
      }
    }
  }
  return parts;
}

void add_repeated(Positions& sums, const Ids& ids, const Shape& shape, int64_t n) {
  const Positions all = from_vector(ids.list, ids.shape).expanded(shape).to_vector<int64_t>();
  for (size_t i = 0; i < sums.size(); ++i) sums[i] += n * all[i];
}

PlacesOfIds::PlacesOfIds(const std::vector<Part>& parts) {
  for (size_t k = 0; k < parts.size(); ++k) {
    const auto* ids = std::get_if<Ids>(&parts[k]);
    if (!ids) continue;
    shape = broadcast(shape, ids->shape, "index");
    last = static_cast<int>(k);
    if (count++ == 0) first = last;
  }
}

// Each is a sum of one offset per part.
std::pair<Positions, Shape> positions_of(const Tensor& x, const std::vector<Index>& at) {
  const std::vector<Part> parts = read(x, at);
  const PlacesOfIds where_ids(parts);
  const Strides strides = contiguous_strides(x.shape());
  Ids of_ids{where_ids.shape, Positions(static_cast<size_t>(numel(where_ids.shape)), 0)};
  std::vector<Ids> offsets;
  int64_t first = 0;
  size_t place = 0;  // of the ids among the others
  int axis = 0;
  for (size_t k = 0; k < parts.size(); ++k) {
    if (const auto* position = std::get_if<int64_t>(&parts[k])) {
      first += *position * strides[axis++];
    } else if (const auto* range = std::get_if<Range>(&parts[k])) {
      offsets.push_back({{range->count}, range->list()});
      for (int64_t& offset : offsets.back().list) offset *= strides[axis];
      ++axis;
    } else if (std::holds_alternative<NewAxis>(parts[k])) {
      offsets.push_back({{1}, {0}});
    } else {
      if (static_cast<int>(k) == where_ids.first && where_ids.neighbours()) place = offsets.size();
      add_repeated(of_ids.list, std::get<Ids>(parts[k]), where_ids.shape, strides[axis++]);
    }
  }
  if (where_ids.count > 0) offsets.insert(offsets.begin() + static_cast<std::ptrdiff_t>(place), std::move(of_ids));
  Positions all{first};
  Shape shape;
  for (const Ids& one : offsets) {
    Positions sums;
    sums.reserve(all.size() * one.list.size());
    for (const int64_t position : all)
      for (const int64_t offset : one.list) sums.push_back(position + offset);
    all = std::move(sums);
    for (const int64_t n : one.shape) shape.push_back(n);
  }
  return {std::move(all), shape};
}

}  // namespace braid::index_parts
