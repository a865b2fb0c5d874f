// An index of autograd/indexing.h, read: one part for each axis. For autograd/ops/indexing.cpp.
#pragma once
#include <utility>
#include <variant>
#include <vector>

#include "braid/autograd/indexing.h"

namespace braid::index_parts {

using Positions = std::vector<int64_t>;

// The entries of an axis that a slice takes: begin, begin + step, ...
struct Range {
  int64_t begin, step, count;
  Positions list() const;
};

// Ids of one axis, from 0 on; of several axes they broadcast.
struct Ids {
  Shape shape;
  Positions list;
};

// What stands for one axis: a position, which removes it, entries or ids; NewAxis stands for none of x's.
using Part = std::variant<int64_t, Range, NewAxis, Ids>;

// The parts of an index, checked. Positions beside ids count as ids; a mask is ids of its axes.
std::vector<Part> read(const Tensor& x, const std::vector<Index>& at);

// Where the ids stand among the parts.
struct PlacesOfIds {
  Shape shape;  // to which they broadcast
  int count = 0, first = 0, last = 0;

  explicit PlacesOfIds(const std::vector<Part>& parts);
  bool neighbours() const { return last - first == count - 1; }
};

// Adds n times ids, repeated to `shape`, to the sums.
void add_repeated(Positions& sums, const Ids& ids, const Shape& shape, int64_t n);

// The positions in the flat x of what an index takes, and their shape: as many as it takes, whatever the size of x.
std::pair<Positions, Shape> positions_of(const Tensor& x, const std::vector<Index>& at);

// Ids of i64 or i32 as a list, negative ones counted from the end; checked against the size n of their axis.
Positions ids_of(const char* op, const Tensor& ids, int64_t n);
// Positions of what is not 0, one list per axis of the mask, of any type.
std::vector<Positions> places(const Tensor& mask);

}  // namespace braid::index_parts
