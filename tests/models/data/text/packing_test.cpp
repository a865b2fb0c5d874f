#include "braid/models/data/text/packing.h"

#include <boost/test/unit_test.hpp>
#include <random>

#include "tests/support/throws.h"
using namespace braid;
using namespace braid::models::text;

BOOST_AUTO_TEST_SUITE(packing)

namespace {
std::vector<std::vector<int64_t>> listed(const PackedSequences& packed) {
  std::vector<std::vector<int64_t>> all;
  for (int64_t i = 0; i < packed.size(); ++i) all.emplace_back(packed.of(i).begin(), packed.of(i).end());
  return all;
}
using Lists = std::vector<std::vector<int64_t>>;
}  // namespace

BOOST_AUTO_TEST_CASE(small_cases_by_hand) {
  const std::vector<int64_t> lengths = {5, 7, 3, 2, 11, 4, 10, 1};
  BOOST_TEST((listed(pack(lengths, 10, Packing::first_fit)) == Lists{{0, 2, 3}, {1, 7}, {5}, {6}}));
  BOOST_TEST((listed(pack(lengths, 10, Packing::in_order)) == Lists{{0}, {1, 2}, {3, 5}, {6}, {7}}));
  BOOST_TEST((listed(pack(lengths, 10, Packing::none)) == Lists{{0}, {1}, {2}, {3}, {5}, {6}, {7}}));
  BOOST_TEST(pack({}, 10, Packing::first_fit).size() == 0);
  BOOST_TEST(pack(std::vector<int64_t>{11}, 10, Packing::in_order).size() == 0);
  BRAID_CHECK_FAILS(pack(std::vector<int64_t>{0}, 10, Packing::none), ErrorKind::misuse, "length 0");
  BOOST_TEST((parse_packing("in_order") == Packing::in_order));
  BRAID_CHECK_FAILS(parse_packing("tight"), ErrorKind::misuse, "'tight'");
}

// Against the definition of first fit, in n x sequences steps.
BOOST_AUTO_TEST_CASE(first_fit_is_first_fit) {
  std::mt19937 random(3);
  for (int round = 0; round < 20; ++round) {
    std::vector<int64_t> lengths(random() % 200);
    for (int64_t& n : lengths) n = 1 + static_cast<int64_t>(random() % 110);
    Lists expected;
    std::vector<int64_t> room;
    for (size_t i = 0; i < lengths.size(); ++i) {
      if (lengths[i] > 100) continue;
      size_t to = 0;
      while (to < room.size() && room[to] < lengths[i]) ++to;
      if (to == room.size()) room.push_back(100), expected.emplace_back();
      room[to] -= lengths[i];
      expected[to].push_back(static_cast<int64_t>(i));
    }
    BOOST_TEST((listed(pack(lengths, 100, Packing::first_fit)) == expected));
  }
}

BOOST_AUTO_TEST_SUITE_END()
