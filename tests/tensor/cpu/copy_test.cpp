#include <boost/test/unit_test.hpp>

#include "braid/tensor/kernels/backend.h"
#include "tests/tensor/cpu/support.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(cpu_copy)

namespace {
const Backend& cpu_table = cpu_backend();
const DType kTypes[] = {DType::f64, DType::f32, DType::bf16, DType::f16, DType::i64, DType::i32, DType::u8};

// Element by element, with indices written out.
std::vector<double> elements(const Tensor& x) {
  std::vector<double> out;
  Strides steps = contiguous_strides(x.shape());
  visit_any(x.dtype(), [&]<class T>() {
    const T* data = x.data<T>();
    for (int64_t i = 0; i < x.numel(); ++i) {
      int64_t at = 0;
      for (int a = 0; a < x.rank(); ++a) at += i / steps[a] % x.dim(a) * x.strides()[a];
      out.push_back(static_cast<double>(data[at]));
    }
  });
  return out;
}
}  // namespace

BOOST_AUTO_TEST_CASE(between_all_types) {
  Tensor x = arange(100, DType::f64);  // exact in every type
  for (DType from : kTypes) {
    for (DType to : kTypes) {
      Tensor source = empty({100}, from), result = empty({100}, to);
      cpu_table.copy.strided(x, source);
      cpu_table.copy.strided(source, result);
      BOOST_TEST_CONTEXT(str(from) << " to " << str(to)) BOOST_TEST(is_close(elements(result), elements(x), 0));
    }
  }
}

BOOST_AUTO_TEST_CASE(between_all_layouts) {
  Tensor big = random_tensor({5, 70, 67, 3}, 1);
  std::vector<Tensor> views{
      big,
      big.transposed(1, 2),
      big.transposed(0, 3),
      big.transposed(2, 3).sliced(1, 3, 68),
      big.sliced(3, 1, 2),
      big.sliced(2, 10, 43).transposed(1, 2),
      big.permuted({3, 2, 1, 0}),
      big.permuted({2, 0, 3, 1}),
      big.sliced(0, 0, 1).expanded({4, 70, 67, 3}),
      big.sliced(3, 0, 1).expanded({5, 70, 67, 3}),
      big.reshaped({-1}).sliced(0, 1, 70000),
      big.reshaped({5, 7, 10, 1, 67, 3}).permuted({5, 3, 1, 4, 0, 2}),
      big.sliced(2, 0, 64).clone().reshaped({5, 2, 35, 4, 2, 4, 2, 3}),
      big.sliced(2, 0, 64).clone().reshaped({5, 2, 35, 4, 2, 4, 2, 3}).permuted({7, 2, 0, 5, 3, 1, 6, 4}),
      big.sliced(1, 0, 0),
      full({}, 3)};
  for (const Tensor& x : views) {
    std::vector<double> want = elements(x);
    Tensor dense = empty(x.shape());
    cpu_table.copy.strided(x, dense);
    BOOST_TEST_CONTEXT(str(x.shape()) << " " << str(x.strides())) {
      BOOST_TEST(is_close(elements(dense), want, 0));
      for (DType type : {DType::f32, DType::f64, DType::bf16}) {  // into a layout of its own, and converting on the way
        Shape reversed;
        for (int a = x.rank() - 1; a >= 0; --a) reversed.push_back(x.dim(a));
        Tensor base = zeros(reversed, type), y = base;
        for (int a = 0; a < x.rank() / 2; ++a) y = y.transposed(a, x.rank() - 1 - a);
        cpu_table.copy.strided(x, y);
        BOOST_TEST(is_close(elements(y), want, type == DType::bf16 ? 0x1p-8 : 0));
      }
      BOOST_TEST(same_bits(x.to(DType::f16).to(DType::f32), x.clone().to(DType::f16).to(DType::f32)));
    }
  }
}

BOOST_AUTO_TEST_CASE(transpositions_in_squares_and_at_their_edges) {
  std::vector<double> values(6 * 80 * 210);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i % 251);  // exact in every type
  for (const DType t : kTypes) {
    const Tensor all = from_vector(values, {6, 80, 210}).to(t);
    for (const auto& [rows, columns] : {std::pair{72, 136}, {64, 64}, {70, 67}, {8, 200}, {67, 9}}) {
      const Tensor x = all.sliced(1, 5, 5 + rows).sliced(2, 7, 7 + columns).transposed();  // (6, columns, rows)
      Tensor around = full({6, columns + 2, rows + 3}, 9, t);
      Tensor y = around.sliced(1, 1, 1 + columns).sliced(2, 2, 2 + rows);
      cpu_table.copy.strided(x, y);
      BOOST_TEST_CONTEXT(str(t) << " " << rows << " x " << columns) {
        BOOST_TEST(is_close(elements(y), elements(x), 0));
        y.fill(9);
        BOOST_TEST(is_close(elements(around), std::vector<double>(static_cast<size_t>(around.numel()), 9), 0));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(copies_leave_the_surroundings_alone) {
  Tensor y = full({6, 40}, -1);
  Tensor inside = y.sliced(1, 3, 36).sliced(0, 1, 5);
  cpu_table.copy.strided(random_tensor({33, 4}, 2).transposed(), inside);
  for (const Tensor& part : {y.sliced(1, 0, 3), y.sliced(1, 36, 40), y.sliced(0, 0, 1), y.sliced(0, 5, 6)}) {
    BOOST_TEST(is_close(elements(part), std::vector<double>(static_cast<size_t>(part.numel()), -1), 0));
  }
}

BOOST_AUTO_TEST_CASE(integers_truncate_and_saturate) {
  Tensor x = from_values({1.9, -1.9, 300, -5, 1e30, -1e30, NAN, INFINITY}, {8}, DType::f64);
  BOOST_TEST((x.to(DType::u8).to_vector<uint8_t>() == std::vector<uint8_t>{1, 0, 255, 0, 255, 0, 0, 255}));
  int32_t top = std::numeric_limits<int32_t>::max(), low = std::numeric_limits<int32_t>::min();
  BOOST_TEST((x.to(DType::i32).to_vector<int32_t>() == std::vector<int32_t>{1, -1, 300, -5, top, low, 0, top}));
  int64_t top64 = std::numeric_limits<int64_t>::max(), low64 = std::numeric_limits<int64_t>::min();
  BOOST_TEST((x.to(DType::i64).to_vector<int64_t>() == std::vector<int64_t>{1, -1, 300, -5, top64, low64, 0, top64}));
  Tensor exact = from_vector(std::vector<int64_t>{top64, low64, (int64_t{1} << 53) + 1}, {3});
  BOOST_TEST((exact.clone().to_vector<int64_t>() == exact.to_vector<int64_t>()));  // never through a floating type
}

BOOST_AUTO_TEST_CASE(special_values_keep_their_bits) {
  Tensor x = from_vector(std::vector<float>{-0.0f, INFINITY, -INFINITY, NAN, 1e-45f, 3e38f}, {2, 3});
  BOOST_TEST(same_bits(x.transposed().clone().transposed(), x));
  std::vector<float> half = x.to(DType::f16).to_vector<float>();
  BOOST_TEST(std::signbit(half[0]));
  BOOST_TEST(half[1] == INFINITY);
  BOOST_TEST(std::isnan(half[3]));
  BOOST_TEST(half[5] == INFINITY);
}

// Runs of eight are converted by the processor's own instruction where there is one: it must agree with the portable
// code.
BOOST_AUTO_TEST_CASE(f16_in_bulk_equals_f16_one_by_one) {
  std::vector<float> values;
  for (uint64_t i = 0; i < 100000; ++i) {
    float v = std::bit_cast<float>(random_bits(i, {3, 4}));
    values.push_back(i % 2 == 0 ? v
                     : v == v   ? std::ldexp(1.0f + std::fmod(std::fabs(v), 1.0f), static_cast<int>(i % 48) - 28)
                                : 1);
  }
  Tensor x = from_vector(values, {100000});
  std::vector<float16> bulk = x.to(DType::f16).to_vector<float16>();
  std::vector<float> back = x.to(DType::f16).to(DType::f32).to_vector<float>();
  int wrong = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    float16 one(values[i]);
    if (values[i] != values[i]) {
      wrong += !(back[i] != back[i]);
    } else {
      wrong += bulk[i].bits != one.bits || back[i] != float(one);
    }
  }
  BOOST_TEST(wrong == 0);
}

BOOST_AUTO_TEST_CASE(filling) {
  for (DType type : kTypes) {
    Tensor x = empty({600, 3}, type);
    cpu_table.copy.fill(7, x);
    Tensor column = x.sliced(1, 1, 2);
    cpu_table.copy.fill(3, column);
    std::vector<double> got = elements(x);
    int wrong = 0;
    for (size_t i = 0; i < got.size(); ++i) wrong += got[i] != (i % 3 == 1 ? 3 : 7);
    BOOST_TEST(wrong == 0);
  }
}

BOOST_AUTO_TEST_CASE(transfer_within_the_cpu_is_a_copy) {
  Tensor x = random_tensor({100}, 4), y = empty({100});
  cpu_table.stream.transfer(x, y);
  BOOST_TEST(same_bits(x, y));
}

BOOST_AUTO_TEST_SUITE_END()
