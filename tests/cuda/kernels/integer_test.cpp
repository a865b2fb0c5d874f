#include "braid/tensor/kernels/integer.h"

#include <boost/test/unit_test.hpp>
#include <limits>

#include "tests/cuda/support.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(cuda_integer)

// Every op, on every pair of some small numbers and the limits of the type, in more than one block.
BOOST_AUTO_TEST_CASE(has_the_values_of_the_cpu) {
  for (const DType t : {DType::i64, DType::i32, DType::u8}) {
    integer::visit_type(t, "test", [&]<class T>() {
      std::vector<T> some;
      for (int v = 0; v < 18; ++v) some.push_back(static_cast<T>(v - 9));
      some.push_back(std::numeric_limits<T>::min());
      some.push_back(std::numeric_limits<T>::max());
      for (int op = 0; op < static_cast<int>(IntegerOp::count); ++op) {
        const auto kind = static_cast<IntegerOp>(op);
        const bool divides = kind == IntegerOp::floor_divide || kind == IntegerOp::remainder;
        std::vector<T> a, b;
        for (const T x : some) {
          for (const T y : some) {
            if (divides && y == 0) continue;
            a.push_back(x);
            b.push_back(y);
          }
        }
        const Shape shape{static_cast<int64_t>(a.size())};
        const Tensor x = from_vector(a, shape), y = from_vector(b, shape);
        Tensor want = empty(shape, t), got = empty(shape, t, kGpu);
        backend(kCpu).integer.binary(kind, x, y, want);
        backend(kGpu).integer.binary(kind, x.to(kGpu), y.to(kGpu), got);
        BOOST_TEST_CONTEXT("op " << op << " of " << name(t))
        BOOST_TEST((got.to(kCpu).to_vector<T>() == want.to_vector<T>()));
      }
    });
  }
}

BOOST_AUTO_TEST_SUITE_END()
