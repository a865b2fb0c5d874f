// The device itself: tensors there and back, products.
#include "braid/tensor/kernels/backend.h"

#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

namespace {

const Device kGpu{Device::Kind::cuda, 0};

Tensor counted(const Shape& shape, DType dtype) {
  std::vector<double> values(static_cast<size_t>(numel(shape)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i % 17) - 8;
  return from_vector(values, shape).to(dtype);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cuda_backend_table)

BOOST_AUTO_TEST_CASE(tensors_go_there_and_back) {
  for (DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16, DType::i64, DType::i32}) {
    Tensor x = counted({3, 5}, dtype), there = x.to(kGpu);
    BOOST_TEST((there.device() == kGpu));
    BOOST_TEST(is_close(there.to(kCpu), x, 0));
    BOOST_TEST(is_close(x.transposed().to(kGpu).to(kCpu), x.transposed(), 0));
  }
  BOOST_TEST(counted({0, 4}, DType::f32).to(kGpu).to_vector<float>().empty());
  BOOST_TEST(counted({1}, DType::f32).to(kGpu).item() == -8);
}

BOOST_AUTO_TEST_CASE(another_gpu_does_not_exist) {
  const auto none = static_cast<int16_t>(cuda_device_count());
  BOOST_TEST(throws_with(
      [&] {
        empty({1}, DType::f32, {Device::Kind::cuda, none});
      },
      "cuda:" + std::to_string(none) + " does not exist"));
}

BOOST_AUTO_TEST_CASE(products_agree_with_the_cpu) {
  for (DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    Tensor x = counted({2, 3, 4}, dtype), z = counted({2, 5, 4}, dtype).transposed(), y = zeros({2, 3, 5}, dtype);
    backend(kCpu).matmul.product(x, z, false, y);
    Tensor gpu_y = empty({2, 3, 5}, dtype, kGpu);
    Tensor gpu_z = counted({2, 5, 4}, dtype).to(kGpu).transposed();
    backend(kGpu).matmul.product(x.to(kGpu), gpu_z, false, gpu_y);
    BOOST_TEST(is_close(gpu_y, y, 0));
    backend(kCpu).matmul.product(x, z, true, y);
    backend(kGpu).matmul.product(x.to(kGpu), gpu_z, true, gpu_y);
    BOOST_TEST(is_close(gpu_y, y, 0));
  }
}

BOOST_AUTO_TEST_SUITE_END()
