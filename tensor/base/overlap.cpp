#include "braid/tensor/base/overlap.h"

#include <utility>
#include <vector>

namespace braid::detail {

namespace {

bool empty(const Footprint& x) {
  for (int64_t size : x.shape) {
    if (size == 0) return true;
  }
  return false;
}

// The same elements with strides of at least 0.
Footprint ascending(Footprint x) {
  for (int a = 0; a < x.shape.rank(); ++a) {
    if (x.strides[a] >= 0) continue;
    x.offset += (x.shape[a] - 1) * x.strides[a];
    x.strides[a] = -x.strides[a];
  }
  return x;
}

int64_t last_element(const Footprint& x) {
  int64_t at = x.offset;
  for (int a = 0; a < x.shape.rank(); ++a) at += (x.shape[a] - 1) * x.strides[a];
  return at;
}

// Calls visit(element) for each index in turn until it returns false; true when it never did.
template <class Visit>
bool all_elements(const Footprint& x, Visit&& visit) {
  int64_t at[Shape::max_rank] = {}, element = x.offset;
  for (;;) {
    if (!visit(element)) return false;
    int a = x.shape.rank() - 1;
    for (; a >= 0; --a) {
      element += x.strides[a];
      if (++at[a] < x.shape[a]) break;
      element -= x.shape[a] * x.strides[a];
      at[a] = 0;
    }
    if (a < 0) return true;
  }
}

// One bit per element of the buffer from `first` to `last`.
class Marks {
 public:
  Marks(int64_t first, int64_t last) : first_(first), bits_(static_cast<size_t>(last - first + 1)) {}
  bool holds(int64_t element) const { return bits_[static_cast<size_t>(element - first_)]; }
  void set(int64_t element) { bits_[static_cast<size_t>(element - first_)] = true; }

 private:
  int64_t first_;
  std::vector<bool> bits_;
};

}  // namespace

bool repeats(const Footprint& view) {
  std::pair<int64_t, int64_t> axes[Shape::max_rank];  // (stride, size), the smallest stride first
  int count = 0;
  if (empty(view)) return false;
  const Footprint x = ascending(view);
  for (int a = 0; a < x.shape.rank(); ++a) {
    if (x.shape[a] == 1) continue;
    if (x.strides[a] == 0) return true;
    int at = count++;
    for (; at > 0 && axes[at - 1].first > x.strides[a]; --at) axes[at] = axes[at - 1];
    axes[at] = {x.strides[a], x.shape[a]};
  }
  int64_t extent = 0;  // from the first to the last element of the axes so far
  bool nested = true;  // each step is longer than that
  for (int a = 0; a < count; ++a) {
    nested = nested && axes[a].first > extent;
    extent += (axes[a].second - 1) * axes[a].first;
  }
  if (nested) return false;
  Marks seen(x.offset, last_element(x));
  return !all_elements(x, [&](int64_t element) {
    if (seen.holds(element)) return false;
    seen.set(element);
    return true;
  });
}

bool same_elements(const Footprint& x, const Footprint& y) {
  if (x.offset != y.offset) return false;
  for (int a = 0; a < x.shape.rank(); ++a) {
    if (x.shape[a] > 1 && x.strides[a] != y.strides[a]) return false;
  }
  return true;
}

bool overlap(const Footprint& view_x, const Footprint& view_y) {
  if (empty(view_x) || empty(view_y)) return false;
  const Footprint x = ascending(view_x), y = ascending(view_y);
  const int64_t last_x = last_element(x), last_y = last_element(y);
  if (last_x < y.offset || last_y < x.offset) return false;
  Marks of_y(y.offset, last_y);
  all_elements(y, [&](int64_t element) {
    of_y.set(element);
    return true;
  });
  return !all_elements(x,
                       [&](int64_t element) { return element < y.offset || element > last_y || !of_y.holds(element); });
}

}  // namespace braid::detail
