// The device itself: tensors there and back, products.
#include "braid/tensor/kernels/backend.h"

#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

namespace {

const Device kCard{Device::Kind::cuda, 0};

Tensor counted(const Shape& shape, DType dtype) {
  std::vector<double> values(static_cast<size_t>(numel(shape)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i % 17) - 8;
  return from_vector(values, shape).to(dtype);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cuda_backend_table)

BOOST_AUTO_TEST_CASE(tensors_go_there_and_back) {
  for (DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16, DType::i64, DType::i32}) {
    Tensor x = counted({3, 5}, dtype), there = x.to(kCard);
    BOOST_TEST((there.device() == kCard));
    BOOST_TEST(is_close(there.to(kCpu), x, 0));
    BOOST_TEST(is_close(x.transposed().to(kCard).to(kCpu), x.transposed(), 0));
  }
  BOOST_TEST(counted({0, 4}, DType::f32).to(kCard).to_vector<float>().empty());
  BOOST_TEST(counted({1}, DType::f32).to(kCard).item() == -8);
}

BOOST_AUTO_TEST_CASE(another_card_does_not_exist) {
  BOOST_TEST(throws_with([] { empty({1}, DType::f32, {Device::Kind::cuda, 7}); }, "cuda:7 does not exist"));
}

BOOST_AUTO_TEST_CASE(products_agree_with_the_cpu) {
  for (DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    Tensor x = counted({2, 3, 4}, dtype), z = counted({2, 5, 4}, dtype).transposed(), y = zeros({2, 3, 5}, dtype);
    backend(kCpu).matmul.product(x, z, false, y);
    Tensor card_y = empty({2, 3, 5}, dtype, kCard);
    Tensor card_z = counted({2, 5, 4}, dtype).to(kCard).transposed();
    backend(kCard).matmul.product(x.to(kCard), card_z, false, card_y);
    BOOST_TEST(is_close(card_y, y, 0));
    backend(kCpu).matmul.product(x, z, true, y);
    backend(kCard).matmul.product(x.to(kCard), card_z, true, card_y);
    BOOST_TEST(is_close(card_y, y, 0));
  }
}

BOOST_AUTO_TEST_SUITE_END()
