// The sum of the squares of each tensor of a list, in f64: every block adds up a chunk of one tensor, then a block for
// each tensor adds its chunks' sums. Which thread adds what depends on the sizes only, so the bits do too.
#include "braid/cuda/device/multi_tensor.cuh"
#include "braid/cuda/device/reduce.cuh"
#include "braid/cuda/device/vector_io.cuh"
#include "braid/cuda/runtime/kernel.h"
#include "braid/tensor/kernels/backend.h"

namespace braid::cuda {

namespace {

constexpr int kThreads = 256, kLastThreads = 1024;

struct Item {
  Tensor x;
  int64_t place;  // of its sum
};

template <class T>
struct SquaresBatch {
  Chunks chunks;
  const T* x[kMostTensors];
  int64_t place[kMostTensors];

  static const Tensor& tensor(const Item& item) { return item.x; }
  void set(int k, const Item& item) {
    x[k] = item.x.data<T>();
    place[k] = item.place;
  }
};

template <class T>
__global__ void __launch_bounds__(kThreads) square_chunks_kernel(const SquaresBatch<T> batch, double* parts) {
  constexpr int W = kWidth<T>;
  const Chunks::Chunk chunk = batch.chunks.of(blockIdx.x);
  const T* x = batch.x[chunk.tensor];
  double sum = 0;
  for (int64_t i = chunk.begin + W * int64_t{threadIdx.x}; i < chunk.end; i += W * kThreads) {
    const Pack<T> pack = load_pack<W>(x, i, chunk.end);
#pragma unroll
    for (int j = 0; j < W; ++j) {
      const auto value = static_cast<double>(static_cast<Accumulate<T>>(pack[j]));
      sum += value * value;
    }
  }
  sum = block_sum<kThreads>(sum);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

template <class T>
__global__ void __launch_bounds__(kLastThreads)
    sum_chunks_kernel(const SquaresBatch<T> batch, const double* parts, double* y) {
  const unsigned k = blockIdx.x;
  double sum = 0;
  for (unsigned i = batch.chunks.first[k] + threadIdx.x; i < batch.chunks.first[k + 1]; i += kLastThreads) {
    sum += parts[i];
  }
  sum = block_sum<kLastThreads>(sum);
  if (threadIdx.x == 0) y[batch.place[k]] = sum;
}

}  // namespace

void sum_of_squares(const std::vector<Tensor>& x, Out y) {
  std::vector<Item> items;
  for (const Tensor& t : x) items.push_back({t, static_cast<int64_t>(items.size())});
  y.fill(0);  // where there are no elements
  in_batches<SquaresBatch>(items, [&]<class T>(const SquaresBatch<T>& batch) {
    Tensor parts = empty({batch.chunks.blocks()}, DType::f64, y.device());
    launch(square_chunks_kernel<T>, {.grid = batch.chunks.blocks(), .block = kThreads}, batch,
           parts.mutable_data<double>());
    launch(sum_chunks_kernel<T>, {.grid = static_cast<unsigned>(batch.chunks.count), .block = kLastThreads}, batch,
           parts.data<double>(), y.mutable_data<double>());
  });
}

}  // namespace braid::cuda
