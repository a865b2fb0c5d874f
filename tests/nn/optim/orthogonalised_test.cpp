// What orthogonalising does to singular values, and normalising to the lengths of rows and columns.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "braid/autograd/record.h"
#include "braid/nn/optim/rules/muon.h"
#include "braid/tensor/kernels/backend.h"
#include "tests/nn/optim/plain_matrix.h"
#include "tests/support/compare.h"
#include "tests/support/random.h"

using namespace braid;
using namespace braid::nn;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(orthogonalised_matrices)

// In bf16 by its rounding less near.
BOOST_AUTO_TEST_CASE(singular_values_come_near_one) {
  for (const Shape& shape : {Shape{32, 32}, Shape{96, 24}, Shape{24, 96}, Shape{64, 1}, Shape{1, 5}}) {
    for (const uint64_t stream : {1, 2, 3}) {
      const Tensor u = normal_tensor(shape, 1, {stream, 9}, DType::f64);
      const Tensor exact = orthogonalised(u);
      for (const DType type : {DType::f64, DType::f32, DType::bf16}) {
        const Tensor o = orthogonalised(u.to(type));
        BOOST_TEST((o.dtype() == type && o.shape() == shape));
        const std::vector<double> values = singular_values(o);
        const double low = type == DType::bf16 ? 0.64 : 0.68, high = type == DType::bf16 ? 1.24 : 1.21;
        BOOST_TEST_CONTEXT(str(type) << " " << str(shape) << " " << values.front() << " to " << values.back()) {
          // A square matrix may have singular values that are too small for five steps: below 0.0015 of its norm.
          const std::vector<double> of_u = singular_values(u);
          double norm = 0;
          for (const double v : of_u) norm += v * v;
          const auto large = [&](double v) { return v > 0.002 * std::sqrt(norm); };
          const auto near = [&](double v) { return v > low; };
          BOOST_TEST(std::ranges::count_if(values, near) >= std::ranges::count_if(of_u, large));
          BOOST_TEST(std::ranges::count_if(values, near) >= std::ssize(values) - 1);
          BOOST_TEST(values.back() < high);
        }
        const double tolerance = type == DType::f64 ? 0 : type == DType::f32 ? 1e-5 : 0.1;
        BOOST_TEST(is_close(o.to_vector<double>(), exact.to_vector<double>(), tolerance), str(type)
                                                                                              << " " << str(shape));
      }
    }
  }
}

// The factor of each step on small singular values is 3.4445: fewer steps leave more of them small.
BOOST_AUTO_TEST_CASE(fewer_steps_reach_fewer_singular_values) {
  for (const auto& [steps, least] : {std::pair{1, 0.2101}, std::pair{3, 0.0179}, std::pair{5, 0.00151}}) {
    for (const double below : {0.98, 1.02}) {
      const double s = least * below, rest = std::sqrt(1 - s * s);
      const std::vector<double> values = singular_values(
          orthogonalised(from_vector(std::vector<double>{rest, 0, 0, 0, s, 0}, {2, 3}), DType::f64, steps));
      BOOST_TEST((values[0] > 0.68) == (below > 1), steps << " steps, " << values[0]);
      BOOST_TEST(values[0] > 0.65);
    }
  }
}

BOOST_AUTO_TEST_CASE(normalised_rows_and_columns_have_one_length) {
  using enum MuonOptions::Normalise;
  const auto spread = [](const Matrix& a) {  // the largest length of a row over the smallest
    double low = 1e300, high = 0;
    for (int64_t i = 0; i < a.rows; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < a.columns; ++j) sum += a.at(i, j) * a.at(i, j);
      low = std::min(low, std::sqrt(sum)), high = std::max(high, std::sqrt(sum));
    }
    return high / low;
  };
  for (const DType type : {DType::f32, DType::f64}) {
    const Tensor o = orthogonalised(normal_tensor({40, 10}, 1, {3, 9}, type));
    const auto lengths = [&](MuonOptions::Normalise how) {
      const Matrix n = matrix(normalised(o, how));
      BOOST_TEST(std::fabs(norm(n) / norm(matrix(o)) - 1) < 1e-5);
      return std::pair{spread(n), spread(turned(n))};
    };
    BOOST_TEST((normalised(o, none).to_vector<double>() == o.to_vector<double>()));
    BOOST_TEST(lengths(none).first > 1.5);
    BOOST_TEST(lengths(rows).first < 1 + 1e-5);
    BOOST_TEST(lengths(columns).second < 1 + 1e-5);
    BOOST_TEST(lengths(both).first < 1 + 1e-5);
    BOOST_TEST(lengths(both).second < 1.2);
  }
  // A row of zeros stays; one that is shorter than 1e-10 becomes no longer than the others.
  const Tensor o = from_vector(std::vector<float>{1, 0, 0, 0, 0, 1e-22F}, {3, 2});
  for (const MuonOptions::Normalise how : {rows, columns, both}) {
    const std::vector<double> n = normalised(o, how).to_vector<double>();
    BOOST_TEST((n[2] == 0 && n[3] == 0));
    BOOST_TEST((n[0] > 0.7 && n[0] <= 1 && n[5] < 0.1), n[0] << " " << n[5]);
  }
  BOOST_TEST(is_close(normalised(zeros({3, 2}), both), zeros({3, 2}), 0));
  BOOST_TEST(normalised(zeros({0, 4}), both).numel() == 0);
}

// The direction of a gradient does not depend on its size, wherever its squares lie beyond the type.
BOOST_AUTO_TEST_CASE(sizes_of_gradients_do_not_matter) {
  for (const DType type : {DType::f64, DType::f32, DType::bf16}) {
    const Tensor u = random_tensor({9, 17}, 3, type);
    const int range = type == DType::f64 ? 1000 : 120;
    for (const int power : {range, range / 2, -range / 2, -range})
      for (const DType steps : {type, DType::bf16})
        BOOST_TEST(is_close(orthogonalised(scale(u, std::ldexp(1.0, power)), steps), orthogonalised(u, steps),
                            steps == DType::bf16 ? 0.1 : 1e-4),
                   str(type) << " 2^" << power << " in " << str(steps));
    for (const DType steps : {type, DType::bf16})
      BOOST_TEST(is_close(orthogonalised(zeros({9, 17}, type), steps), zeros({9, 17}, type), 0));
    BOOST_TEST(orthogonalised(zeros({0, 4}, type)).numel() == 0);
    for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
      Tensor with = u.clone();
      with.sliced(0, 4, 5).sliced(1, 2, 3).fill(bad);
      BOOST_TEST(!all_finite(orthogonalised(with)));
      BOOST_TEST(!all_finite(orthogonalised(with, DType::bf16)));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
