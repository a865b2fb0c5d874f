// Omissions with a key per sample: the same in any batch, of the right share, none without keys.
#include "braid/nn/sample_random.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "braid/autograd/ops.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(sample_random)

namespace {
const std::vector<RandomKey> kKeys = {{11, 0}, {12, 0}, {13, 0}, {14, 0}};
}

BOOST_AUTO_TEST_CASE(a_sample_loses_the_same_in_any_batch) {
  const Tensor x = full({4, 3, 37}, 1);
  const nn::SampleRandom all = nn::SampleRandom(kKeys).child("part").child(2);
  const Tensor y = all.dropout(x, 0.4), path = all.drop_path(x, 0.4);
  for (int64_t b = 0; b < 4; ++b) {
    const nn::SampleRandom one = nn::SampleRandom({kKeys[static_cast<size_t>(b)]}).child("part").child(2);
    const Tensor of_b = x.sliced(0, b, b + 1);
    BOOST_TEST(is_close(one.dropout(of_b, 0.4), y.sliced(0, b, b + 1), 0));
    BOOST_TEST(is_close(one.drop_path(of_b, 0.4), path.sliced(0, b, b + 1), 0));
  }
  const Tensor other = nn::SampleRandom(kKeys).child("part").child(3).dropout(x, 0.4);
  BOOST_TEST(!is_close(other, y, 0));
}

BOOST_AUTO_TEST_CASE(rows_lose_what_they_lose_among_all_rows) {
  for (const int64_t width : {1, 3, 8}) {
    const Tensor x = full({4, 7, width}, 1), y = nn::SampleRandom(kKeys).dropout(x, 0.4);
    for (const std::vector<int64_t>& rows : {std::vector<int64_t>{0, 1, 6}, {5}, {2, 3, 4, 5}, {0, 1, 2, 3, 4, 5, 6}}) {
      const nn::SampleRandom some = nn::SampleRandom(kKeys).of_rows(rows);
      const Tensor got = some.dropout(full({4, std::ssize(rows), width}, 1), 0.4);
      for (size_t r = 0; r < rows.size(); ++r) {
        const auto at = static_cast<int64_t>(r);
        BOOST_TEST(is_close(got.sliced(1, at, at + 1), y.sliced(1, rows[r], rows[r] + 1), 0));
      }
    }
  }
  BOOST_TEST(throws_with(
      [&] {
        nn::SampleRandom(kKeys).of_rows({1, 2}).dropout(full({4, 3, 2}, 1), 0.5);
      },
      "2 rows do not match a batch of shape"));
}

BOOST_AUTO_TEST_CASE(the_share_and_the_scale) {
  const Tensor y = nn::SampleRandom(kKeys).dropout(full({4, 100, 100}, 1, DType::f64), 0.25);
  int64_t zeros = 0;
  for (const double v : y.to_vector<double>()) {
    zeros += v == 0;
    BOOST_REQUIRE(v == 0 || std::fabs(v - 1 / 0.75) < 1e-6);
  }
  BOOST_TEST(std::fabs(static_cast<double>(zeros) / 40000 - 0.25) < 0.01);  // 4 standard deviations

  std::vector<RandomKey> many;
  for (uint64_t i = 0; i < 4000; ++i) many.push_back({i, 5});
  const Tensor path = nn::SampleRandom(many).drop_path(full({4000, 2}, 1), 0.25);
  int64_t left_out = 0;
  const std::vector<float> values = path.to_vector<float>();
  for (size_t b = 0; b < 4000; ++b) {
    BOOST_REQUIRE(values[2 * b] == values[2 * b + 1]);
    left_out += values[2 * b] == 0;
  }
  BOOST_TEST(std::fabs(static_cast<double>(left_out) / 4000 - 0.25) < 0.03);
}

BOOST_AUTO_TEST_CASE(without_keys_nothing_is_left_out) {
  const Tensor x = randn({2, 5}, {1, 1});
  BOOST_TEST(is_close(nn::SampleRandom().child("a").dropout(x, 0.9), x, 0));
  BOOST_TEST(is_close(nn::SampleRandom().drop_path(x, 0.9), x, 0));
  BOOST_TEST(throws_with([&] { nn::SampleRandom(kKeys).dropout(x, 0.5); }, "4 keys do not match a batch of shape"));
  BOOST_TEST(throws_with([&] { nn::SampleRandom().dropout(x, 1); }, "must lie in [0, 1)"));
}

BOOST_AUTO_TEST_SUITE_END()
