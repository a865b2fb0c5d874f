// Messages when a GPU cannot be used, has no memory or fails.
#include <cmath>

#include "braid/autograd/debug.h"
#include "braid/autograd/ops.h"
#include "braid/cuda/runtime/messages.h"
#include "tests/cuda/emulation/gpu.h"
#include "tests/cuda/support.h"

using namespace braid;
using namespace braid::test;

namespace {

template <class F>
Error error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e;
  }
  return {ErrorKind::misuse, "nothing was thrown"};
}

void check_error(const Error& e, ErrorKind kind, const std::string& message) {
  BOOST_TEST((e.kind() == kind));
  BOOST_TEST(std::string(e.what()) == message);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(bad_use)

BOOST_AUTO_TEST_CASE(a_gpu_that_is_not_there) {
  const std::string advice = "use the device cpu, or run on a machine with an NVIDIA GPU and a build with CUDA";
  check_error(error_of([] { parse_device("cuda:7"); }), ErrorKind::setting,
              "device cuda:7 does not exist: found 1 CUDA devices; " + advice);
  check_error(error_of([] {
                empty({2}, DType::f32, {Device::Kind::cuda, 7});
              }),
              ErrorKind::setting, "cuda:7 does not exist: found 1 CUDA devices");
  BOOST_TEST((parse_device("cuda") == kGpu));
}

BOOST_AUTO_TEST_CASE(a_machine_without_driver_or_gpu) {
  emulated::OtherGpu gpu;
  gpu->count = 0;
  check_error(
      error_of([] { parse_device("cuda"); }), ErrorKind::setting,
      "device cuda:0 does not exist: found 0 CUDA devices; use the device cpu, or run on a machine with an NVIDIA "
      "GPU and a build with CUDA");
  BOOST_TEST((parse_device("auto") == kCpu));
}

BOOST_AUTO_TEST_CASE(a_driver_that_fails_is_not_taken_for_no_gpu) {
  emulated::OtherGpu gpu;
  gpu->no_driver =
      cuda::driver_failure("driver version is insufficient (cudaErrorInsufficientDriver)", 12040, 13000, true);
  const std::string message =
      "the GPUs of this machine cannot be used: CUDA: driver version is insufficient (cudaErrorInsufficientDriver); "
      "the driver is for CUDA 12.4, this build was made with 13.0: install a newer driver, or use the device cpu";
  for (const char* device : {"auto", "cuda", "cuda:1"})
    check_error(error_of([&] { parse_device(device); }), ErrorKind::setting, message);
  check_error(error_of([] { empty({2}, DType::f32, kGpu); }), ErrorKind::setting, message);
  BOOST_TEST((parse_device("cpu") == kCpu));
}

BOOST_AUTO_TEST_CASE(a_gpu_that_is_too_old) {
  emulated::OtherGpu gpu;
  gpu->properties.name = "Tesla V100";
  gpu->properties.major = 7;
  const std::string message =
      "cuda:0 is a Tesla V100 of compute capability 7.0, which is too old: 8.0 (A100) or newer is needed; use the "
      "device cpu";
  check_error(error_of([] { parse_device("cuda:0"); }), ErrorKind::setting, message);
  check_error(error_of([] { empty({2}, DType::f32, kGpu); }), ErrorKind::setting, message);
  BOOST_TEST((parse_device("auto") == kCpu));
  gpu->properties.major = 8;
  BOOST_TEST((parse_device("auto") == kGpu));
}

BOOST_AUTO_TEST_CASE(memory_that_runs_out) {
  constexpr int64_t kMebi = 1 << 20;
  emulated::OtherGpu gpu;
  gpu->properties.memory = memory_stats(kGpu).reserved + 5 * kMebi;
  Tensor x = empty({3 * kMebi}, DType::u8, kGpu);
  const std::string in_use = std::to_string((memory_stats(kGpu).current + kMebi - 1) / kMebi);
  auto ask = [] { empty({kMebi}, DType::f32, kGpu); };
  BOOST_CHECK_THROW(ask(), OutOfMemory);
  check_error(
      error_of(ask), ErrorKind::setting,
      "out of memory on the emulated GPU: requested 4 MiB, 2 MiB are free, " + in_use + " MiB are in use by tensors");
  x = Tensor();
  ask();  // the GPU works as before
}

// The driver reports a failed kernel at the next wait, with whatever is called then; BRAID_DEBUG=sync waits after each
// op, so that it is named.
BOOST_AUTO_TEST_CASE(a_kernel_that_fails) {
  const std::string failure = "an illegal memory access was encountered (cudaErrorIllegalAddress)";
  emulated::OtherGpu gpu;
  Tensor x = random_tensor({2, 3}, 1, DType::f32).to(kGpu), y = softmax(x);
  gpu->failure = failure;
  check_error(
      error_of([&] { y.to_vector<float>(); }), ErrorKind::misuse,
      "[transfer] CUDA: " + failure + "; kernels run asynchronously: BRAID_DEBUG=sync names the op that failed");
  const Debug before = debug();
  set_debug({.sync = true});
  gpu->failure = failure;
  const Error named = error_of([&] { softmax(x); });
  set_debug(before);
  BOOST_TEST(std::string(named.what()).find("softmax: f32 (2, 3): [") == 0u, named.what());
  BOOST_TEST(std::string(named.what()).find(failure) != std::string::npos, named.what());
  BOOST_TEST(std::isfinite(softmax(x).to_vector<double>()[0]));  // the emulated GPU recovers; a real one does not
}

BOOST_AUTO_TEST_SUITE_END()
