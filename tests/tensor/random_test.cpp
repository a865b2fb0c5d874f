#include "braid/tensor/random.h"

#include <boost/test/unit_test.hpp>
#include <set>

using namespace braid;

BOOST_AUTO_TEST_SUITE(random_numbers)

namespace {
bool same(Philox4 got, Philox4 want) {
  for (int i = 0; i < 4; ++i) {
    if (got.v[i] != want.v[i]) return false;
  }
  return true;
}
}  // namespace

// Known answers of philox4x32-10 published with the Random123 distribution: counter (4 words), key (2 words).
BOOST_AUTO_TEST_CASE(philox_known_answers) {
  BOOST_TEST(same(philox(0, {0, 0}), {{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}}));
  BOOST_TEST(
      same(philox(~uint64_t{0}, {~uint64_t{0}, ~uint64_t{0}}), {{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}}));
  BOOST_TEST(same(philox(0x85a308d3243f6a88u, {.seed = 0x299f31d0a4093822u, .stream = 0x0370734413198a2eu}),
                  {{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}}));
}

BOOST_AUTO_TEST_CASE(elements_are_words_of_blocks) {
  RandomKey key{7, 9};
  for (uint64_t i = 0; i < 12; ++i) BOOST_TEST(random_bits(i, key) == philox(i / 4, key).v[i % 4]);
}

BOOST_AUTO_TEST_CASE(unit_is_open_at_both_ends) {
  BOOST_TEST(unit(0) == 0x1p-24f);
  BOOST_TEST(unit(0xffffffffu) == 1 - 0x1p-24f);
  BOOST_TEST(unit(0x80000000u) == 0.5f + 0x1p-24f);
}

BOOST_AUTO_TEST_CASE(children_are_different_streams) {
  RandomKey root{1, 0};
  std::set<std::pair<uint64_t, uint64_t>> seen;
  auto add = [&](RandomKey key) { seen.insert({key.seed, key.stream}); };
  add(root);
  for (uint64_t i = 0; i < 100; ++i) {
    add(child(root, i));
    for (uint64_t j = 0; j < 10; ++j) add(child(child(root, i), j));
  }
  add(child(root, "weights"));
  add(child(root, "dropout"));
  add(child(child(root, "weights"), "dropout"));
  BOOST_TEST(seen.size() == 1104u);
  BOOST_TEST(child(root, 0).stream == child(root, uint64_t{0}).stream);
  BOOST_TEST(child(root, "weights").stream == child(root, "weights").stream);
}

BOOST_AUTO_TEST_SUITE_END()
