// Tensors of more than 2^31 elements: made of one usual value and a few marked elements on both sides of the limits of
// 32 bits, and results compared element by element.
#pragma once
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <functional>
#include <map>

#include "braid/autograd.h"
#include "braid/tensor/parallel.h"
#include "braid/tensor/storage.h"

namespace braid::large {

inline constexpr int64_t kLimit = int64_t{1} << 31;  // beyond the largest int
inline constexpr int64_t kMany = kLimit + 12345;     // 2 GiB of u8, 4 of bf16, 8 of f32
// A matrix of as many: (kRows, kColumns), kLimit elements in all rows but one.
inline constexpr int64_t kRows = 65537, kColumns = 32768;

// Whether so many GiB are available to this test, of memory and of BRAID_TEST_MEMORY_GIB where that is set; prints
// that the test is skipped where they are not.
bool has_memory(double gib);

using Marks = std::map<int64_t, double>;  // position in row-major order -> value

// A tensor of `usual` with these elements.
Tensor marked(const Shape& shape, DType dtype, double usual, const Marks& marks);

// Values of elements that lie at both ends, and on both sides of 2^31.
inline Marks values_at_limits(int64_t count, double first) {
  return {{0, first},          {5, first + 1},           {kLimit - 1, first + 2},
          {kLimit, first + 3}, {kLimit + 70, first + 4}, {count - 1, first + 5}};
}

// f of each value.
inline Marks each(Marks marks, const std::function<double(double)>& f) {
  for (auto& [position, value] : marks) value = f(value);
  return marks;
}

double element(const Tensor& x, int64_t position);  // of a contiguous x

// x, contiguous, has these elements and is `usual` everywhere else.
boost::test_tools::assertion_result is_marked(const Tensor& x, double usual, const Marks& marks);

}  // namespace braid::large
