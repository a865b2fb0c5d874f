// The conversions of attention's rows are those of the types bfloat16 and float16.
#include "braid/tensor/cpu/attention/rows.h"

#include <bit>
#include <boost/test/unit_test.hpp>
#include <limits>
#include <random>
#include <vector>

namespace braid {
BOOST_AUTO_TEST_SUITE(attention_rows)

namespace {

using cpu::attention::InputRows;
using cpu::attention::OutputRows;

// Every value of T as input_row reads it.
template <class T>
std::vector<float> all_values_read() {
  std::vector<T> values(1 << 16);
  for (size_t i = 0; i < values.size(); ++i) values[i].bits = static_cast<uint16_t>(i);
  std::vector<float> wide(values.size());
  const InputRows rows{reinterpret_cast<const std::byte*>(values.data()), dtype_of<T>(), {}};
  const float* first = cpu::attention::input_row<float>(rows, 0, 5, wide.data());  // in two rows
  BOOST_TEST(first == wide.data());
  cpu::attention::input_row<float>(rows, 5, static_cast<int64_t>(values.size()) - 5, wide.data() + 5);
  return wide;
}

template <class T>
void check_type() {
  const std::vector<float> read = all_values_read<T>();
  int wrong = 0;
  for (size_t i = 0; i < read.size(); ++i) {
    T value;
    value.bits = static_cast<uint16_t>(i);
    wrong += std::bit_cast<uint32_t>(read[i]) != std::bit_cast<uint32_t>(static_cast<float>(value));
  }
  BOOST_TEST(wrong == 0, "values read: " << wrong);

  // Each value, what lies half way to the next one, and its neighbours; then random bits.
  std::vector<float> values;
  for (const float v : read) {
    const uint32_t bits = std::bit_cast<uint32_t>(v), half = std::is_same_v<T, bfloat16> ? 0x8000 : 0x1000;
    for (const uint32_t near : {bits, bits + half - 1, bits + half, bits + half + 1})
      values.push_back(std::bit_cast<float>(near));
  }
  std::mt19937 random(1);
  for (int i = 0; i < 1 << 20; ++i) values.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
  for (const float v : {0x1p-25f, 0x1.8p-25f, 65519.0f, 65520.0f, std::numeric_limits<float>::infinity()}) {
    values.push_back(v);
    values.push_back(-v);
  }
  std::vector<T> written(values.size());
  const OutputRows rows{reinterpret_cast<std::byte*>(written.data()), dtype_of<T>(), {}};
  cpu::attention::write_row<float>(rows, 0, static_cast<int64_t>(values.size()), values.data());
  wrong = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (written[i].bits == T(values[i]).bits) continue;
    if (++wrong < 5) BOOST_TEST_MESSAGE(values[i] << ": " << written[i].bits << ", expected " << T(values[i]).bits);
  }
  BOOST_TEST(wrong == 0, "values written: " << wrong);
}

}  // namespace

BOOST_AUTO_TEST_CASE(bf16_is_the_type_bfloat16) { check_type<bfloat16>(); }

BOOST_AUTO_TEST_CASE(f16_is_the_type_float16) { check_type<float16>(); }

BOOST_AUTO_TEST_CASE(a_factor_is_applied_before_rounding) {
  const float values[] = {1.0f + 0x1p-8f, 3.0f};
  bfloat16 written[2];
  const OutputRows rows{reinterpret_cast<std::byte*>(written), DType::bf16, {}};
  cpu::attention::write_row(rows, 0, 2, values, 3.0f);
  BOOST_TEST(written[0].bits == bfloat16(3.0f * (1.0f + 0x1p-8f)).bits);
  BOOST_TEST(static_cast<float>(written[1]) == 9.0f);
}

BOOST_AUTO_TEST_CASE(rows_of_the_type_itself_are_read_where_they_are) {
  double values[] = {1, 2, 3}, buffer[3], out[3] = {};
  const InputRows rows{reinterpret_cast<const std::byte*>(values), DType::f64, {}};
  BOOST_TEST(cpu::attention::input_row(rows, 1, 2, buffer) == values + 1);
  cpu::attention::write_row(OutputRows{reinterpret_cast<std::byte*>(out), DType::f64, {}}, 1, 2, values, 0.5);
  BOOST_TEST((out[0] == 0 && out[1] == 0.5 && out[2] == 1));
}

BOOST_AUTO_TEST_CASE(pairs_hold_the_first_row_in_the_lower_half) {
  const uint16_t first[] = {1, 2}, second[] = {3, 4};
  float words[2];
  cpu::attention::pair_rows(first, second, 2, words);
  BOOST_TEST(std::bit_cast<uint32_t>(words[1]) == 0x00040002u);
  cpu::attention::pair_rows(first, nullptr, 2, words);
  BOOST_TEST(std::bit_cast<uint32_t>(words[0]) == 1u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace braid
