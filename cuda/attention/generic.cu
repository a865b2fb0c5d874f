// The row kernels of generic attention: a thread block computes four query rows of one sample and group, all heads, and
// walks along the unmasked keys of those rows.
//
//   softmax_lse               lse = log sum_j exp(Compose_pre(S))
//   scores_to_probabilities   P' = Compose_post(exp(Compose_pre(S) - lse))
//   softmax_backward          dP = Compose_post^T(dP'),  dS' = P (dP - sum_j P dP)
//   compose                   dS = Compose_pre^T(dS')
//
// Post-compose mixes probabilities of heads whose sums must all be known first, hence two kernels forward.
#include <algorithm>
#include <limits>

#include "braid/cuda/attention/compose.cuh"
#include "braid/cuda/device/reduce.cuh"
#include "braid/tensor/kernels/math.h"

namespace braid::cuda::attention::generic {

namespace {

template <class T>
__global__ void softmax_lse_rows(ScoreBlock block, SharedMemoryPlan layout, Terms<T> pre, const T* scores,
                                 Accumulate<T>* lse) {
  using A = Accumulate<T>;
  constexpr A kNothing = -std::numeric_limits<A>::infinity();
  const QueryTile<T> tile(block);
  const SharedMemory<A> at(layout);
  const int M = layout.heads, threads = layout.threads, thread = static_cast<int>(threadIdx.x);
  const int warp = thread / 32, warps = threads / 32, lane = thread % 32;
  Quad<A>*top = at.rows, *sum = at.rows + M;
  Quad<A>* mixed = pre.base ? at.column + M * threads : at.column;
  const Quad<A>* mixed_of_all = mixed - thread;

  tile.stage_queries(pre, at.queries);
  for (int m = thread; m < M; m += threads) {
    for (int i = 0; i < kRows; ++i) top[m].row[i] = kNothing, sum[m].row[i] = 0;
  }
  __syncthreads();
  for (int64_t start = tile.low; start < tile.high; start += threads) {
    const int64_t j = start + thread;
    for (int m = 0; m < M; ++m) at.column[m * threads] = tile.load(scores, m, j);
    compose_key<T>(
        tile, pre, j, at.queries, at.hidden, [&](int m) { return at.column[m * threads]; },
        [&](int n, Quad<A> x) {
#pragma unroll
          for (int i = 0; i < kRows; ++i) x.row[i] = tile.unmasked(i, j) ? x.row[i] : kNothing;
          mixed[n * threads] = x;
        });
    __syncthreads();
    for (int m = warp; m < M; m += warps) {
      const Quad<A> before = top[m];
      Quad<A> best = before, part{};
      for (int k = lane; k < threads; k += 32) {
        const Quad<A> x = mixed_of_all[m * threads + k];
#pragma unroll
        for (int i = 0; i < kRows; ++i) best.row[i] = larger(best.row[i], x.row[i]);
      }
#pragma unroll
      for (int i = 0; i < kRows; ++i) best.row[i] = warp_max(best.row[i]);
      for (int k = lane; k < threads; k += 32) {
        const Quad<A> x = mixed_of_all[m * threads + k];
#pragma unroll
        for (int i = 0; i < kRows; ++i)
          part.row[i] += best.row[i] == kNothing ? A(0) : math::exp(x.row[i] - best.row[i]);
      }
#pragma unroll
      for (int i = 0; i < kRows; ++i) part.row[i] = warp_sum(part.row[i]);
      __syncwarp();  // all lanes have read `before`
      if (lane == 0) {
        for (int i = 0; i < kRows; ++i) {
          const A kept = before.row[i] == kNothing ? A(0) : sum[m].row[i] * math::exp(before.row[i] - best.row[i]);
          sum[m].row[i] = kept + part.row[i];
        }
        top[m] = best;
      }
    }
    __syncthreads();
  }
  for (int k = thread; k < M * kRows; k += threads) {
    const int m = k % M, i = k / M;
    if (tile.row0 + i >= block.rows) continue;
    const A total = sum[m].row[i];
    const int64_t row = (block.b0 + tile.sample) * block.T + block.t0 + tile.row0 + i;
    lse[(row * block.G + tile.group) * M + m] = total == 0 ? -kNothing : top[m].row[i] + math::log(total);
  }
}

template <class T>
__global__ void probability_rows(ScoreBlock block, SharedMemoryPlan layout, Terms<T> pre, Terms<T> post,
                                 bool mixes_after, const T* scores, const Accumulate<T>* lse, T* weights) {
  using A = Accumulate<T>;
  const QueryTile<T> tile(block);
  const SharedMemory<A> at(layout);
  const int M = layout.heads, threads = layout.threads, thread = static_cast<int>(threadIdx.x);
  Quad<A>* post_queries = at.queries + pre.query_items() * M;
  Quad<A>* probability = pre.base ? at.column + M * threads : at.column;

  tile.stage_queries(pre, at.queries);
  tile.stage_queries(post, post_queries);
  for (int k = thread; k < M * kRows; k += threads) {
    const int m = k % M, i = k / M;
    const int64_t row = (block.b0 + tile.sample) * block.T + block.t0 + tile.row0 + i;
    at.rows[m].row[i] = tile.row0 + i < block.rows ? lse[(row * block.G + tile.group) * M + m] : A(0);
  }
  __syncthreads();
  for (int64_t j = thread; j < block.keys; j += threads) {
    if (j < tile.low || j >= tile.high) {
      for (int m = 0; m < M; ++m) tile.store(weights, m, j, {});
      continue;
    }
    for (int m = 0; m < M; ++m) at.column[m * threads] = tile.load(scores, m, j);
    compose_key<T>(
        tile, pre, j, at.queries, at.hidden, [&](int m) { return at.column[m * threads]; },
        [&](int n, Quad<A> x) {
          const Quad<A> l = at.rows[n];
#pragma unroll
          for (int i = 0; i < kRows; ++i) {
            x.row[i] = tile.unmasked(i, j) ? math::exp(x.row[i] - l.row[i]) : A(0);
          }
          if (mixes_after) {
            probability[n * threads] = x;
          } else {
            tile.store(weights, n, j, x);
          }
        });
    if (!mixes_after) continue;
    compose_key<T>(
        tile, post, j, post_queries, at.hidden, [&](int m) { return probability[m * threads]; },
        [&](int n, const Quad<A>& x) { tile.store(weights, n, j, x); });
  }
}

template <class T>
__global__ void softmax_backward_rows(ScoreBlock block, SharedMemoryPlan layout, Terms<T> post, const T* probabilities,
                                      T* d) {
  using A = Accumulate<T>;
  const QueryTile<T> tile(block);
  const SharedMemory<A> at(layout);
  const int M = layout.heads, threads = layout.threads, thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  Quad<A>* delta = at.column + M * threads;  // of this thread's keys
  const Quad<A>* delta_of_all = delta - thread;

  tile.stage_queries(post, at.queries);
  for (int m = 0; m < M; ++m) delta[m * threads] = {};
  __syncthreads();
  for (int64_t j = thread; j < block.keys; j += threads) {
    if (j < tile.low || j >= tile.high) continue;
    for (int m = 0; m < M; ++m) at.column[m * threads] = tile.load(d, m, j);
    compose_key<T>(
        tile, post, j, at.queries, at.hidden, [&](int m) { return at.column[m * threads]; },
        [&](int n, Quad<A> x) {
          Quad<A> p = tile.load(probabilities, n, j);
#pragma unroll
          for (int i = 0; i < kRows; ++i) {
            x.row[i] = tile.unmasked(i, j) ? static_cast<A>(static_cast<T>(x.row[i])) : A(0);  // as stored
          }
          tile.store(d, n, j, x);
          add_product(delta[n * threads], p, x);
        });
  }
  __syncthreads();
  for (int m = thread / 32; m < M; m += threads / 32) {
    Quad<A> sum{};
    for (int k = lane; k < threads; k += 32) {
      const Quad<A> x = delta_of_all[m * threads + k];
#pragma unroll
      for (int i = 0; i < kRows; ++i) sum.row[i] += x.row[i];
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) sum.row[i] = warp_sum(sum.row[i]);
    if (lane == 0) at.rows[m] = sum;
  }
  __syncthreads();
  // Each thread takes the same keys again, so it reads only values that it wrote.
  for (int64_t j = thread; j < block.keys; j += threads) {
    const bool any_row = j >= tile.low && j < tile.high;
    for (int m = 0; m < M; ++m) {
      Quad<A> x{};
      if (any_row) {
        const Quad<A> p = tile.load(probabilities, m, j), dp = tile.load(d, m, j), total = at.rows[m];
#pragma unroll
        for (int i = 0; i < kRows; ++i) x.row[i] = tile.unmasked(i, j) ? p.row[i] * (dp.row[i] - total.row[i]) : A(0);
      }
      tile.store(d, m, j, x);
    }
  }
}

template <class T>
__global__ void compose_rows(ScoreBlock block, SharedMemoryPlan layout, Terms<T> stage, T* x) {
  using A = Accumulate<T>;
  const QueryTile<T> tile(block);
  const SharedMemory<A> at(layout);
  const int M = layout.heads, threads = layout.threads;
  tile.stage_queries(stage, at.queries);
  __syncthreads();
  for (int64_t j = tile.low + static_cast<int>(threadIdx.x); j < tile.high; j += threads) {
    for (int m = 0; m < M; ++m) at.column[m * threads] = tile.load(x, m, j);
    compose_key<T>(
        tile, stage, j, at.queries, at.hidden, [&](int m) { return at.column[m * threads]; },
        [&](int n, const Quad<A>& value) { tile.store(x, n, j, value); });
  }
}

// ---- host ----

constexpr int64_t kGoodShared = 100 * 1024;  // so that two blocks share a multiprocessor

// The sizes of a stage that decide how much shared memory a block takes.
struct Sizes {
  int items, ranks;
  bool base;
};
Sizes sizes_of(const HeadMixing& c, int rank_axis_of_keys) {
  const int64_t q = c.q_down ? c.q_down.dim(3) : 0, k = c.k_down ? c.k_down.dim(rank_axis_of_keys) : 0;
  return {static_cast<int>(2 * q + (c.q_gate ? 1 : 0)), static_cast<int>(q + k), bool(c.base)};
}

SharedMemoryPlan plan_of_lse(int64_t M, const Sizes& pre) {
  return {0, static_cast<int>(M), pre.items, 2, pre.base ? 2 : 1, pre.ranks};
}
SharedMemoryPlan plan_of_probabilities(int64_t M, const Sizes& pre, const Sizes& post) {
  return {0, static_cast<int>(M), pre.items + post.items, 1, pre.base ? 2 : 1, std::max(pre.ranks, post.ranks)};
}
SharedMemoryPlan plan_of_backward(int64_t M, const Sizes& stage) {
  return {0, static_cast<int>(M), stage.items, 1, 2, stage.ranks};
}
SharedMemoryPlan plan_of_compose(int64_t M, const Sizes& stage) {
  return {0, static_cast<int>(M), stage.items, 0, 1, stage.ranks};
}

// As many threads as the keys and the shared memory can use.
template <class A>
SharedMemoryPlan sized(SharedMemoryPlan layout, int64_t keys) {
  layout.threads = keys > 64 ? 128 : keys > 32 ? 64 : 32;
  const int64_t good = std::min(kGoodShared, properties().shared_bytes);
  while (layout.threads > 32 && layout.bytes<A>() > good) layout.threads /= 2;
  return layout;
}

template <class T>
typename Terms<T>::QueryFactor query_factor(const Tensor& x) {
  if (!x) return {};
  const Strides& s = x.strides();
  return {x.data<T>(), s[0], s[1], s[2], x.rank() == 5 ? s[3] : 0};
}

template <class T>
Terms<T> terms_of(const HeadMixing& c) {
  Terms<T> terms;
  terms.q_down = query_factor<T>(c.q_down);
  terms.q_up = query_factor<T>(c.q_up);
  terms.q_gate = query_factor<T>(c.q_gate);
  if (c.q_down) terms.q_rank = static_cast<int>(c.q_down.dim(3));
  if (c.k_down) {
    terms.k_down = c.k_down.data<T>();
    terms.k_up = c.k_up.data<T>();
    terms.k_rank = static_cast<int>(c.k_down.dim(2));
  }
  if (c.k_gate) terms.k_gate = c.k_gate.data<T>();
  if (c.base) {
    terms.base = c.base.data<T>();
    terms.base_group = c.base.strides()[0];
    terms.base_read = c.base.strides()[1];
    terms.base_write = c.base.strides()[2];
  }
  return terms;
}

template <class T, class... P, class... Arguments>
void launch_rows(void (*kernel)(ScoreBlock, SharedMemoryPlan, P...), const ScoreBlock& block,
                 const SharedMemoryPlan& layout, const Arguments&... arguments) {
  const SharedMemoryPlan fit = sized<Accumulate<T>>(layout, block.keys);
  launch(kernel,
         {.grid = static_cast<unsigned>(block.samples * block.G * ((block.rows + kRows - 1) / kRows)),
          .block = static_cast<unsigned>(fit.threads),
          .shared_bytes = static_cast<size_t>(fit.bytes<Accumulate<T>>())},
         block, fit, arguments...);
}

}  // namespace

void softmax_lse(const ScoreBlock& block, const HeadMixing& pre, In scores, Out lse) {
  visit_float(scores.dtype(), "dcmha", [&]<class T>() {
    launch_rows<T>(softmax_lse_rows<T>, block, plan_of_lse(block.M, sizes_of(pre, 2)), terms_of<T>(pre),
                   scores.data<T>(), lse.mutable_data<Accumulate<T>>());
  });
}

void scores_to_probabilities(const ScoreBlock& block, const HeadMixing& pre, const HeadMixing& post, In scores, In lse,
                             Out probabilities) {
  visit_float(scores.dtype(), "dcmha", [&]<class T>() {
    launch_rows<T>(probability_rows<T>, block, plan_of_probabilities(block.M, sizes_of(pre, 2), sizes_of(post, 2)),
                   terms_of<T>(pre), terms_of<T>(post), !post.empty(), scores.data<T>(), lse.data<Accumulate<T>>(),
                   probabilities.mutable_data<T>());
  });
}

void softmax_backward(const ScoreBlock& block, const HeadMixing& post_transposed, In probabilities, Out d) {
  visit_float(d.dtype(), "dcmha", [&]<class T>() {
    launch_rows<T>(softmax_backward_rows<T>, block, plan_of_backward(block.M, sizes_of(post_transposed, 2)),
                   terms_of<T>(post_transposed), probabilities.data<T>(), d.mutable_data<T>());
  });
}

void compose(const ScoreBlock& block, const HeadMixing& stage, Out x) {
  visit_float(x.dtype(), "dcmha", [&]<class T>() {
    launch_rows<T>(compose_rows<T>, block, plan_of_compose(block.M, sizes_of(stage, 2)), terms_of<T>(stage),
                   x.mutable_data<T>());
  });
}

HeadMixing transposed(const HeadMixing& c) {
  return {c.base ? c.base.transposed() : c.base, c.q_up, c.q_down, c.k_up, c.k_down, c.q_gate, c.k_gate};
}

std::optional<std::string> unsupported_reason(const DcmhaInputs& x) {
  const int64_t M = x.q.dim(2) / x.groups;
  const Sizes pre = sizes_of(x.pre, 3), post = sizes_of(x.post, 3);
  int64_t needed = 0;
  for (SharedMemoryPlan layout :
       {plan_of_lse(M, pre), plan_of_probabilities(M, pre, post), plan_of_backward(M, post)}) {
    layout.threads = 32;
    needed = std::max(needed, x.q.dtype() == DType::f64 ? layout.bytes<double>() : layout.bytes<float>());
  }
  const int64_t available = properties().shared_bytes;
  if (needed <= available) return std::nullopt;
  return str("mixing ", M, " heads of a group in ", x.q.dtype(), " takes ", needed,
             " bytes of shared memory, a block has ", available, "; use more groups or a lower rank");
}

}  // namespace braid::cuda::attention::generic
