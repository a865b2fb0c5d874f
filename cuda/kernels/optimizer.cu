// Optimizer updates, in place, one pass over memory, many tensors per launch, by the formulas of
// tensor/kernels/update_rules.h; sums of squares for clipping.
#include "braid/cuda/device/kernel.h"
#include "braid/cuda/device/multi_tensor.cuh"
#include "braid/cuda/device/reduce.cuh"
#include "braid/cuda/device/vector_io.cuh"
#include "braid/tensor/kernels/update_rules.h"

namespace braid::cuda {

namespace {

constexpr int kThreads = 256;

template <UpdateRule rule, class T>
struct UpdateBatch {
  using A = Accumulate<T>;
  static constexpr int states = Update<rule, A>::states;
  TensorChunks chunks;
  T* parameter[kMaxTensors];
  const T* gradient[kMaxTensors];
  A* state[states > 0 ? states : 1][kMaxTensors];
  A decay[kMaxTensors];

  static const Tensor& tensor(const UpdateStep::Item& item) { return item.parameter; }
  void set(int k, UpdateStep::Item item) {
    parameter[k] = item.parameter.mutable_data<T>();
    gradient[k] = item.gradient.data<T>();
    for (int s = 0; s < states; ++s) state[s][k] = item.state[static_cast<size_t>(s)].mutable_data<A>();
    decay[k] = A(item.weight_decay);
  }
};
template <UpdateRule rule>
struct BatchesOf {
  template <class T>
  using Batch = UpdateBatch<rule, T>;
};

template <UpdateRule rule, class T>
__global__ void __launch_bounds__(kThreads)
    update_kernel(const UpdateBatch<rule, T> batch, Update<rule, Accumulate<T>> update, const double* scalars) {
  using A = Accumulate<T>;
  constexpr int W = kVectorWidth<T>, states = Update<rule, A>::states;
  const TensorChunk chunk = batch.chunks.of(blockIdx.x);
  const int k = chunk.tensor;
  const StepScalars<A> now{A(scalars[0]), A(scalars[1]), A(scalars[2]), A(scalars[3])};
  for (int64_t i = chunk.begin + W * int64_t{threadIdx.x}; i < chunk.end; i += W * kThreads) {
    Pack<T> x = load_pack<W>(batch.parameter[k], i, chunk.end),
            gradient = load_pack<W>(batch.gradient[k], i, chunk.end);
    Pack<A, W> state[states > 0 ? states : 1];
#pragma unroll
    for (int s = 0; s < states; ++s) state[s] = load_pack<W>(batch.state[s][k], i, chunk.end);
#pragma unroll
    for (int j = 0; j < W; ++j) {
      A element[states > 0 ? states : 1];
#pragma unroll
      for (int s = 0; s < states; ++s) element[s] = state[s][j];
      x[j] = T(update(A(x[j]), A(gradient[j]), element, batch.decay[k], now));
#pragma unroll
      for (int s = 0; s < states; ++s) state[s][j] = element[s];
    }
    store_pack(batch.parameter[k], i, chunk.end, x);
#pragma unroll
    for (int s = 0; s < states; ++s) store_pack(batch.state[s][k], i, chunk.end, state[s]);
  }
}

// The sum of the squares of each tensor of a list, in f64: every block adds up a chunk of one tensor, then a block for
// each tensor adds its chunks' sums. Which thread adds what depends on the sizes only, so the bits do too.

constexpr int kLastThreads = 1024;

struct Item {
  Tensor x;
  int64_t place;  // of its sum
};

template <class T>
struct SquaresBatch {
  TensorChunks chunks;
  const T* x[kMaxTensors];
  int64_t place[kMaxTensors];

  static const Tensor& tensor(const Item& item) { return item.x; }
  void set(int k, const Item& item) {
    x[k] = item.x.data<T>();
    place[k] = item.place;
  }
};

template <class T>
__global__ void __launch_bounds__(kThreads) square_chunks_kernel(const SquaresBatch<T> batch, double* parts) {
  constexpr int W = kVectorWidth<T>;
  const TensorChunk chunk = batch.chunks.of(blockIdx.x);
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

void update(UpdateRule rule, const UpdateStep& step) {
  visit(rule, [&]<UpdateRule r>() {
    in_batches<BatchesOf<r>::template Batch>(step.items, [&]<class T>(const UpdateBatch<r, T>& batch) {
      const Update<r, Accumulate<T>> update(step.constants);
      launch(update_kernel<r, T>, {.grid = batch.chunks.blocks(), .block = kThreads}, batch, update,
             step.scalars.data<double>());
    });
  });
}

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

}  // namespace

constinit const OptimizerKernels optimizer_kernels{
    .update = update,
    .sum_of_squares = sum_of_squares,
};

}  // namespace braid::cuda
