// Runs CUDA kernels on the CPU: a kernel file compiled as C++ gets these definitions instead of nvcc's. README.md of
// tests/cuda says what this proves and what not.
#pragma once
#include <tuple>
#include <type_traits>
#include <utility>

#include "tests/cuda/emulation/builtins.h"
#include "tests/cuda/emulation/instructions.h"

namespace braid::cuda {

template <class... P, class... A>
void launch(void (*kernel)(P...), const Launch& shape, A&&... arguments) {
  static_assert(sizeof...(P) == sizeof...(A), "launch: one argument for each parameter of the kernel");
  static_assert(argument_bytes<P...> <= kMaxArgumentBytes, "launch: the arguments of the kernel exceed 4 KiB");
  // Each thread gets its own copies of the arguments.
  emulated::Body thread = [kernel, values = std::tuple<P...>(std::forward<A>(arguments)...)] {
    std::apply(kernel, values);
  };
  emulated::submit([kernel, shape, thread = std::move(thread)] {
    emulated::run(reinterpret_cast<const void*>(kernel), shape, thread);
  });
}

template <class T>
T* dynamic_shared() {
  return static_cast<T*>(emulated::dynamic_shared());
}

template <class T>
T& shared() {
  static_assert(std::is_class_v<T>, "shared<T>(): T is a struct of the function that uses it");
  static const char key{};
  return *static_cast<T*>(emulated::static_shared(&key, sizeof(T)));
}

}  // namespace braid::cuda
