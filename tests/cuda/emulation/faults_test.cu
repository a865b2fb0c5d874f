// Kernels with a known fault: the emulation must report each, and only those.
#include "braid/cuda/device/kernel.h"
// (first, as in every kernel file)
#include <unistd.h>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "braid/tensor/tensor.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

extern "C" __attribute__((weak)) void __tsan_acquire(void*);
extern "C" __attribute__((weak)) int __asan_address_is_poisoned(const volatile void*);

namespace {

const Device kGpu{Device::Kind::cuda, 0};

// ---- races ----

template <bool barrier>
__global__ void rotate(const float* x, float* y) {  // y[i] = x[i - 1], the first one from the end
  float* s = cuda::dynamic_shared<float>();
  s[threadIdx.x] = x[threadIdx.x];
  if (barrier) __syncthreads();
  y[threadIdx.x] = s[(threadIdx.x + blockDim.x - 1) % blockDim.x];
}
__global__ void shift(const float* x, float* y) {  // reads only what lower threads wrote: right in the natural order
  float* s = cuda::dynamic_shared<float>();
  s[threadIdx.x] = x[threadIdx.x];
  y[threadIdx.x] = threadIdx.x > 0 ? s[threadIdx.x - 1] : 0;
}
template <bool barrier>
__global__ void exchange(float* y) {  // lanes of one warp through shared memory
  struct Scratch {
    float x[32];
  };
  Scratch& s = cuda::shared<Scratch>();
  s.x[threadIdx.x] = static_cast<float>(threadIdx.x);
  if (barrier) {
    __syncwarp();
  } else {
    __shfl_sync(~0u, 0, 0);  // all lanes meet, but it orders no memory
  }
  y[threadIdx.x] = s.x[31 - threadIdx.x];
}
template <bool atomic>
__global__ void count(int32_t* counter) {
  if (threadIdx.x % 32 != 0) return;
  if (atomic) {
    atomicAdd(counter, 1);
  } else {
    *counter += 1;
  }
}
template <bool wait>
__global__ void fetch(const float4* x, float4* y) {
  float4* s = cuda::dynamic_shared<float4>();
  cuda::copy_async<16>(s + threadIdx.x, x + threadIdx.x);
  cuda::copy_async_commit();
  if (wait) cuda::copy_async_wait<0>();
  y[threadIdx.x] = s[threadIdx.x];
}
__global__ void read_unwritten(float* y) { y[threadIdx.x] = cuda::dynamic_shared<float>()[threadIdx.x]; }

// ---- what cannot continue ----

__global__ void two_barriers(int32_t* x) {
  if (threadIdx.x < 40) {
    __syncthreads();
  } else {
    __syncthreads();
  }
  *x = 1;
}
__global__ void missing_lane(int32_t* x) {
  if (threadIdx.x != 7) {
    *x = __shfl_sync(~0u, 1, 0);
  } else {
    __syncthreads();
  }
}
__global__ void mma_of_half_a_warp() {
  if (threadIdx.x >= 16) return;
  float c[4] = {};
  const uint32_t a[4] = {};
  cuda::mma_bf16(c, a, 0, 0);
}
__global__ void shuffle_from_nowhere(int32_t* x) {
  if (threadIdx.x < 8) *x = __shfl_sync(0xffu, 1, 9);
}
__global__ void mask_without_caller(int32_t* x) { *x = __shfl_sync(0xfffffffeu, 1, 1); }
__global__ void odd_ldmatrix() {
  uint32_t a[1];
  cuda::ldmatrix(a, cuda::dynamic_shared<char>() + threadIdx.x % 8 * 18);
}
__global__ void ldmatrix_of_registers() {
  alignas(16) uint32_t own[4] = {};
  uint32_t a[1];
  cuda::ldmatrix(a, own);
}
__global__ void nothing() {}

__global__ void write_beyond_dynamic(unsigned i) { cuda::dynamic_shared<float>()[threadIdx.x + i] = 1; }
__global__ void write_beyond_static(unsigned i) {
  struct Scratch {
    float x[32];
  };
  cuda::shared<Scratch>().x[threadIdx.x + i] = 1;
}
__global__ void write_beyond_tensor(float* x) { x[threadIdx.x] = 1; }

// In how many of five orders is the result wrong? Under the thread sanitizer: were data races seen?
struct Seen {
  int wrong = 0;
  bool races = false;
};
template <class Wrong>
Seen in_every_order(Wrong wrong) {
  Seen seen;
  const uint64_t before = emulated::statistics().data_races;
  for (int i = 0; i < 5; ++i) {
    emulated::set_order(i == 0   ? emulated::Order::forward
                        : i == 1 ? emulated::Order::reverse
                                 : emulated::Order::random,
                        static_cast<uint64_t>(i));
    seen.wrong += wrong() ? 1 : 0;
  }
  emulated::set_order(emulated::Order::forward);
  seen.races = std::exchange(emulated::statistics().data_races, before) > before;  // these were meant to be
  return seen;
}

bool expects_races(bool races) { return __tsan_acquire && races; }

}  // namespace

BOOST_AUTO_TEST_SUITE(cuda_emulation)

BOOST_AUTO_TEST_CASE(races_show_in_some_order) {
  const unsigned n = 256;
  std::vector<float> values(n);
  for (unsigned i = 0; i < n; ++i) values[i] = static_cast<float>(i);
  Tensor x = from_vector(values, {n}, kGpu), y = empty({n}, DType::f32, kGpu);
  const cuda::Launch all{.block = n, .shared_bytes = n * sizeof(float)};
  const auto rotated = [&](auto kernel) {
    cuda::launch(kernel, all, x.data<float>(), y.mutable_data<float>());
    std::vector<float> got = y.to_vector<float>(), want = values;
    std::rotate(want.begin(), want.end() - 1, want.end());
    return got != want;
  };
  Seen seen = in_every_order([&] { return rotated(rotate<true>); });
  BOOST_TEST((seen.wrong == 0 && !seen.races));
  seen = in_every_order([&] { return rotated(rotate<false>); });
  BOOST_TEST((seen.wrong == 5 && seen.races == expects_races(true)));
  seen = in_every_order([&] {
    cuda::launch(shift, all, x.data<float>(), y.mutable_data<float>());
    std::vector<float> got = y.to_vector<float>();
    return !std::equal(got.begin() + 1, got.end(), values.begin());
  });
  BOOST_TEST((seen.wrong == 4 && seen.races == expects_races(true)));
}

BOOST_AUTO_TEST_CASE(a_shuffle_orders_no_memory) {
  Tensor y = empty({32}, DType::f32, kGpu);
  const auto exchanged = [&](auto kernel) {
    cuda::launch(kernel, {.block = 32}, y.mutable_data<float>());
    return y.to_vector<float>()[0] != 31;
  };
  Seen seen = in_every_order([&] { return exchanged(exchange<true>); });
  BOOST_TEST((seen.wrong == 0 && !seen.races));
  seen = in_every_order([&] { return exchanged(exchange<false>); });
  BOOST_TEST((seen.wrong == 0 && seen.races == expects_races(true)));
}

BOOST_AUTO_TEST_CASE(atomics_are_no_races) {
  for (unsigned blocks : {1u, 4u}) {
    const auto counted = [&](auto kernel) {
      Tensor counter = from_vector(std::vector<int32_t>{0}, {1}, kGpu);
      cuda::launch(kernel, {.grid = blocks, .block = 64}, counter.mutable_data<int32_t>());
      return counter.item() != blocks * 2;
    };
    Seen seen = in_every_order([&] { return counted(count<true>); });
    BOOST_TEST((seen.wrong == 0 && !seen.races));
    seen = in_every_order([&] { return counted(count<false>); });
    BOOST_TEST(seen.races == expects_races(true));
  }
}

BOOST_AUTO_TEST_CASE(an_asynchronous_copy_may_be_late) {
  Tensor x = from_vector(std::vector<float>(256, 4), {256}, kGpu), y = empty({256}, DType::f32, kGpu);
  const auto fetched = [&](auto kernel) {
    cuda::launch(kernel, {.block = 64, .shared_bytes = 1024}, reinterpret_cast<const float4*>(x.data<float>()),
                 reinterpret_cast<float4*>(y.mutable_data<float>()));
    return y.to_vector<float>() != std::vector<float>(256, 4);
  };
  BOOST_TEST(in_every_order([&] { return fetched(fetch<true>); }).wrong == 0);
  BOOST_TEST(in_every_order([&] { return fetched(fetch<false>); }).wrong == 4);
}

BOOST_AUTO_TEST_CASE(memory_starts_as_nan) {
  Tensor y = empty({32}, DType::f32, kGpu);
  for (float v : y.to_vector<float>()) BOOST_TEST(std::isnan(v));
  cuda::launch(read_unwritten, {.block = 32, .shared_bytes = 128}, y.mutable_data<float>());
  for (float v : y.to_vector<float>()) BOOST_TEST(std::isnan(v));
}

BOOST_AUTO_TEST_CASE(deadlocks_name_threads_and_lines) {
  Tensor t = empty({1}, DType::i32, kGpu);
  int32_t* x = t.mutable_data<int32_t>();
  BOOST_TEST(throws_with([&] { cuda::launch(two_barriers, {.block = 64}, x); }, "threads 0-39 wait in __syncthreads"));
  BOOST_TEST(throws_with([&] { cuda::launch(two_barriers, {.block = 64}, x); }, "threads 40-63 wait in __syncthreads"));
  BOOST_TEST(throws_with([&] { cuda::launch(two_barriers, {.block = 64}, x); }, "faults_test.cu:"));
  BOOST_TEST(
      throws_with([&] { cuda::launch(missing_lane, {.block = 32}, x); }, "threads 0-6, 8-31 wait in __shfl_sync"));
  BOOST_TEST(throws_with([&] { cuda::launch(missing_lane, {.block = 32}, x); }, "threads 7 wait in __syncthreads"));
  BOOST_TEST(throws_with([&] { cuda::launch(mma_of_half_a_warp, {.block = 32}); }, "threads 0-15 wait in mma_bf16"));
  BOOST_TEST(throws_with([&] { cuda::launch(mma_of_half_a_warp, {.block = 32}); }, "threads 16-31 ended"));
}

BOOST_AUTO_TEST_CASE(wrong_use_is_named) {
  Tensor t = empty({1}, DType::i32, kGpu);
  int32_t* x = t.mutable_data<int32_t>();
  BOOST_TEST(throws_with([&] { cuda::launch(shuffle_from_nowhere, {.block = 32}, x); }, "a shuffle reads lane 9"));
  BOOST_TEST(throws_with([&] { cuda::launch(mask_without_caller, {.block = 32}, x); },
                         "thread (0,0,0): __shfl_sync: the mask leaves out the calling lane"));
  BOOST_TEST(throws_with([&] { cuda::launch(odd_ldmatrix, {.block = 32, .shared_bytes = 1024}); },
                         "thread (1,0,0): ldmatrix: the address is not a multiple of 16"));
  BOOST_TEST(throws_with([&] { cuda::launch(ldmatrix_of_registers, {.block = 32}); }, "not in the block's shared"));
  BOOST_TEST(throws_with([&] { cuda::launch(nothing, {.block = 2048}); }, "a block of 2048 threads"));
  BOOST_TEST(throws_with([&] { cuda::launch(nothing, {.grid = 0}); }, "a grid of 0 x 1 x 1 blocks"));
  BOOST_TEST(throws_with([&] { cuda::launch(nothing, {.grid = dim3(1, 70000)}); }, "a grid of 1 x 70000 x 1 blocks"));
  BOOST_TEST(throws_with([&] { cuda::launch(nothing, {.shared_bytes = 1 << 20}); }, "1048576 bytes of shared memory"));
  cuda::launch(nothing, {.grid = 2, .block = 33});  // after all these it continues
}

// ---- beyond the end of memory, which ends the program: so in programs of their own, under the address sanitizer ----

BOOST_AUTO_TEST_CASE(beyond_the_end_is_reported) {
  if (!__asan_address_is_poisoned) {
    BOOST_WARN_MESSAGE(false, "needs the address sanitizer (scripts/test asan)");
    return;
  }
  const std::pair<const char*, const char*> cases[] = {{"dynamic", "in block (0,0,0) thread (5,0,0)"},
                                                       {"static_", "in block (0,0,0) thread (5,0,0)"},
                                                       {"tensor", "in block (0,0,0) thread (30,0,0)"},
                                                       {"host", "use-after-poison"}};
  for (const auto& [name, report] : cases) {
    const std::string command =
        "/proc/" + std::to_string(getpid()) + "/exe --run_test=cuda_beyond_the_end/" + name + " 2>&1";
    std::FILE* child = popen(command.c_str(), "r");
    std::string output;
    for (char line[256]; std::fgets(line, sizeof line, child);) output += line;
    pclose(child);
    BOOST_TEST_CONTEXT(name << ": " << output) {
      BOOST_TEST(output.find("AddressSanitizer") != std::string::npos);
      BOOST_TEST(output.find(report) != std::string::npos);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(cuda_beyond_the_end, *boost::unit_test::disabled())

BOOST_AUTO_TEST_CASE(dynamic) {
  cuda::launch(write_beyond_dynamic, {.block = 32, .shared_bytes = 37 * sizeof(float)}, 32u);
}
BOOST_AUTO_TEST_CASE(static_) { cuda::launch(write_beyond_static, {.block = 32}, 27u); }
BOOST_AUTO_TEST_CASE(tensor) {
  Tensor x = empty({30}, DType::f32, kGpu);
  cuda::launch(write_beyond_tensor, {.block = 32}, x.mutable_data<float>());
}
BOOST_AUTO_TEST_CASE(host) {  // as on a real GPU, the host cannot read the GPU's memory
  Tensor x = empty({4}, DType::f32, kGpu);
  BOOST_TEST(*x.data<float>() == 0);
}

BOOST_AUTO_TEST_SUITE_END()
