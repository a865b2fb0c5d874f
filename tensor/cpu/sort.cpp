// Sorting rows by unsigned keys: a key is a number whose order is that of the elements, so that one sort does for all
// types and both directions.
//
//   float   the bits, all inverted for a negative number, the sign alone for others; -0 as 0, NaN as the largest key
//   signed  the bits with the sign inverted
//   descending: the key inverted. Equal elements have equal keys, and stay in the order of their indices.
//
// Rows are sorted by radix, from the lowest digit to the highest; a digit in which all keys agree is skipped.
#include "braid/tensor/cpu/sort.h"

#include <algorithm>
#include <bit>
#include <type_traits>
#include <utility>
#include <vector>

#include "braid/tensor/kernels/ordered.h"
#include "braid/tensor/parallel.h"

namespace braid::cpu {

namespace {

template <class F, class U>
U float_key(F v) {
  constexpr U kSign = U(1) << (8 * sizeof(U) - 1);
  if (v != v) return ~U(0);
  const U bits = std::bit_cast<U>(v == F(0) ? F(0) : v);
  return bits & kSign ? ~bits : bits | kSign;
}
inline uint64_t sort_key(double v) { return float_key<double, uint64_t>(v); }
inline uint32_t sort_key(float v) { return float_key<float, uint32_t>(v); }
inline uint64_t sort_key(int64_t v) {
  return static_cast<uint64_t>(v) ^ uint64_t { 1 } << 63;
}
inline uint32_t sort_key(int32_t v) {
  return static_cast<uint32_t>(v) ^ uint32_t { 1 } << 31;
}
inline uint32_t sort_key(uint8_t v) { return v; }

// A key of 32 bits with its index below it: one number, ordered by both.
struct Packed {
  using Entry = uint64_t;
  static constexpr int kBits = 32;
  static constexpr int64_t kMaxRow = int64_t{1} << 32;
  static Entry make(uint64_t key, int64_t index) { return key << 32 | static_cast<uint64_t>(index); }
  static uint64_t key(Entry e) { return e >> 32; }
  static int64_t index(Entry e) { return static_cast<int64_t>(e & 0xffffffffu); }
  static bool before(Entry a, Entry b) { return a < b; }
};
// A key of any size beside its index.
struct Pair {
  struct Entry {
    uint64_t key;
    int64_t index;
  };
  static constexpr int kBits = 64;
  static Entry make(uint64_t key, int64_t index) { return {key, index}; }
  static uint64_t key(const Entry& e) { return e.key; }
  static int64_t index(const Entry& e) { return e.index; }
  static bool before(const Entry& a, const Entry& b) { return a.key != b.key ? a.key < b.key : a.index < b.index; }
};

// Sorts n entries that stand in the order of their indices; the result is in `from` or in `to`.
template <class P, int digit>
typename P::Entry* radix_sort(typename P::Entry* from, typename P::Entry* to, int64_t n) {
  constexpr int kPasses = (P::kBits + digit - 1) / digit;
  constexpr size_t kValues = size_t{1} << digit;
  std::vector<int64_t> counts(kPasses * kValues);
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t key = P::key(from[i]);
    for (size_t pass = 0; pass < kPasses; ++pass) ++counts[pass * kValues + (key >> pass * digit & (kValues - 1))];
  }
  for (size_t pass = 0; pass < kPasses; ++pass) {
    const auto value = [&](const typename P::Entry& e) { return P::key(e) >> pass * digit & (kValues - 1); };
    int64_t* next = &counts[pass * kValues];
    if (next[value(from[0])] == n) continue;
    int64_t begin = 0;
    for (size_t v = 0; v < kValues; ++v) begin += std::exchange(next[v], begin);
    for (int64_t i = 0; i < n; ++i) to[next[value(from[i])]++] = from[i];
    std::swap(from, to);
  }
  return from;
}

constexpr int64_t kRadix = 96, kWideDigits = 16384;  // entries from which radix, and digits of 11 bits, pay

// The first k of n entries in order, at the place returned.
template <class P>
typename P::Entry* first_sorted(typename P::Entry* entries, typename P::Entry* spare, int64_t n, int64_t k) {
  if (k == n && n >= kRadix)
    return n < kWideDigits ? radix_sort<P, 8>(entries, spare, n) : radix_sort<P, 11>(entries, spare, n);
  if (k < n) std::nth_element(entries, entries + k, entries + n, P::before);
  std::sort(entries, entries + k, P::before);
  return entries;
}

// The key of an element in the order wanted: descending keys are inverted.
template <class T>
struct KeyOf {
  bool descending;
  auto operator()(T v) const {
    const auto key = sort_key(static_cast<Ordered<T>>(v));
    return descending ? static_cast<std::remove_const_t<decltype(key)>>(~key) : key;
  }
};

// The first k of a row of many more elements, in order: a heap of the k best so far. Blocks in which no key is below
// the worst of them are passed over; a later element with an equal key does not come before it.
template <class P, class T>
void select_first(const T* v, int64_t n, int64_t k, KeyOf<T> key_of, typename P::Entry* heap) {
  constexpr int64_t kBlock = 64;
  for (int64_t i = 0; i < k; ++i) heap[i] = P::make(key_of(v[i]), i);
  std::make_heap(heap, heap + k, P::before);
  for (int64_t begin = k; begin < n; begin += kBlock) {
    const int64_t count = std::min(kBlock, n - begin);
    decltype(key_of(T())) keys[kBlock], least = static_cast<decltype(key_of(T()))>(-1);
    for (int64_t i = 0; i < count; ++i) keys[i] = key_of(v[begin + i]);
    for (int64_t i = 0; i < count; ++i) least = keys[i] < least ? keys[i] : least;
    if (least >= P::key(heap[0])) continue;
    for (int64_t i = 0; i < count; ++i) {
      if (keys[i] >= P::key(heap[0])) continue;
      std::pop_heap(heap, heap + k, P::before);
      heap[k - 1] = P::make(keys[i], begin + i);
      std::push_heap(heap, heap + k, P::before);
    }
  }
  std::sort_heap(heap, heap + k, P::before);
}

template <class P, class T>
void sort_rows(const T* x, int64_t rows, int64_t n, int64_t k, bool descending, T* values, int64_t* indices) {
  const auto cost = static_cast<int64_t>(4 * n * std::bit_width(static_cast<uint64_t>(n)));
  parallel_for(rows, grain_for(cost), [&](int64_t begin, int64_t end) {
    const KeyOf<T> key_of{descending};
    const bool few = k * 32 <= n;
    std::vector<typename P::Entry> scratch(static_cast<size_t>(few ? k : k == n && n >= kRadix ? 2 * n : n));
    for (int64_t row = begin; row < end; ++row) {
      const T* v = x + row * n;
      const typename P::Entry* sorted = scratch.data();
      if (few) {
        select_first<P>(v, n, k, key_of, scratch.data());
      } else {
        for (int64_t i = 0; i < n; ++i) scratch[static_cast<size_t>(i)] = P::make(key_of(v[i]), i);
        sorted = first_sorted<P>(scratch.data(), scratch.data() + n, n, k);
      }
      for (int64_t j = 0; j < k; ++j) {
        const int64_t at = P::index(sorted[j]);
        indices[row * k + j] = at;
        values[row * k + j] = v[at];
      }
    }
  });
}

}  // namespace

void sort(In x, bool descending, Out values, Out indices) {
  if (values.numel() == 0) return;
  const int64_t n = x.dim(-1), k = values.dim(-1), rows = values.numel() / k;
  visit_any(x.dtype(), [&]<class T>() {
    const T* from = x.data<T>();
    T* to = values.mutable_data<T>();
    int64_t* index = indices.mutable_data<int64_t>();
    if constexpr (sizeof(sort_key(Ordered<T>())) == 4) {
      if (n <= Packed::kMaxRow) return sort_rows<Packed>(from, rows, n, k, descending, to, index);
    }
    sort_rows<Pair>(from, rows, n, k, descending, to, index);
  });
}

}  // namespace braid::cpu
