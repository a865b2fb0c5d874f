#include "braid/cuda/runtime/runtime.h"

#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>

#include "braid/cuda/runtime/allocator.h"
#include "braid/cuda/runtime/check.h"
#include "braid/cuda/runtime/graph.h"
#include "braid/cuda/runtime/launch.h"
#include "braid/cuda/runtime/launch_times.h"
#include "braid/cuda/runtime/messages.h"
#include "braid/tensor/kernels/backend.h"

namespace braid {

namespace cuda {

namespace {

constexpr int kMaxDevices = 64;

struct Gpu {
  std::once_flag once;
  Properties properties;
  StreamHandle stream = nullptr;  // never destroyed: tensors with static lifetime may still be waiting for it
};
std::array<Gpu, kMaxDevices> gpus;
thread_local int current = -1;

Properties query_properties(int index) {
  cudaDeviceProp p;
  check(cudaGetDeviceProperties(&p, index));
  return {.name = p.name,
          .major = p.major,
          .minor = p.minor,
          .multiprocessors = p.multiProcessorCount,
          .memory = static_cast<int64_t>(p.totalGlobalMem),
          .shared_bytes = static_cast<int64_t>(p.sharedMemPerBlockOptin)};
}

std::string capability(const Properties& p) { return str(p.major, ".", p.minor); }

Gpu& gpu(int index) {
  Gpu& c = gpus[static_cast<size_t>(index)];
  std::call_once(c.once, [&] {
    c.properties = query_properties(index);
    check(cudaStreamCreateWithFlags(&c.stream, cudaStreamNonBlocking));
    // Profilers then show the names of the kernels; without a profiler the calls do nothing.
    detail::set_kernel_observer({[](const char* kernel) { nvtxRangePushA(kernel); }, [] { nvtxRangePop(); }});
  });
  return c;
}

std::string text_of(cudaError_t status) { return str(cudaGetErrorString(status), " (", cudaGetErrorName(status), ")"); }

std::string place(const std::source_location& where) {
  std::string file = where.file_name();
  if (size_t at = file.rfind("cuda/"); at != std::string::npos) file = file.substr(at);
  return str(" in ", file, ":", where.line());
}

// A GPU that is busy, lost or broken: no fault of the program.
bool is_of_machine(cudaError_t status) {
  return status == cudaErrorDevicesUnavailable || status == cudaErrorSystemNotReady ||
         status == cudaErrorSystemDriverMismatch || status == cudaErrorECCUncorrectable ||
         status == cudaErrorNvlinkUncorrectable;
}

}  // namespace

void check(cudaError_t status, const std::source_location& where) {
  if (status == cudaSuccess) [[likely]]
    return;
  cudaGetLastError();  // clears errors that can be recovered from
  const std::string what = text_of(status);
  if (status == cudaErrorMemoryAllocation) throw OutOfMemory(op_name() + "CUDA: " + what + place(where));
  if (is_of_machine(status)) {
    int driver = 0;
    cudaDriverGetVersion(&driver);
    throw Error(ErrorKind::setting, driver_failure(what, driver, CUDART_VERSION, false));
  }
  if (status == cudaErrorNoKernelImageForDevice) {
    const Properties& p = properties();
    throw Error(ErrorKind::misuse,
                str(op_name(), "CUDA: ", what, "; this build has no code for a GPU of compute capability ",
                    capability(p), ": configure with -DBRAID_CUDA_ARCHITECTURES=", p.major, p.minor));
  }
  throw Error(ErrorKind::misuse, failed(what + place(where)));
}

void check(cublasStatus_t status, const std::source_location& where) {
  if (status == CUBLAS_STATUS_SUCCESS) [[likely]]
    return;
  failed_call(str("cuBLAS: ", cublasLtGetStatusString(status)), where);
}

void failed_call(const std::string& what, const std::source_location& where) {
  throw Error(ErrorKind::misuse, op_name() + what + place(where));
}

Gpus find_gpus() {
  int count = 0, driver = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess) return {.count = std::min(count, kMaxDevices)};
  cudaGetLastError();
  // CUDA reports a driver that is not installed as one that is too old, of version 0.
  if (status == cudaErrorNoDevice || cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) return {};
  return {.failure = driver_failure(text_of(status), driver, CUDART_VERSION, status == cudaErrorInsufficientDriver)};
}

static const Gpus& found_gpus() {
  static const Gpus found = find_gpus();
  return found;
}

int device_count() {
  const Gpus& found = found_gpus();
  braid::check(found.failure.empty(), ErrorKind::setting, [&] { return found.failure; });
  return found.count;
}

std::string unsupported_reason(int index) {
  if (const Gpus& found = found_gpus(); !found.failure.empty()) return found.failure;
  if (index < 0 || index >= device_count()) return unsupported_reason(index, device_count(), nullptr);
  const Properties p = query_properties(index);
  return unsupported_reason(index, device_count(), &p);
}

void use_device(int index) {
  int of_thread = -1;  // another library may have changed it
  if (index == current && cudaGetDevice(&of_thread) == cudaSuccess && of_thread == index) [[likely]]
    return;
  const std::string reason = unsupported_reason(index);
  braid::check(reason.empty(), ErrorKind::setting, [&] { return reason; });
  check(cudaSetDevice(index));
  current = index;
}

int current_device() { return current < 0 ? 0 : current; }
StreamHandle current_stream() { return gpu(current_device()).stream; }
const Properties& properties() { return gpu(current_device()).properties; }
void synchronize() { check(cudaStreamSynchronize(current_stream())); }

// A thread that has not chosen a GPU yet works on GPU 0, as current_device() says: there it returns to.
DeviceGuard::DeviceGuard(int index) : before_(current_device()) { use_device(index); }
DeviceGuard::~DeviceGuard() {
  if (before_ == current) return;
  cudaSetDevice(before_);
  current = before_;
}

// From and to pageable memory the driver stages small copies itself; waiting makes both directions safe.
void copy_to_device(void* to, const void* from, int64_t bytes) {
  check(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyHostToDevice, current_stream()));
  synchronize();
}
void copy_to_host(void* to, const void* from, int64_t bytes) {
  check(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToHost, current_stream()));
  synchronize();
}

// Calls use() again without what the allocator keeps, where it finds no memory: the driver loads the code of a kernel
// at its first use.
template <class Use>
static cudaError_t with_memory(Use&& use) {
  const cudaError_t status = use();
  if (status != cudaErrorMemoryAllocation || capturing()) return status;
  cudaGetLastError();
  caching_allocator().release_cached();
  return use();
}

// More dynamic shared memory than the default maximum must be requested, once for a kernel and GPU. Kernels that need
// so much are designed for two blocks on a multiprocessor, so its memory is shared memory first and L1 cache with the
// rest.
static void allow_shared_memory(const void* function, size_t bytes) {
  constexpr size_t kDefault = 48 * 1024;
  static std::mutex mutex;
  static auto* allowed = new std::map<std::pair<int, const void*>, size_t>;
  if (bytes <= kDefault) return;
  std::lock_guard lock(mutex);
  size_t& maximum = (*allowed)[{current_device(), function}];
  if (bytes <= maximum) return;
  check(with_memory([&] {
    return cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  }));
  check(cudaFuncSetAttribute(function, cudaFuncAttributePreferredSharedMemoryCarveout,
                             static_cast<int>(cudaSharedmemCarveoutMaxShared)));
  maximum = bytes;
}

void launch_function(const void* function, const Launch& shape, void** arguments) {
  allow_shared_memory(function, shape.shared_bytes);
  const LaunchTimer timer(function);
  const cudaError_t status = with_memory(
      [&] { return cudaLaunchKernel(function, shape.grid, shape.block, arguments, shape.shared_bytes, shape.stream); });
  if (status == cudaErrorInvalidValue || status == cudaErrorInvalidConfiguration) {
    cudaGetLastError();
    const auto text = [](const dim3& d) { return str(d.x, " x ", d.y, " x ", d.z); };
    throw Error(ErrorKind::misuse,
                str(op_name(), "a launch of ", text(shape.grid), " blocks of ", text(shape.block), " threads with ",
                    shape.shared_bytes, " bytes of shared memory is not possible on ", properties().name));
  }
  check(status);
}

}  // namespace cuda

int cuda_device_count() { return cuda::device_count(); }
std::string cuda_unsupported_reason(int index) { return cuda::unsupported_reason(index); }

}  // namespace braid
