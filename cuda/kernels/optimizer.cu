// Optimizer updates, in place, one pass over memory, many tensors per launch, by the formulas of
// tensor/kernels/update_rules.h; sums of squares for clipping. With a copy in 16 bits AdamW moves 28 bytes per f32
// parameter: gradient 2, parameter 8, moments 16, copy 2.
#include "braid/cuda/device/kernel.h"
#include "braid/cuda/device/multi_tensor.cuh"
#include "braid/cuda/device/reduce.cuh"
#include "braid/cuda/device/vector_io.cuh"
#include "braid/tensor/kernels/update_rules.h"

namespace braid::cuda {

namespace {

constexpr int kThreads = 256;

// Parameters of type T; C is the type of their copies, or T where there are none.
template <UpdateRule rule, class T, class C = T>
struct UpdateBatch {
  using A = Accumulate<T>;
  static constexpr int states = Update<rule, A>::states;
  static constexpr bool copies = !std::is_same_v<T, C>;
  TensorChunks chunks;
  uint64_t narrow = 0;  // bit k: gradient k has type C
  T* parameter[kMaxTensors];
  const void* gradient[kMaxTensors];
  A* state[states > 0 ? states : 1][kMaxTensors];
  A decay[kMaxTensors];
  C* copy[copies ? kMaxTensors : 1];
  static_assert(kMaxTensors <= 64);

  static const Tensor& tensor(const UpdateStep::Item& item) { return item.parameter; }
  void set(int k, UpdateStep::Item item) {
    const uint64_t bit = uint64_t{1} << k;
    narrow = item.gradient.dtype() == dtype_of<C>() ? narrow | bit : narrow & ~bit;
    parameter[k] = item.parameter.mutable_data<T>();
    gradient[k] = item.gradient.raw();
    for (int s = 0; s < states; ++s) state[s][k] = item.state[static_cast<size_t>(s)].mutable_data<A>();
    decay[k] = A(item.weight_decay);
    if constexpr (copies) copy[k] = item.copy.mutable_data<C>();
  }

  // --- device ---
  template <int W>
  __device__ Pack<A, W> gradients(int k, int64_t i, int64_t end) const {
    Pack<A, W> out;
    const auto load = [&]<class G>(const G* from) {
      const Pack<G, W> pack = load_pack<W>(from, i, end);
#pragma unroll
      for (int j = 0; j < W; ++j) out[j] = A(pack[j]);
    };
    if constexpr (copies) {
      narrow >> k & 1 ? load(static_cast<const C*>(gradient[k])) : load(static_cast<const T*>(gradient[k]));
    } else {
      load(static_cast<const T*>(gradient[k]));
    }
    return out;
  }
};
template <UpdateRule rule>
struct BatchesOf {
  template <class T>
  using Batch = UpdateBatch<rule, T>;
};

template <UpdateRule rule, class T, class C>
__global__ void __launch_bounds__(kThreads)
    update_kernel(const UpdateBatch<rule, T, C> batch, Update<rule, Accumulate<T>> update, const double* scalars) {
  using A = Accumulate<T>;
  constexpr int W = kVectorWidth<C>, states = Update<rule, A>::states;
  const TensorChunk chunk = batch.chunks.of(blockIdx.x);
  const int k = chunk.tensor;
  const StepScalars<A> now{A(scalars[0]), A(scalars[1]), A(scalars[2]), A(scalars[3])};
  for (int64_t i = chunk.begin + W * int64_t{threadIdx.x}; i < chunk.end; i += W * kThreads) {
    Pack<T, W> x = load_pack<W>(batch.parameter[k], i, chunk.end);
    const Pack<A, W> gradient = batch.template gradients<W>(k, i, chunk.end);
    Pack<A, W> state[states > 0 ? states : 1];
#pragma unroll
    for (int s = 0; s < states; ++s) state[s] = load_pack<W>(batch.state[s][k], i, chunk.end);
#pragma unroll
    for (int j = 0; j < W; ++j) {
      A element[states > 0 ? states : 1];
#pragma unroll
      for (int s = 0; s < states; ++s) element[s] = state[s][j];
      x[j] = T(update(A(x[j]), gradient[j], element, batch.decay[k], now));
#pragma unroll
      for (int s = 0; s < states; ++s) state[s][j] = element[s];
    }
    store_pack(batch.parameter[k], i, chunk.end, x);
#pragma unroll
    for (int s = 0; s < states; ++s) store_pack(batch.state[s][k], i, chunk.end, state[s]);
    if constexpr (batch.copies) {
      Pack<C, W> rounded;
#pragma unroll
      for (int j = 0; j < W; ++j) rounded[j] = C(x[j]);
      store_pack(batch.copy[k], i, chunk.end, rounded);
    }
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
  std::vector<UpdateStep::Item> plain, bf16_copies, f16_copies;
  for (const UpdateStep::Item& item : step.items)
    (!item.copy ? plain : item.copy.dtype() == DType::bf16 ? bf16_copies : f16_copies).push_back(item);
  visit(rule, [&]<UpdateRule r>() {
    const auto run = [&]<class T, class C>(const UpdateBatch<r, T, C>& batch) {
      const Update<r, Accumulate<T>> update(step.constants);
      launch(update_kernel<r, T, C>, {.grid = batch.chunks.blocks(), .block = kThreads}, batch, update,
             step.scalars.data<double>());
    };
    in_batches<BatchesOf<r>::template Batch>(plain, run);
    in_batches_of<UpdateBatch<r, float, bfloat16>>(DType::f32, bf16_copies, run);
    in_batches_of<UpdateBatch<r, float, float16>>(DType::f32, f16_copies, run);
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
