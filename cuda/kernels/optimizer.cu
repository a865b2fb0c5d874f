// Optimizer updates, in place, one pass over memory, many tensors per launch; sums of squares for clipping. g is the
// gradient times grad_scale, t the number of the update from 1.
//
//   AdamW:  m = b1 m + (1-b1) g,   v = b2 v + (1-b2) g^2,   p -= lr (mh / (sqrt(vh) + eps) + wd p)
//           with mh = m / (1 - b1^t), vh = v / (1 - b2^t).   Adam: g += wd p first, and no wd in the update.
//   SGD:    g += wd p,   u = f u + g (u starts as zeros),   p -= lr u
#include <cmath>

#include "braid/cuda/device/kernel.h"
#include "braid/cuda/device/multi_tensor.cuh"
#include "braid/cuda/device/reduce.cuh"
#include "braid/cuda/device/vector_io.cuh"
#include "braid/tensor/kernels/optimizer.h"

namespace braid::cuda {

namespace {

constexpr int kThreads = 256;

__device__ StepScalars read(const double* scalars) { return {scalars[0], scalars[1], scalars[2], scalars[3]}; }

template <class T>
struct AdamWBatch {
  using A = Accumulate<T>;
  TensorChunks chunks;
  T* parameter[kMaxTensors];
  const T* gradient[kMaxTensors];
  A *first[kMaxTensors], *second[kMaxTensors];
  A decay[kMaxTensors];

  static const Tensor& tensor(const AdamWStep::Item& item) { return item.parameter; }
  void set(int k, AdamWStep::Item item) {
    parameter[k] = item.parameter.mutable_data<T>();
    gradient[k] = item.gradient.data<T>();
    first[k] = item.first.mutable_data<A>();
    second[k] = item.second.mutable_data<A>();
    decay[k] = A(item.weight_decay);
  }
};

template <class A>
struct AdamW {
  A b1, b2, c1, c2, eps;
  bool coupled;
};

template <class T>
__global__ void __launch_bounds__(kThreads)
    adamw_kernel(const AdamWBatch<T> batch, AdamW<Accumulate<T>> f, const double* scalars) {
  using A = Accumulate<T>;
  constexpr int W = kVectorWidth<T>;
  const TensorChunk chunk = batch.chunks.of(blockIdx.x);
  const int k = chunk.tensor;
  T* p = batch.parameter[k];
  const T* g = batch.gradient[k];
  A *m = batch.first[k], *v = batch.second[k];
  const A coupled = f.coupled ? batch.decay[k] : A(0), decay = f.coupled ? A(0) : batch.decay[k];
  const StepScalars now = read(scalars);
  const A lr = A(now.lr), scale = A(now.grad_scale), m_scale = A(now.first_scale), v_scale = A(now.second_scale);
  for (int64_t i = chunk.begin + W * int64_t{threadIdx.x}; i < chunk.end; i += W * kThreads) {
    Pack<T> parameter = load_pack<W>(p, i, chunk.end), gradient = load_pack<W>(g, i, chunk.end);
    Pack<A, W> first = load_pack<W>(m, i, chunk.end), second = load_pack<W>(v, i, chunk.end);
#pragma unroll
    for (int j = 0; j < W; ++j) {
      A x = A(parameter[j]), slope = A(gradient[j]) * scale + coupled * x;
      first[j] = f.b1 * first[j] + f.c1 * slope;
      second[j] = f.b2 * second[j] + f.c2 * slope * slope;
      A update = first[j] * m_scale / (std::sqrt(second[j] * v_scale) + f.eps) + decay * x;
      parameter[j] = T(x - lr * update);
    }
    store_pack(p, i, chunk.end, parameter);
    store_pack(m, i, chunk.end, first);
    store_pack(v, i, chunk.end, second);
  }
}

template <class T>
struct SgdBatch {
  using A = Accumulate<T>;
  TensorChunks chunks;
  T* parameter[kMaxTensors];
  const T* gradient[kMaxTensors];
  A* momentum[kMaxTensors];  // null for plain descent
  A decay[kMaxTensors];

  static const Tensor& tensor(const SgdStep::Item& item) { return item.parameter; }
  void set(int k, SgdStep::Item item) {
    parameter[k] = item.parameter.mutable_data<T>();
    gradient[k] = item.gradient.data<T>();
    momentum[k] = item.momentum ? item.momentum.mutable_data<A>() : nullptr;
    decay[k] = A(item.weight_decay);
  }
};

template <class T>
__global__ void __launch_bounds__(kThreads)
    sgd_kernel(const SgdBatch<T> batch, Accumulate<T> keep, const double* scalars) {
  using A = Accumulate<T>;
  constexpr int W = kVectorWidth<T>;
  const TensorChunk chunk = batch.chunks.of(blockIdx.x);
  const int k = chunk.tensor;
  T* p = batch.parameter[k];
  const T* g = batch.gradient[k];
  A* momentum = batch.momentum[k];
  const A decay = batch.decay[k];
  const StepScalars now = read(scalars);
  const A lr = A(now.lr), scale = A(now.grad_scale);
  for (int64_t i = chunk.begin + W * int64_t{threadIdx.x}; i < chunk.end; i += W * kThreads) {
    Pack<T> parameter = load_pack<W>(p, i, chunk.end), gradient = load_pack<W>(g, i, chunk.end);
    Pack<A, W> u = load_pack<W>(momentum, i, momentum ? chunk.end : 0);
#pragma unroll
    for (int j = 0; j < W; ++j) {
      A x = A(parameter[j]);
      u[j] = keep * u[j] + (A(gradient[j]) * scale + decay * x);
      parameter[j] = T(x - lr * u[j]);
    }
    store_pack(p, i, chunk.end, parameter);
    store_pack(momentum, i, momentum ? chunk.end : 0, u);
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

void adamw(const AdamWStep& s) {
  in_batches<AdamWBatch>(s.items, [&]<class T>(const AdamWBatch<T>& batch) {
    using A = Accumulate<T>;
    const AdamW<A> f{A(s.beta1), A(s.beta2), A(1 - s.beta1), A(1 - s.beta2), A(s.eps), s.coupled_decay};
    launch(adamw_kernel<T>, {.grid = batch.chunks.blocks(), .block = kThreads}, batch, f, s.scalars.data<double>());
  });
}

void sgd(const SgdStep& s) {
  in_batches<SgdBatch>(s.items, [&]<class T>(const SgdBatch<T>& batch) {
    launch(sgd_kernel<T>, {.grid = batch.chunks.blocks(), .block = kThreads}, batch, Accumulate<T>(s.momentum_factor),
           s.scalars.data<double>());
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
    .adamw = adamw,
    .sgd = sgd,
    .sum_of_squares = sum_of_squares,
};

}  // namespace braid::cuda
