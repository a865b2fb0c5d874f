// The host code that calls CUDA's runtime and cuBLASLt, on stand-ins that log: what is called, when, with what.
#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <future>

#include "braid/cuda/runtime/check.h"
#include "braid/cuda/runtime/launch.h"
#include "braid/tensor/graph.h"
#include "braid/tensor/kernels/backend.h"
#include "tests/cuda/driver/stand_in.h"
#include "tests/support/compare.h"
#include "tests/support/temp_folder.h"

using namespace braid;
using namespace braid::test;

namespace {

const Device kGpu{Device::Kind::cuda, 0};

// Every size is another product, new to the process.
struct NewProduct {
  Tensor x, z, y;
  explicit NewProduct(int64_t size)
      : x(empty({size, 16}, DType::bf16, kGpu)),
        z(empty({16, 8}, DType::bf16, kGpu)),
        y(empty({size, 8}, DType::bf16, kGpu)) {
    stand_in::trace = {};
  }
  void run(bool accumulate = false) { backend(kGpu).matmul.product(x, z, accumulate, y); }
};

struct WithFile {  // BRAID_MATMUL_ALGORITHMS
  explicit WithFile(const std::string& path) { setenv("BRAID_MATMUL_ALGORITHMS", path.c_str(), 1); }
  ~WithFile() { unsetenv("BRAID_MATMUL_ALGORITHMS"); }
};

const auto kSuccess = static_cast<int>(CUBLAS_STATUS_SUCCESS),
           kUnsupported = static_cast<int>(CUBLAS_STATUS_NOT_SUPPORTED);

}  // namespace

BOOST_AUTO_TEST_SUITE(cuda_host)

BOOST_AUTO_TEST_CASE(a_guard_restores_the_gpu_of_a_fresh_thread) {
  int driver = -1, own = -1;
  std::async(std::launch::async, [&] {
    { const cuda::DeviceGuard guard(1); }
    driver = stand_in::device;
    own = cuda::current_device();
  }).get();
  BOOST_TEST(driver == 0);
  BOOST_TEST(own == 0);
}

BOOST_AUTO_TEST_CASE(another_library_may_change_the_gpu) {
  cuda::use_device(1), cuda::use_device(0);
  stand_in::device = 1;
  cuda::use_device(0);
  BOOST_TEST(stand_in::device == 0);
}

BOOST_AUTO_TEST_CASE(a_busy_gpu_is_no_error_of_the_program) {
  const auto kind_of = [](cudaError_t status) {
    try {
      cuda::check(status);
    } catch (const Error& e) {
      return e.kind();
    }
    return ErrorKind::output;
  };
  BOOST_TEST((kind_of(cudaErrorDevicesUnavailable) == ErrorKind::setting));
  BOOST_TEST((kind_of(cudaErrorIllegalAddress) == ErrorKind::misuse));
}

BOOST_AUTO_TEST_CASE(a_driver_that_fails_is_named) {
  BOOST_TEST(cuda::find_gpus().count == 2);
  const auto found = [](cudaError_t status, int driver) {
    stand_in::status = status, stand_in::driver = driver;
    const cuda::Gpus gpus = cuda::find_gpus();
    stand_in::status = cudaSuccess, stand_in::driver = 13000;
    BOOST_TEST(gpus.count == 0);
    return gpus.failure;
  };
  BOOST_TEST(found(cudaErrorNoDevice, 13000) == "");
  BOOST_TEST(found(cudaErrorInsufficientDriver, 0) == "");  // not installed
  BOOST_TEST(found(cudaErrorInsufficientDriver, 12040).find("is for CUDA 12.4") != std::string::npos);
  BOOST_TEST(found(cudaErrorSystemNotReady, 12040).find(": see nvidia-smi") != std::string::npos);
}

// The first test that makes a product: the handle and the workspace are made once for a GPU.
BOOST_AUTO_TEST_CASE(products_go_on_after_their_workspace_found_no_memory) {
  stand_in::proposals = {{1, kSuccess, 1}};
  NewProduct product(2);
  stand_in::failing_allocations = 2;  // once more after the cached memory was given back
  BOOST_CHECK_THROW(product.run(), OutOfMemory);
  stand_in::failing_allocations = 0;
  product.run();
  BOOST_TEST(stand_in::trace.products.size() == 1u);
}

// The driver loads a kernel's code at its first launch.
BOOST_AUTO_TEST_CASE(a_launch_without_memory_takes_what_the_allocator_keeps) {
  static const int kernel = 0;
  const auto launch = [] { cuda::launch_function(&kernel, {}, nullptr); };
  empty({64 << 20}, DType::u8, kGpu);  // kept for the next tensor
  stand_in::trace = {};
  stand_in::failing_launches = 1;
  launch();
  BOOST_TEST(stand_in::trace.count("cudaLaunchKernel") == 2);
  BOOST_TEST(stand_in::trace.count("cudaFree") > 0);
  static const int large = 0;  // its shared memory is asked for first
  stand_in::failing_attributes = 1;
  cuda::launch_function(&large, {.shared_bytes = 64 << 10}, nullptr);
  BOOST_TEST((stand_in::attributes[{&large, cudaFuncAttributeMaxDynamicSharedMemorySize}] == 64 << 10));
  stand_in::failing_launches = 2;
  BOOST_CHECK_THROW(launch(), OutOfMemory);
}

BOOST_AUTO_TEST_CASE(values_go_from_one_gpu_to_another_through_the_cpu) {
  const Device other{Device::Kind::cuda, 1};
  const Tensor x = from_vector(std::vector<float>{1, 2, 3}, {3}).to(kGpu);
  stand_in::trace = {};
  const Tensor y = x.to(other);
  BOOST_TEST((y.device() == other));
  BOOST_TEST(stand_in::trace.count("to the CPU") == 1);
  BOOST_TEST(stand_in::trace.count("to the GPU") == 1);
  BOOST_TEST(y.to_vector<float>() == (std::vector<float>{1, 2, 3}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(shared_memory_beyond_the_default_is_requested_once) {
  static const int kernel = 0;
  const auto launch = [](size_t bytes) { cuda::launch_function(&kernel, {.shared_bytes = bytes}, nullptr); };
  stand_in::trace = {};
  launch(48 * 1024);
  BOOST_TEST(stand_in::trace.count("cudaFuncSetAttribute") == 0);
  launch(100 * 1024);
  launch(100 * 1024);
  launch(60 * 1024);
  BOOST_TEST(stand_in::trace.count("cudaFuncSetAttribute") == 2);
  BOOST_TEST((stand_in::attributes[{&kernel, cudaFuncAttributeMaxDynamicSharedMemorySize}] == 100 * 1024));
  BOOST_TEST((stand_in::attributes[{&kernel, cudaFuncAttributePreferredSharedMemoryCarveout}] == 100));
  launch(110 * 1024);
  BOOST_TEST((stand_in::attributes[{&kernel, cudaFuncAttributeMaxDynamicSharedMemorySize}] == 110 * 1024));
  BOOST_TEST(stand_in::trace.count("cudaLaunchKernel") == 5);
}

// The other fields of a result say nothing then.
BOOST_AUTO_TEST_CASE(a_proposal_without_success_is_passed_over) {
  stand_in::proposals = {{7, kUnsupported, 1}, {8, kSuccess, 1}, {9, kSuccess, 0.1}};
  NewProduct product(3);
  product.run();
  BOOST_REQUIRE(stand_in::trace.products.size() == 1u);
  BOOST_TEST(stand_in::trace.products[0].algorithm == 8u);
  stand_in::proposals = {{7, kUnsupported, 1}};
  BOOST_TEST(throws_with([] { NewProduct(4).run(); }, "cuBLASLt has no algorithm for (8, 16) x (16, 4) of bf16"));
}

BOOST_AUTO_TEST_CASE(nothing_is_created_or_queried_inside_a_capture) {
  stand_in::proposals = {{1, kSuccess, 1}};
  NewProduct product(5);
  BOOST_TEST(throws_with([&] { Graph(kGpu, [&] { product.run(); }); },
                         "the product (8, 16) x (16, 5) of bf16 is new while a graph is captured"));
  for (const char* call : {"cublasLtCreate", "cublasLtMatmulAlgoGetHeuristic", "cudaMalloc"})
    BOOST_TEST(stand_in::trace.count(call) == 0, call);
  product.run();
  stand_in::trace = {};
  Graph(kGpu, [&] { product.run(); }).replay();
  BOOST_TEST(stand_in::trace.products.size() == 1u);
  BOOST_TEST(stand_in::trace.count("cublasLtMatmulAlgoGetHeuristic") == 0);
}

BOOST_AUTO_TEST_CASE(algorithms_are_measured_once_and_kept) {
  const TempFolder folder;
  const std::string path = folder / "matmul.json";
  stand_in::proposals = {{1, kSuccess, 3}, {2, kUnsupported, 0.1}, {3, kSuccess, 1}, {4, kSuccess, 2}};
  {
    const WithFile file(path);
    NewProduct product(6);
    product.run();
    BOOST_TEST(stand_in::trace.products.size() ==
               3u * 6 + 1);  // a first run and five timed ones of each, and the product
    BOOST_TEST(stand_in::trace.products.back().algorithm == 3u);
    BOOST_TEST((stand_in::trace.products.back().d == product.y.raw()));
    stand_in::trace = {};
    product.run(true);  // another product: its result is an operand, and must not be overwritten by the measurement
    for (size_t i = 0; i + 1 < stand_in::trace.products.size(); ++i)
      BOOST_TEST(
          (stand_in::trace.products[i].d != product.y.raw() && stand_in::trace.products[i].c == product.y.raw()));
    BOOST_TEST((stand_in::trace.products.back().d == product.y.raw()));
    NewProduct captured(7);
    BOOST_TEST(throws_with([&] { Graph(kGpu, [&] { captured.run(); }); }, "is new while a graph is captured"));
    BOOST_TEST(stand_in::trace.products.empty());
  }
  // A copy of the file under another name is what the next process finds.
  const std::string copy = folder.write("copy.json", folder.read("matmul.json"));
  const WithFile file(copy);
  std::async(std::launch::async,
             [&] {  // on the other GPU, which has made no choice yet
               const Device other{Device::Kind::cuda, 1};
               const auto run = [&](int64_t size) {
                 Tensor x = empty({size, 16}, DType::bf16, other), z = empty({16, 8}, DType::bf16, other),
                        y = empty({size, 8}, DType::bf16, other);
                 stand_in::trace = {};
                 backend(other).matmul.product(x, z, false, y);
               };
               run(6);
               BOOST_TEST(stand_in::trace.products.size() == 1u);
               BOOST_TEST(stand_in::trace.products.back().algorithm == 3u);
               BOOST_TEST(stand_in::trace.count("cublasLtMatmulAlgoGetHeuristic") == 0);
               run(9);  // not in the file: the first proposal, and the file stays as it is
               BOOST_TEST(stand_in::trace.products.size() == 1u);
               BOOST_TEST(stand_in::trace.products.back().algorithm == 1u);
             })
      .get();
  BOOST_TEST(folder.read("copy.json") == folder.read("matmul.json"));
}

BOOST_AUTO_TEST_CASE(a_kept_algorithm_that_the_library_rejects_is_an_error) {
  const TempFolder folder;
  const std::string path = folder / "matmul.json";
  stand_in::proposals = {{1, kSuccess, 3}, {3, kSuccess, 1}};
  {
    const WithFile file(path);
    NewProduct(10).run();
  }
  folder.write("copy.json", folder.read("matmul.json"));
  stand_in::proposals = {{1, kSuccess, 3}, {3, kUnsupported, 1}};
  const WithFile file(folder / "copy.json");
  std::async(std::launch::async, [&] {
    const Device other{Device::Kind::cuda, 1};
    Tensor x = empty({10, 16}, DType::bf16, other), z = empty({16, 8}, DType::bf16, other),
           y = empty({10, 8}, DType::bf16, other);
    BOOST_TEST(throws_with([&] { backend(other).matmul.product(x, z, false, y); },
                           "copy.json: cuBLASLt rejects the algorithm for (8, 16) x (16, 10) of bf16"));
  }).get();
}

BOOST_AUTO_TEST_CASE(launches_are_timed_by_name) {
  static const int kernel = 0;
  stand_in::proposals = {{1, kSuccess, 2}};
  NewProduct product(11);
  product.run();
  const std::vector<LaunchTime> times = backend(kGpu).stream.launch_times([&] {
    cuda::launch_function(&kernel, {}, nullptr);
    product.run();
    cuda::launch_function(&kernel, {}, nullptr);
  });
  BOOST_REQUIRE(times.size() == 2u);
  BOOST_TEST(times[0].name == "mix<16>");
  BOOST_TEST(times[0].launches == 2);
  BOOST_TEST(times[0].milliseconds == 1);
  BOOST_TEST(times[1].name == "product (8, 16) x (16, 11) of bf16, 1 times");
  BOOST_TEST(times[1].milliseconds == 2);
}

BOOST_AUTO_TEST_SUITE_END()
