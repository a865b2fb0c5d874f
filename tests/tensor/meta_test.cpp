#include <boost/test/unit_test.hpp>

#include "braid/tensor/memory.h"
#include "braid/tensor/tensor.h"

using namespace braid;

BOOST_AUTO_TEST_SUITE(meta)

BOOST_AUTO_TEST_CASE(tensors_have_shapes_and_no_memory) {
  const int64_t before = memory_stats(kCpu).current;
  Tensor x = zeros({1 << 20, 1 << 20}, DType::f32, kMeta);
  BOOST_TEST(str(x.device()) == "meta");
  BOOST_TEST(x.numel() == int64_t{1} << 40);
  x.fill(2);
  x.copy_(x);
  BOOST_TEST((x.to(DType::bf16).dtype() == DType::bf16));
  BOOST_TEST((x.sliced(0, 3, 7).clone().shape() == Shape{4, 1 << 20}));
  BOOST_TEST((from_values({1, 2}, {2}).to(kMeta).device() == kMeta));
  BOOST_TEST(memory_stats(kCpu).current == before);
  BOOST_TEST(memory_stats(kMeta).peak == 0);
}

BOOST_AUTO_TEST_CASE(values_cannot_be_read_or_computed) {
  Tensor x = empty({1}, DType::f32, kMeta);
  BOOST_CHECK_THROW(x.item(), Error);
  BOOST_CHECK_THROW(x.to(kCpu), Error);
  BOOST_CHECK_THROW(x.add_(x), Error);
}

BOOST_AUTO_TEST_SUITE_END()
