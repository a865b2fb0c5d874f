// Kernel: one entry of a device's table, a function pointer with a name.
//
// Contract of every kernel, in all headers of this folder: inputs are read; outputs are already allocated with their
// shape and are filled. A kernel allocates no result, checks no mistakes of users (the op above does, once) and records
// no history. Unless a line says otherwise, all tensors of a call have one dtype and outputs are contiguous. Arithmetic
// and accumulation are f32 for f32, bf16 and f16, and f64 for f64. Results have the same bits at any thread count.
#pragma once
#include <cstddef>

#include "braid/tensor/scoped_value.h"
#include "braid/tensor/tensor.h"

namespace braid {

using In = const Tensor&;
using Out = Tensor&;

namespace detail {

template <size_t N>
struct Name {
  char text[N];
  constexpr Name(const char (&s)[N]) {
    for (size_t i = 0; i < N; ++i) text[i] = s[i];
  }
};
[[noreturn]] void no_such_kernel(const char* kernel, const char* device);

// The innermost kernel that this thread executes, for the error messages of a device; nullptr outside of kernels.
const char* running_kernel();

// Called around every kernel from now on, for profilers. Returns the one before.
struct KernelObserver {
  void (*enter)(const char* kernel) = nullptr;
  void (*leave)() = nullptr;
};
KernelObserver set_kernel_observer(KernelObserver observer);
class [[nodiscard]] ObserveKernels {  // while it lives
 public:
  explicit ObserveKernels(KernelObserver observer) : before_(set_kernel_observer(observer)) {}
  ~ObserveKernels() { set_kernel_observer(before_); }
  ObserveKernels(const ObserveKernels&) = delete;
  ObserveKernels& operator=(const ObserveKernels&) = delete;

 private:
  KernelObserver before_;
};

// Marks a kernel as running in this thread and calls the observer, at the beginning and at the end of its lifetime.
class KernelScope {
 public:
  explicit KernelScope(const char* kernel);
  ~KernelScope();

 private:
  ScopedValue<const char*> running_;
  ScopedValue<bool> recording_;  // off: a kernel may take raw views of inputs that require a gradient
};

}  // namespace detail

// A call throws "[softmax] no such kernel on this device" where the device has none.
template <class Signature>
struct KernelOf;
template <class R, class... Args>
struct KernelOf<R(Args...)> {
  template <detail::Name N>
  class Named {
   public:
    constexpr Named() = default;
    constexpr Named(R (*function)(Args...)) : function_(function) {}
    R operator()(Args... args) const {
      if (!function_) [[unlikely]]
        detail::no_such_kernel(N.text, "this device");
      const detail::KernelScope running(N.text);
      return function_(args...);
    }
    explicit constexpr operator bool() const { return function_ != nullptr; }
    static constexpr const char* name() { return N.text; }

   private:
    R (*function_)(Args...) = nullptr;
  };
};

// Kernel<"softmax", void(In x, Out y)> forward;
template <detail::Name N, class Signature>
using Kernel = typename KernelOf<Signature>::template Named<N>;

}  // namespace braid
