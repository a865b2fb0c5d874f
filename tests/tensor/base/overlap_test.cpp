#include "braid/tensor/base/overlap.h"

#include <boost/test/unit_test.hpp>
#include <set>

#include "braid/tensor/random.h"

using namespace braid;

BOOST_AUTO_TEST_SUITE(overlap)

using detail::Footprint;

namespace {

std::multiset<int64_t> elements(const Footprint& x) {
  std::multiset<int64_t> all;
  for (int64_t i = 0; i < numel(x.shape); ++i) {
    int64_t rest = i, at = x.offset;
    for (int a = x.shape.rank() - 1; a >= 0; --a) {
      at += rest % x.shape[a] * x.strides[a];
      rest /= x.shape[a];
    }
    all.insert(at);
  }
  return all;
}

Footprint some_footprint(uint64_t seed) {
  uint64_t drawn = 0;
  const auto draw = [&](uint32_t n) { return random_bits(drawn++, {seed, 0}) % n; };
  Footprint x;
  const uint32_t rank = draw(4);
  for (uint32_t a = 0; a < rank; ++a) {
    x.shape.push_back(draw(4));
    x.strides.push_back(draw(8));
  }
  x.offset = draw(10);
  return x;
}

}  // namespace

BOOST_AUTO_TEST_CASE(agrees_with_a_list_of_all_elements) {
  int repeating = 0, overlapping = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    const Footprint x = some_footprint(seed), y = some_footprint(seed + 10000);
    const std::multiset<int64_t> of_x = elements(x), of_y = elements(y);
    const bool repeats = std::set(of_x.begin(), of_x.end()).size() < of_x.size();
    bool shared = false;
    for (int64_t e : of_x) shared = shared || of_y.contains(e);
    BOOST_TEST(detail::repeats(x) == repeats);
    BOOST_TEST(detail::overlap(x, y) == shared);
    repeating += repeats;
    overlapping += shared;
  }
  BOOST_TEST((repeating > 100 && overlapping > 100 && overlapping < 1900));
}

BOOST_AUTO_TEST_CASE(strides_of_single_axes_do_not_matter) {
  BOOST_TEST(detail::same_elements({{1, 3}, {3, 1}, 2}, {{1, 3}, {0, 1}, 2}));
  BOOST_TEST(!detail::same_elements({{2, 3}, {3, 1}, 2}, {{2, 3}, {1, 2}, 2}));
  BOOST_TEST(!detail::same_elements({{3}, {1}, 2}, {{3}, {1}, 1}));
}

BOOST_AUTO_TEST_SUITE_END()
