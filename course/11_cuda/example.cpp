// Eight threads in two blocks: which is which, what they share, and what happens without a barrier.
#include <cstdio>
#include <exception>

#include "course/11_cuda/gpu.h"
using namespace course;

__global__ static void who(Global y) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  y[i] = 10.0f * static_cast<float>(blockIdx.x) + static_cast<float>(threadIdx.x);
}

// The elements of each block of four in reverse order: what a thread writes, another one reads.
template <bool with_barrier>
__global__ void reversed(Global x, Global y) {
  struct Memory {
    Shared<4> part;
  };
  Memory& memory = cuda::shared<Memory>();
  const int first = 4 * static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  memory.part[thread] = x[first + thread];
  if (with_barrier) __syncthreads();
  y[first + thread] = memory.part[3 - thread];
}

static void show(const char* name, const Array& y) {
  std::printf("%-9s", name);
  for (size_t i = 0; i < 8; ++i) std::printf(" %2g", y[i]);
  std::printf("\n");
}

int main() {
  Array numbers("numbers", 8), y("y", 8);
  cuda::launch(who, {.grid = 2, .block = 4}, Global(numbers));
  show("who", numbers);
  cuda::launch(reversed<true>, {.grid = 2, .block = 4}, Global(numbers), Global(y));
  show("reversed", y);
  std::printf("reads %ld, writes %ld\n", static_cast<long>(numbers.counters().reads),
              static_cast<long>(y.counters().writes));
  for (const auto order : {braid::emulated::Order::forward, braid::emulated::Order::reverse}) {
    braid::emulated::set_order(order);
    try {
      cuda::launch(reversed<false>, {.grid = 2, .block = 4}, Global(numbers), Global(y));
    } catch (const std::exception& fault) {
      std::printf("%s\n", fault.what());
    }
  }
}
