// Errors of failed CUDA calls, and owners of C handles. For .cpp files of cuda/ only: it includes CUDA headers.
#pragma once
#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <source_location>
#include <string>
#include <utility>

namespace braid::cuda {

// Throws Error(misuse) "[softmax] CUDA: an illegal memory access was encountered (cudaErrorIllegalAddress) in ...".
// The name is that of the running kernel (detail::running_kernel). Error(setting) where a GPU is busy, lost or broken,
// OutOfMemory where it has no memory.
void check(cudaError_t status, const std::source_location& where = std::source_location::current());
void check(cublasStatus_t status, const std::source_location& where = std::source_location::current());
// Throws "[softmax] what in cuda/...:line", for other libraries.
[[noreturn]] void failed_call(const std::string& what, const std::source_location& where);

// Owns a C handle: destroy(handle) at the end, ignoring its result.
template <class T, auto destroy>
class Handle {
 public:
  Handle() = default;
  explicit Handle(T handle) : handle_(handle) {}
  Handle(Handle&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Handle() {
    if (handle_) destroy(handle_);
  }
  T get() const { return handle_; }

 private:
  T handle_ = nullptr;
};

using Event = Handle<cudaEvent_t, cudaEventDestroy>;

// Makes a GPU the current one, and restores the previous one at the end.
class DeviceGuard {
 public:
  explicit DeviceGuard(int index);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;

 private:
  int before_;
};

}  // namespace braid::cuda
