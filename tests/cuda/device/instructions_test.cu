// Launches, shared memory and the warp-wide operations, each against plain loops. Also built by nvcc for a real GPU.
#include "braid/cuda/device/kernel.h"
// (first, as in every kernel file)
#include <boost/test/unit_test.hpp>

#include "braid/tensor/kernels/backend.h"

using namespace braid;

namespace {

const Device kGpu{Device::Kind::cuda, 0};

// y = the sum of all threads' x, by shuffles and shared memory.
__global__ void sum_of_block(const float* x, float* y) {
  struct Sums {
    float of_warp[32];
  };
  Sums& sums = cuda::shared<Sums>();
  float sum = x[blockIdx.x * blockDim.x + threadIdx.x];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  if (threadIdx.x % 32 == 0) sums.of_warp[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  sum = 0;
  for (unsigned w = 0; w < blockDim.x / 32; ++w) sum += sums.of_warp[w];
  y[blockIdx.x] = sum;
}

// c (16,8) = a (16,16) b (16,8), a and b through shared memory, both by ldmatrix; the same as the sum of two products
// of half the depth; and a written back by stmatrix.
__global__ void multiply_tiles(const bfloat16* a, const bfloat16* b, float* c, float* c_halves, bfloat16* a_again) {
  constexpr int kPitch = 24;  // elements; 8 rows then lie in different banks
  bfloat16* shared_a = cuda::dynamic_shared<bfloat16>();
  bfloat16* shared_b = shared_a + 16 * kPitch;
  bfloat16* copy = shared_b + 16 * kPitch;
  const unsigned lane = threadIdx.x;
  cuda::copy_async<16>(shared_a + lane / 2 * kPitch + lane % 2 * 8, a + lane * 8);
  if (lane < 16) cuda::copy_async<16>(shared_b + lane * kPitch, b + lane * 8);
  cuda::copy_async_commit();
  cuda::copy_async_wait<0>();
  __syncwarp();
  uint32_t fragment_a[4], fragment_b[2];
  cuda::ldmatrix(fragment_a, shared_a + lane % 16 * kPitch + lane / 16 * 8);
  cuda::ldmatrix<true>(fragment_b, shared_b + lane % 16 * kPitch);
  float sums[4] = {};
  cuda::mma_bf16(sums, fragment_a, fragment_b[0], fragment_b[1]);
  float halves[4] = {};
  cuda::mma_bf16(halves, fragment_a[0], fragment_a[1], fragment_b[0]);
  cuda::mma_bf16(halves, fragment_a[2], fragment_a[3], fragment_b[1]);
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned at = (lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2;
    c[at] = sums[i];
    c_halves[at] = halves[i];
  }
  cuda::stmatrix(copy + lane % 16 * kPitch + lane / 16 * 8, fragment_a);
  __syncwarp();
  for (unsigned i = lane; i < 256; i += 32) a_again[i] = copy[i / 16 * kPitch + i % 16];
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cuda_instructions)

BOOST_AUTO_TEST_CASE(shuffles_and_shared_memory) {
  std::vector<float> values(3 * 96), want(3);
  for (size_t i = 0; i < values.size(); ++i) want[i / 96] += values[i] = static_cast<float>(i % 13);
  Tensor x = from_vector(values, {3, 96}, kGpu), y = empty({3}, DType::f32, kGpu);
  cuda::launch(sum_of_block, {.grid = 3, .block = 96}, x.data<float>(), y.mutable_data<float>());
  BOOST_TEST(y.to_vector<float>() == want, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(tiles_on_tensor_cores) {
  std::vector<double> a(256), b(128), want(128);
  for (size_t i = 0; i < 256; ++i) a[i] = static_cast<double>(i * 7 % 23) - 11;
  for (size_t i = 0; i < 128; ++i) b[i] = static_cast<double>(i * 5 % 19) - 9;
  for (size_t i = 0; i < 128; ++i) {
    for (size_t k = 0; k < 16; ++k) want[i] += a[i / 8 * 16 + k] * b[k * 8 + i % 8];
  }
  Tensor gpu_a = from_vector(a, {16, 16}).to(DType::bf16).to(kGpu);
  Tensor gpu_b = from_vector(b, {16, 8}).to(DType::bf16).to(kGpu);
  Tensor c = empty({16, 8}, DType::f32, kGpu), halves = empty_like(c), again = empty({16, 16}, DType::bf16, kGpu);
  cuda::launch(multiply_tiles, {.block = 32, .shared_bytes = 3 * 16 * 24 * sizeof(bfloat16)}, gpu_a.data<bfloat16>(),
               gpu_b.data<bfloat16>(), c.mutable_data<float>(), halves.mutable_data<float>(),
               again.mutable_data<bfloat16>());
  BOOST_TEST(c.to_vector<double>() == want, boost::test_tools::per_element());
  BOOST_TEST(halves.to_vector<double>() == want, boost::test_tools::per_element());
  BOOST_TEST(again.to_vector<double>() == a, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
