// Random numbers on the GPU are those of the CPU.
#include <boost/test/unit_test.hpp>

#include "tests/cuda/support.h"

using namespace braid;
using namespace braid::test;

namespace {
constexpr RandomKey kKey{2024, 7};

#if defined(BRAID_EMULATION)
constexpr bool kSameLibrary = true;  // logarithm, sine and cosine are the CPU's own
#else
constexpr bool kSameLibrary = false;
#endif
}  // namespace

BOOST_AUTO_TEST_SUITE(cuda_random)

BOOST_AUTO_TEST_CASE(numbers_equal_the_cpus) {
  for (DType type : kFloats) {
    for (int64_t n : {0, 1, 2, 3, 5, 8, 33, 1025}) {
      in_each_order([&] {
        for (int64_t shift : {0, 1}) {  // 1: the result does not begin at a whole vector
          Tensor here = empty({n + shift}, type).sliced(0, shift, n + shift);
          Tensor there = empty({n + shift}, type, kGpu).sliced(0, shift, n + shift);
          BOOST_TEST_CONTEXT(n << " " << str(type) << " from " << shift) {
            backend(kCpu).random.uniform(-2, 3, kKey, here);
            backend(kGpu).random.uniform(-2, 3, kKey, there);
            BOOST_TEST(same_bits(there, here));
            backend(kCpu).random.normal(0.5, 2, kKey, here);
            backend(kGpu).random.normal(0.5, 2, kKey, there);
            if (kSameLibrary)
              BOOST_TEST(same_bits(there, here));
            else
              BOOST_TEST(is_close(there.to(kCpu), here, tolerance_of(type)));
            Tensor x = random_tensor({n}, 3, type), gpu_x = x.to(kGpu);
            backend(kCpu).random.dropout(x, 0.3, kKey, here);
            backend(kGpu).random.dropout(gpu_x, 0.3, kKey, there);
            BOOST_TEST(same_bits(there, here));
          }
        }
      });
    }
  }
}

BOOST_AUTO_TEST_CASE(dropout_in_any_layout) {
  Tensor x = random_tensor({40, 30}, 1, DType::f32), y = empty({30, 40}), gpu_y = empty({30, 40}, DType::f32, kGpu);
  backend(kCpu).random.dropout(x.transposed(), 0.25, kKey, y);
  backend(kGpu).random.dropout(x.to(kGpu).transposed(), 0.25, kKey, gpu_y);
  BOOST_TEST(same_bits(gpu_y, y));
}

BOOST_AUTO_TEST_SUITE_END()
