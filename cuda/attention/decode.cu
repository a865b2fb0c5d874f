// A few query rows against a cache: the limit is reading keys, values and factors once. The keys are split into tiles,
// a thread block for each:
//
//   scores   S = scale q k^T, S' = Compose_pre(S) to memory, (max, sum exp) of the tile for every row and head
//   values   lse from all tiles, P = exp(S' - lse), P' = Compose_post(P), the tile's part of P' v
//   combine  y: the parts of all tiles, in their order
//
// S' crosses from the first kernel to the second because post-compose mixes heads whose sums must all be known. Here a
// warp composes a pair (query, key) with heads across its lanes: each factor is used once or a few times, so it is read
// from global memory.
#include <algorithm>
#include <limits>

#include "braid/cuda/attention/decode.h"
#include "braid/cuda/device/kernel.h"
#include "braid/cuda/device/reduce.cuh"
#include "braid/cuda/device/vector_io.cuh"
#include "braid/tensor/kernels/math.h"

namespace braid::cuda::attention::decode {

namespace {

constexpr int64_t kMaxRows = 8;  // more go through the query blocks of cuda/attention/generic.cpp
constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr int kLanesOfHead = 8;            // lanes that share the product of one query and one key
constexpr int kAhead = 4;                  // loads of keys or values that a thread starts before it uses the first
constexpr int64_t kBlocks = 264;           // to aim at for a sample: two for each multiprocessor of a large GPU
constexpr int64_t kMinTile = 16;           // keys
constexpr int64_t kTileBytes = 64 * 1024;  // of shared memory for a tile's scores

// An array (B, rows or keys, G or heads, R): the axis after these is contiguous.
template <class T>
struct Array {
  T* data = nullptr;
  int64_t stride[4] = {};
  __device__ T* at(int64_t b, int64_t i, int64_t h, int64_t r = 0) const {
    return data + b * stride[0] + i * stride[1] + h * stride[2] + r * stride[3];
  }
};

template <class T>
struct Factors {
  Array<const T> q_down, q_up, q_gate, k_down, k_up, k_gate;
  Array<const T> base;  // (G, M): the last axis is contiguous
  int q_rank = 0, k_rank = 0;
};

// One call. Partial results: composed (B, G, tiles, T, tile, M), top and sum (B, G, T, M, tiles), parts (B, tiles, T,
// N, d).
template <class T>
struct Call {
  using A = Accumulate<T>;
  Array<const T> q, k, v;
  Factors<T> pre, post;
  T* y;
  A *composed, *top, *sum, *parts;
  int64_t B, T_, S, G, M, d, share;
  int64_t first, end;  // the unmasked keys of all rows
  int64_t tile, tiles;
  AttentionMask mask;
  A scale;
};

// The coordinates of this block.
struct BlockCoord {
  int64_t b, g, tile, key0;
  int rows, heads, keys;
  template <class T>
  __device__ explicit BlockCoord(const Call<T>& c) {
    tile = blockIdx.x % c.tiles;
    g = blockIdx.x / c.tiles % c.G;
    b = blockIdx.x / c.tiles / c.G;
    key0 = c.first + tile * c.tile;
    rows = static_cast<int>(c.T_);
    heads = static_cast<int>(c.M);
    keys = static_cast<int>(c.end - key0 < c.tile ? c.end - key0 : c.tile);
  }
};

// x[0..M) = Compose(x) for query t and key s, by one warp; scratch has M values.
template <class T>
__device__ void compose_pair(const Factors<T>& c, int64_t b, int64_t g, int64_t t, int64_t s, int M, Accumulate<T>* x,
                             Accumulate<T>* scratch) {
  using A = Accumulate<T>;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int m = lane; m < M; m += 32) {
    A gain = 1;
    if (c.q_gate.data) gain += static_cast<A>(c.q_gate.at(b, t, g)[m]);
    if (c.k_gate.data) gain += static_cast<A>(c.k_gate.at(b, s, g)[m]);
    scratch[m] = gain * x[m];
  }
  auto low_rank = [&](const T* down, const T* up) {
    A part = 0;
    for (int m = lane; m < M; m += 32) part += x[m] * static_cast<A>(down[m]);
    const A hidden = warp_sum(part);
    for (int m = lane; m < M; m += 32) scratch[m] += hidden * static_cast<A>(up[m]);
  };
  for (int r = 0; r < c.q_rank; ++r) low_rank(c.q_down.at(b, t, g, r), c.q_up.at(b, t, g, r));
  for (int r = 0; r < c.k_rank; ++r) low_rank(c.k_down.at(b, s, g, r), c.k_up.at(b, s, g, r));
  if (c.base.data) {
    for (int n = lane; n < M; n += 32) {
      A total = 0;
      for (int m = 0; m < M; ++m) total += x[m] * static_cast<A>(c.base.at(g, m, 0)[n]);
      scratch[n] += total;
    }
  }
  __syncwarp();  // every lane has read x
  for (int m = lane; m < M; m += 32) x[m] = scratch[m];
  __syncwarp();
}

template <class T>
__global__ void decode_scores(Call<T> c) {
  using A = typename Call<T>::A;
  constexpr int W = kVectorWidth<T>;
  constexpr A kNothing = -std::numeric_limits<A>::infinity();
  const BlockCoord at(c);
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, part = thread % kLanesOfHead;
  A* scores = dynamic_shared<A>();  // [T][keys][M]
  A* scratch = scores + at.rows * at.keys * at.heads + warp * at.heads;

  // Eight lanes multiply one key of one head with its queries; neighbouring groups of lanes have neighbouring heads.
  const int groups = kThreads / kLanesOfHead, pairs = at.keys * at.heads;
  for (int start = thread / kLanesOfHead; start - thread / kLanesOfHead < pairs; start += groups * kAhead) {
    for (int t = 0; t < at.rows; ++t) {
      A dot[kAhead] = {};
      for (int64_t e = part * W; e < c.d; e += kLanesOfHead * W) {
        Pack<T> key[kAhead];
#pragma unroll
        for (int p = 0; p < kAhead; ++p) {
          const int pair = start + p * groups < pairs ? start + p * groups : 0;
          const int64_t head = at.g * c.M + pair % at.heads;
          key[p] = load_pack<W>(c.k.at(at.b, at.key0 + pair / at.heads, head / c.share), e, c.d);
        }
#pragma unroll
        for (int p = 0; p < kAhead; ++p) {
          const int pair = start + p * groups < pairs ? start + p * groups : 0;
          const Pack<T> query = load_pack<W>(c.q.at(at.b, t, at.g * c.M + pair % at.heads), e, c.d);
#pragma unroll
          for (int w = 0; w < W; ++w) dot[p] += static_cast<A>(key[p][w]) * static_cast<A>(query[w]);
        }
      }
#pragma unroll
      for (int p = 0; p < kAhead; ++p) {
        const A sum = lanes_sum(dot[p], kLanesOfHead);
        if (part == 0 && start + p * groups < pairs) scores[t * pairs + start + p * groups] = c.scale * sum;
      }
    }
  }
  __syncthreads();

  A* composed = c.composed + static_cast<int64_t>(blockIdx.x) * c.T_ * c.tile * c.M;
  for (int pair = warp; pair < at.rows * at.keys; pair += kWarps) {
    const int t = pair / at.keys, j = pair % at.keys;
    const int64_t s = at.key0 + j;
    A* x = scores + pair * at.heads;
    const bool unmasked = s >= c.mask.first(t) && s < c.mask.end(t, c.S);
    if (unmasked) compose_pair(c.pre, at.b, at.g, t, s, at.heads, x, scratch);
    for (int m = thread % 32; m < at.heads; m += 32) {
      if (!unmasked) x[m] = kNothing;
      composed[pair * c.M + m] = x[m];
    }
  }
  __syncthreads();

  for (int k = thread; k < at.rows * at.heads; k += kThreads) {
    const A* x = scores + k / at.heads * at.keys * at.heads + k % at.heads;
    A top = kNothing, sum = 0;
    for (int j = 0; j < at.keys; ++j) top = larger(top, x[j * at.heads]);
    for (int j = 0; j < at.keys && top != kNothing; ++j) sum += math::exp(x[j * at.heads] - top);
    const int64_t place = ((at.b * c.G + at.g) * at.rows * at.heads + k) * c.tiles + at.tile;
    c.top[place] = top;
    c.sum[place] = sum;
  }
}

template <class T>
__global__ void decode_values(Call<T> c) {
  using A = typename Call<T>::A;
  constexpr int W = kVectorWidth<T>;
  constexpr A kNothing = -std::numeric_limits<A>::infinity();
  const BlockCoord at(c);
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  A* weights = dynamic_shared<A>();                 // [T][keys][M]
  A* lse = weights + at.rows * at.keys * at.heads;  // [T][M]
  A* scratch = lse + at.rows * at.heads + warp * at.heads;

  for (int k = warp; k < at.rows * at.heads; k += kWarps) {
    const int64_t place = ((at.b * c.G + at.g) * at.rows * at.heads + k) * c.tiles;
    A top = kNothing, sum = 0;
    for (int64_t i = lane; i < c.tiles; i += 32) top = larger(top, c.top[place + i]);
    top = warp_max(top);
    for (int64_t i = lane; i < c.tiles; i += 32) {
      if (c.top[place + i] != kNothing) sum += c.sum[place + i] * math::exp(c.top[place + i] - top);
    }
    sum = warp_sum(sum);
    if (lane == 0) lse[k] = sum == 0 ? -kNothing : top + math::log(sum);
  }
  __syncthreads();
  const A* composed = c.composed + static_cast<int64_t>(blockIdx.x) * c.T_ * c.tile * c.M;
  for (int pair = warp; pair < at.rows * at.keys; pair += kWarps) {
    const int t = pair / at.keys;
    const int64_t s = at.key0 + pair % at.keys;
    const bool unmasked = s >= c.mask.first(t) && s < c.mask.end(t, c.S);
    A* x = weights + pair * at.heads;
    for (int m = lane; m < at.heads; m += 32) {
      x[m] = unmasked ? math::exp(composed[pair * c.M + m] - lse[t * at.heads + m]) : A(0);
    }
    __syncwarp();
    if (unmasked) compose_pair(c.post, at.b, at.g, t, s, at.heads, x, scratch);
  }
  __syncthreads();

  // A thread has W neighbouring elements of a head's output.
  const int pieces = static_cast<int>((c.d + W - 1) / W);
  for (int k = thread; k < at.heads * pieces; k += kThreads) {
    const int m = k / pieces;
    const int64_t e = k % pieces * W, head = at.g * c.M + m;
    for (int t = 0; t < at.rows; ++t) {
      A total[W] = {};
      for (int j0 = 0; j0 < at.keys; j0 += kAhead) {
        Pack<T> value[kAhead];
#pragma unroll
        for (int p = 0; p < kAhead; ++p) {
          const int j = j0 + p < at.keys ? j0 + p : j0;
          value[p] = load_pack<W>(c.v.at(at.b, at.key0 + j, head / c.share), e, c.d);
        }
#pragma unroll
        for (int p = 0; p < kAhead; ++p) {
          if (j0 + p >= at.keys) continue;
          const A weight = weights[(t * at.keys + j0 + p) * at.heads + m];
#pragma unroll
          for (int w = 0; w < W; ++w) total[w] += weight * static_cast<A>(value[p][w]);
        }
      }
      A* to = c.parts + (((at.b * c.tiles + at.tile) * c.T_ + t) * c.G * c.M + head) * c.d;
#pragma unroll
      for (int w = 0; w < W; ++w) {
        if (e + w < c.d) to[e + w] = total[w];
      }
    }
  }
}

// A thread for each element of y (B, T, N, d).
template <class T>
__global__ void decode_combine(Call<T> c) {
  using A = typename Call<T>::A;
  const int64_t sample = c.T_ * c.G * c.M * c.d, i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= c.B * sample) return;
  const A* parts = c.parts + i / sample * c.tiles * sample + i % sample;
  A total = 0;
#pragma unroll 8
  for (int64_t k = 0; k < c.tiles; ++k) total += parts[k * sample];
  c.y[i] = static_cast<T>(total);
}

template <class T>
Array<const T> array(const Tensor& x) {
  Array<const T> out;
  if (!x) return out;
  out.data = x.data<T>();
  for (int axis = 0; axis + 1 < x.rank(); ++axis) out.stride[axis] = x.strides()[axis];
  return out;
}

template <class T>
Factors<T> factors(const HeadMixing& c) {
  Factors<T> out{.q_down = array<T>(c.q_down),
                 .q_up = array<T>(c.q_up),
                 .q_gate = array<T>(c.q_gate),
                 .k_down = array<T>(c.k_down),
                 .k_up = array<T>(c.k_up),
                 .k_gate = array<T>(c.k_gate),
                 .base = array<T>(c.base)};
  if (c.q_down) out.q_rank = static_cast<int>(c.q_down.dim(3));
  if (c.k_down) out.k_rank = static_cast<int>(c.k_down.dim(3));
  return out;
}

// Shared memory of a block, in values.
int64_t shared_values(int64_t rows, int64_t heads, int64_t tile) { return heads * (rows * (tile + 1) + kWarps); }

// How the keys of a call are cut.
struct Cut {
  int64_t first, end, tile, tiles;
};
Cut cut(const DcmhaInputs& x) {
  const int64_t rows = x.q.dim(1), M = x.q.dim(2) / x.groups, size = x.q.dtype() == DType::f64 ? 8 : 4;
  const int64_t first = x.mask.first(0), keys = std::max<int64_t>(0, x.mask.end(rows - 1, x.k.dim(1)) - first);
  const int64_t widest = std::max(kMinTile, kTileBytes / (rows * M * size));
  const int64_t tile = std::clamp(keys * x.groups / kBlocks, kMinTile, widest);
  return {first, first + keys, tile, (keys + tile - 1) / tile};
}

// Bytes of partial results for each sample.
int64_t sample_bytes(const DcmhaInputs& x) {
  const Cut c = cut(x);
  return x.q.dim(1) * x.q.dim(2) * c.tiles * (c.tile + x.q.dim(3) + 2) * (x.q.dtype() == DType::f64 ? 8 : 4);
}
int64_t limit(const DcmhaInputs& x) { return x.workspace > 0 ? x.workspace : kAttentionWorkspace; }

template <class T>
void run(const DcmhaInputs& x, Out y) {
  using A = Accumulate<T>;
  const int64_t B = x.q.dim(0), rows = x.q.dim(1), N = x.q.dim(2), d = x.q.dim(3), S = x.k.dim(1), M = N / x.groups;
  const auto [first, end, tile, tiles] = cut(x);
  if (tiles == 0) {
    y.fill(0);
    return;
  }
  const DType type = dtype_of<A>();
  const Device device = x.q.device();
  Tensor composed = empty({B, x.groups, tiles, rows, tile, M}, type, device);
  Tensor top = empty({B, N, rows, tiles}, type, device), sum = empty({B, N, rows, tiles}, type, device);
  Tensor parts = empty({B, tiles, rows, N, d}, type, device);
  const Call<T> call{.q = array<T>(x.q),
                     .k = array<T>(x.k),
                     .v = array<T>(x.v),
                     .pre = factors<T>(x.pre),
                     .post = factors<T>(x.post),
                     .y = y.mutable_data<T>(),
                     .composed = composed.mutable_data<A>(),
                     .top = top.mutable_data<A>(),
                     .sum = sum.mutable_data<A>(),
                     .parts = parts.mutable_data<A>(),
                     .B = B,
                     .T_ = rows,
                     .S = S,
                     .G = x.groups,
                     .M = M,
                     .d = d,
                     .share = N / x.k.dim(2),
                     .first = first,
                     .end = end,
                     .tile = tile,
                     .tiles = tiles,
                     .mask = x.mask,
                     .scale = static_cast<A>(x.scale)};
  const Launch shape{.grid = static_cast<unsigned>(B * x.groups * tiles),
                     .block = kThreads,
                     .shared_bytes = static_cast<size_t>(shared_values(rows, M, tile)) * sizeof(A)};
  launch(decode_scores<T>, shape, call);
  launch(decode_values<T>, shape, call);
  launch(decode_combine<T>, {.grid = static_cast<unsigned>((y.numel() + kThreads - 1) / kThreads), .block = kThreads},
         call);
}

}  // namespace

bool supports(const DcmhaInputs& x) {
  const int64_t rows = x.q.dim(1), M = x.q.dim(2) / x.groups, size = x.q.dtype() == DType::f64 ? 8 : 4;
  return rows <= kMaxRows && shared_values(rows, M, kMinTile) * size <= properties().shared_bytes &&
         sample_bytes(x) <= limit(x);
}

void forward(const DcmhaInputs& x, Out y) {
  const int64_t B = x.q.dim(0), samples = std::clamp<int64_t>(limit(x) / std::max<int64_t>(1, sample_bytes(x)), 1, B);
  for (int64_t b = 0; b < B; b += samples) {  // some samples at a time, where the workspace requires it
    const QueryBlock block{b, std::min(samples, B - b), 0, x.q.dim(1), 0, x.k.dim(1)};
    DcmhaInputs some = x;
    for_each_tensor([&](const AttentionRole& role, Tensor& t) { t = block.part(t, role.positions); }, some);
    Tensor out = block.part(y, AttentionRole::Positions::queries);
    visit_float(x.q.dtype(), "dcmha", [&]<class T>() { run<T>(some, out); });
  }
}

}  // namespace braid::cuda::attention::decode
