#include <boost/test/unit_test.hpp>

#include "braid/tensor/kernels/backend.h"
#include "tests/tensor/cpu/support.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(cpu_random)

namespace {
const Backend& table = cpu_backend();
constexpr RandomKey kKey{2024, 7};

double moment(const Tensor& x, double center, int power) {
  double sum = 0;
  for (double v : x.to_vector<double>()) sum += std::pow(v - center, power);
  return sum / static_cast<double>(x.numel());
}
}  // namespace

BOOST_AUTO_TEST_CASE(elements_depend_on_their_index_only) {
  Tensor large = empty({3001}), small = empty({10}), shaped = empty({30, 100});
  table.random.uniform(-2, 3, kKey, large);
  table.random.uniform(-2, 3, kKey, small);
  table.random.uniform(-2, 3, kKey, shaped);
  BOOST_TEST(same_bits(small, large.sliced(0, 0, 10)));
  BOOST_TEST(same_bits(shaped.reshaped({3000}), large.sliced(0, 0, 3000)));
  std::vector<double> got = large.to_vector<double>();
  double worst = 0;
  for (size_t i = 0; i < got.size(); ++i)
    worst = std::fmax(worst, std::fabs(got[i] - (-2 + 5.0 * unit(random_bits(i, kKey)))));
  BOOST_TEST(worst < 1e-6);
  table.random.normal(0, 1, kKey, large);
  table.random.normal(0, 1, kKey, small);
  BOOST_TEST(same_bits(small, large.sliced(0, 0, 10)));
  Tensor other = empty({3001});
  table.random.normal(0, 1, {2024, 8}, other);
  BOOST_TEST(!same_bits(other, large));
}

// The last cell of the uniform numbers rounds to the end of the range in 16 bits, and between most ends in f32 too.
BOOST_AUTO_TEST_CASE(uniform_numbers_stay_in_their_range_in_every_type) {
  const struct {
    double low, high;
  } ranges[] = {{0, 1}, {1, 2}, {-2, 3}, {-0.1, 0.1}, {0.1, 0.3}, {-5, -4}, {-1, 0}, {1e10, 1e10 + 1e-5}};
  for (const DType t : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    for (const auto& [low, high] : ranges) {
      if (high > 1e4 && t != DType::f64) continue;  // no number of the type lies there
      const UniformRange<double> range = uniform_range(t, low, high);
      BOOST_TEST_CONTEXT(str(t) << " from " << low << " to " << high) {
        BOOST_TEST((range.first >= low && range.first <= low + 0.008 * std::fabs(low) + 1e-7));
        BOOST_TEST((range.last < high && range.last >= high - 0.008 * std::fabs(high) - 1e-7));
        for (const float u : {unit(0), unit(0xffffffffu), 0.5f}) {
          const double drawn = t == DType::f64 ? uniform_number(u, range) : uniform_number(u, range.as<float>());
          const double stored = full({}, drawn, t).item();
          BOOST_TEST((stored >= low && stored < high), stored);
        }
      }
    }
    Tensor x = empty({200000}, t);
    table.random.uniform(0, 1, kKey, x);
    double smallest = 1, largest = 0;
    for (const double v : x.to_vector<double>()) smallest = std::fmin(smallest, v), largest = std::fmax(largest, v);
    BOOST_TEST((smallest > 0 && largest < 1), str(t) << ": " << smallest << " to " << largest);
    BOOST_TEST(std::fabs(moment(x, 0, 1) - 0.5) < 0.003);
  }
}

BOOST_AUTO_TEST_CASE(normal_numbers_by_box_and_muller) {
  Tensor x = empty({1001}, DType::f64), y = empty({1001});
  table.random.normal(0.5, 2, kKey, x);
  table.random.normal(0.5, 2, kKey, y);
  std::vector<double> want(1001);
  for (uint64_t i = 0; i < 1001; ++i) {
    double u = unit(random_bits(i / 2 * 2, kKey)), v = unit(random_bits(i / 2 * 2 + 1, kKey));
    double angle = 2 * M_PI * v;
    want[i] = 0.5 + 2 * std::sqrt(-2 * std::log(u)) * (i % 2 == 0 ? std::cos(angle) : std::sin(angle));
  }
  BOOST_TEST(is_close(x.to_vector<double>(), want, 1e-12));
  BOOST_TEST(is_close(y.to_vector<double>(), want, 1e-6));
}

BOOST_AUTO_TEST_CASE(distributions) {
  Tensor x = empty({200000});
  table.random.uniform(0, 1, kKey, x);
  BOOST_TEST(std::fabs(moment(x, 0, 1) - 0.5) < 0.003);
  BOOST_TEST(std::fabs(moment(x, 0.5, 2) - 1.0 / 12) < 0.001);
  table.random.normal(0, 1, kKey, x);
  BOOST_TEST(std::fabs(moment(x, 0, 1)) < 0.01);
  BOOST_TEST(std::fabs(moment(x, 0, 2) - 1) < 0.015);
  BOOST_TEST(std::fabs(moment(x, 0, 3)) < 0.03);
  BOOST_TEST(std::fabs(moment(x, 0, 4) - 3) < 0.1);
}

BOOST_AUTO_TEST_CASE(every_floating_type) {
  for (DType type : {DType::f64, DType::bf16, DType::f16}) {
    Tensor x = empty({700}, type), reference = empty({700});
    table.random.uniform(-1, 1, kKey, x);
    table.random.uniform(-1, 1, kKey, reference);
    BOOST_TEST(is_close(x, reference, type == DType::f64 ? 1e-6 : 0x1p-8));
    table.random.normal(0, 1, kKey, x);
    table.random.normal(0, 1, kKey, reference);
    BOOST_TEST(is_close(x, reference, type == DType::f64 ? 1e-6 : 0x1p-8));
  }
}

BOOST_AUTO_TEST_CASE(same_bits_at_any_thread_count) {
  BOOST_TEST(same_at_any_thread_count([] {
    Tensor x = empty({100003});
    table.random.normal(0, 1, kKey, x);
    return x;
  }));
  Tensor x = random_tensor({100003}, 1);
  BOOST_TEST(same_at_any_thread_count([&] {
    Tensor y = empty({100003});
    table.random.dropout(x, 0.3, kKey, y);
    return y;
  }));
}

BOOST_AUTO_TEST_CASE(dropout_keeps_its_share_in_any_layout) {
  Tensor x = full({300, 400}, 1), y = empty({300, 400}), z = empty({300, 400});
  table.random.dropout(x, 0.25, kKey, y);
  int64_t zeros_seen = 0;
  for (double v : y.to_vector<double>()) {
    zeros_seen += v == 0;
    if (v != 0) BOOST_REQUIRE(std::fabs(v - 1 / 0.75) < 1e-6);
  }
  BOOST_TEST(std::fabs(static_cast<double>(zeros_seen) / 120000 - 0.25) < 0.01);
  table.random.dropout(full({400, 300}, 1).transposed(), 0.25, kKey, z);
  BOOST_TEST(same_bits(y, z));
}

BOOST_AUTO_TEST_SUITE_END()
