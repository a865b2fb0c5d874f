// Scaled dot-product attention by cuDNN, described as its chain of operations: cuDNN recognises such chains and has one
// kernel for each. No scores are written to memory, except dS in backward (cuda/attention/sdpa_cudnn.cpp).
//
//   forward    S = scale q k^T, -inf where masked    lse = max S + log sum exp(S - max S)    y = softmax(S) v
//   backward   delta = sum dy y    P = exp(S - lse)    dS = P (dy v^T - delta) scale
//              dv = P^T dy    dk = dS^T q    dq = dS k
#include <limits>
#include <map>
#include <mutex>

#include "braid/cuda/attention/cudnn_graph.h"
#include "braid/cuda/attention/cudnn_plan.h"
#include "braid/cuda/attention/sdpa_cudnn.h"
#include "braid/cuda/runtime/launch_times.h"
#include "braid/cuda/runtime/runtime.h"

namespace braid::cuda::attention::sdpa_cudnn {

namespace {

using Node = CudnnGraph::Node;

constexpr size_t kMinVersion = 91600;  // before, backward needs a mask where the keys are no multiple of 128

enum Id : int64_t { kQ = 1, kK, kV, kY, kLse, kDy, kDelta, kDq, kDk, kDv };

// The tensors of a call under their ids, heads before rows, as cuDNN expects them.
struct Operands {
  CudnnGraph& graph;
  const AttentionCall& call;
  cudnnDataType_t type;

  Node rows(Id id, const Tensor& x) const {  // (B, T, N, d) -> (B, N, T, d)
    const Strides& s = x.strides();
    return graph.memory(id, type, {x.dim(0), x.dim(2), x.dim(1), x.dim(3)}, {s[0], s[2], s[1], s[3]});
  }
  Node columns(Id id, const Tensor& x) const {  // (B, S, Nkv, d) -> (B, Nkv, d, S)
    const Strides& s = x.strides();
    return graph.memory(id, type, {x.dim(0), x.dim(2), x.dim(3), x.dim(1)}, {s[0], s[2], s[3], s[1]});
  }
  CudnnGraph::Dims per_row() const { return {call.q.dim(0), call.q.dim(2), call.q.dim(1), 1}; }
  CudnnGraph::Dims scores() const { return {call.q.dim(0), call.q.dim(2), call.q.dim(1), call.k.dim(1)}; }
  Node of_each_row(Id id) const {
    const int64_t N = call.q.dim(2), T = call.q.dim(1);
    return graph.memory(id, CUDNN_DATA_FLOAT, per_row(), {N * T, T, 1, 1});
  }
};

// x (B, N, T, S) with -inf where the key is masked for the row. The forms of the two comparisons are those that cuDNN
// recognises: row + S - T >= key, and key + window - (S - T) > row.
Node masked(CudnnGraph& g, const AttentionCall& call, Node x) {
  const AttentionMask& mask = call.mask;
  if (!mask.causal) return x;
  const auto T = static_cast<int32_t>(call.q.dim(1)), S = static_cast<int32_t>(call.k.dim(1));
  const float nothing = -std::numeric_limits<float>::infinity();
  Node row = g.index(x, 2), key = g.index(x, 3);
  if (mask.offset != 0) {
    row = g.pointwise(CUDNN_POINTWISE_ADD, row, g.number(S), CUDNN_DATA_INT32, CUDNN_DATA_INT32);
    row = g.pointwise(CUDNN_POINTWISE_SUB, row, g.number(T), CUDNN_DATA_INT32, CUDNN_DATA_INT32);
  }
  const Node before = g.pointwise(CUDNN_POINTWISE_CMP_GE, row, key, CUDNN_DATA_BOOLEAN, CUDNN_DATA_BOOLEAN);
  x = g.select(before, x, g.number(nothing));
  if (mask.window == 0) return x;
  row = g.index(x, 2);
  key = g.pointwise(CUDNN_POINTWISE_ADD, g.index(x, 3), g.number(static_cast<float>(mask.window - mask.offset)));
  const Node inside = g.pointwise(CUDNN_POINTWISE_CMP_GT, key, row, CUDNN_DATA_BOOLEAN, CUDNN_DATA_BOOLEAN);
  return g.select(inside, x, g.number(nothing));
}

void forward(CudnnGraph& g, const Operands& in) {
  const AttentionCall& call = in.call;
  const Node scale = g.number(static_cast<float>(call.scale));
  Node s = g.product(in.rows(kQ, call.q), in.columns(kK, call.k), g.between(in.scores()));
  s = masked(g, call, g.pointwise(CUDNN_POINTWISE_MUL, s, scale));
  const Node largest = g.reduce(CUDNN_REDUCE_TENSOR_MAX, s, g.between(in.per_row()));
  const Node powers = g.pointwise(CUDNN_POINTWISE_EXP, g.pointwise(CUDNN_POINTWISE_SUB, s, largest));
  const Node sum = g.reduce(CUDNN_REDUCE_TENSOR_ADD, powers, g.between(in.per_row()));
  g.pointwise(CUDNN_POINTWISE_ADD, largest, g.pointwise(CUDNN_POINTWISE_LOG, sum), in.of_each_row(kLse));
  const Node p = g.pointwise(CUDNN_POINTWISE_DIV, powers, sum, in.type);
  g.product(p, in.rows(kV, call.v), in.rows(kY, call.y));
}

// sum = a b, where query heads that share a key/value head are added up.
void sum_of_heads(CudnnGraph& g, const Operands& in, const Node& a, const Node& b, const Node& sum) {
  if (a.shape[1] == sum.shape[1]) {
    g.product(a, b, sum);
  } else {
    const Node each = g.between({sum.shape[0], a.shape[1], sum.shape[2], sum.shape[3]}, in.type);
    g.reduce(CUDNN_REDUCE_TENSOR_ADD, g.product(a, b, each), sum);
  }
}

void backward(CudnnGraph& g, const Operands& in) {
  const AttentionCall& call = in.call;
  const Node scale = g.number(static_cast<float>(call.scale)), q = in.rows(kQ, call.q), k = in.columns(kK, call.k),
             dy = in.rows(kDy, call.dy);
  const Node sum = g.reduce(CUDNN_REDUCE_TENSOR_ADD, g.pointwise(CUDNN_POINTWISE_MUL, dy, in.rows(kY, call.y)),
                            g.between(in.per_row()));
  const Node delta = g.pointwise(CUDNN_POINTWISE_MUL, sum, g.number(1.0f), in.of_each_row(kDelta));
  const Node s = g.pointwise(CUDNN_POINTWISE_MUL, g.product(q, k, g.between(in.scores())), scale);
  const Node p =
      g.pointwise(CUDNN_POINTWISE_EXP, masked(g, call, g.pointwise(CUDNN_POINTWISE_SUB, s, in.of_each_row(kLse))));
  sum_of_heads(g, in, g.transposed(p, in.type), dy, in.rows(kDv, call.dv));
  Node ds = g.product(dy, in.columns(kV, call.v), g.between(in.scores()));
  ds = g.pointwise(CUDNN_POINTWISE_MUL, g.pointwise(CUDNN_POINTWISE_SUB, ds, delta), p);
  ds = g.pointwise(CUDNN_POINTWISE_MUL, ds, scale);
  sum_of_heads(g, in, g.transposed(ds, in.type), q, in.rows(kDk, call.dk));
  g.product(ds, g.transposed(k, CUDNN_DATA_FLOAT), in.rows(kDq, call.dq));
}

// ---- the plans of a GPU ----

using Library = Handle<cudnnHandle_t, cudnnDestroy>;

struct Plan {
  CudnnGraph graph;
  std::optional<std::string> unsupported_reason;  // why cuDNN has none
};

struct Cudnn {  // of one GPU
  std::mutex mutex;
  Library handle;
  std::optional<std::string> failure;  // why it has no handle
  std::map<std::vector<int64_t>, Plan> plans;
};

Cudnn& cudnn() {
  static auto* of = new std::array<Cudnn, 64>;  // never destroyed: the driver may be gone by then
  return (*of)[static_cast<size_t>(current_device())];
}

// Where it fails, it has failed for every later call too: forward and backward of a call go to the same kernels.
void open(Cudnn& own) {
  if (own.handle.get()) return;
  try {
    cudnnHandle_t raw = nullptr;
    check(cudnnCreate(&raw));
    Library handle(raw);
    check(cudnnSetStream(raw, current_stream()));
    own.handle = std::move(handle);
  } catch (const Error& error) {
    own.failure = error.what();
  }
}

// Everything that the plan depends on. The scale is a number in it.
std::vector<int64_t> key_of(const AttentionCall& call) {
  std::vector<int64_t> key{static_cast<int64_t>(call.q.dtype()), call.mask.causal, call.mask.window, call.mask.offset,
                           std::bit_cast<int64_t>(call.scale)};
  for (const Tensor* t : {&call.q, &call.k, &call.v, &call.y, &call.dy, &call.dq, &call.dk, &call.dv}) {
    if (!*t) continue;
    for (int axis = 0; axis < 4; ++axis) key.insert(key.end(), {t->dim(axis), t->strides()[axis]});
  }
  return key;
}

}  // namespace

void build_plan(CudnnGraph& graph, const AttentionCall& call, const CudnnDevice& device) {
  const Operands in{graph, call, call.q.dtype() == DType::bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_HALF};
  call.dy ? backward(graph, in) : forward(graph, in);
  graph.build(device);
}

std::optional<std::string> run_attention(const AttentionCall& call) {
  if (cudnnGetVersion() < kMinVersion)
    return str("cuDNN 9.16 or newer is needed, found version number ", cudnnGetVersion());
  Cudnn& own = cudnn();
  std::lock_guard lock(own.mutex);
  const std::vector<int64_t> key = key_of(call);
  const bool is_new = !own.plans.contains(key);
  if (is_new && !own.failure) {
    check_may_plan(call);
    open(own);
  }
  if (own.failure) return own.failure;
  Plan& plan = own.plans[key];
  if (is_new) {
    try {
      build_plan(plan.graph, call, {.handle = own.handle.get()});
    } catch (const Error& error) {  // the generic kernels compute it
      plan.unsupported_reason = error.what();
    }
  }
  if (plan.unsupported_reason) return plan.unsupported_reason;
  const Device device = call.q.device();
  Tensor workspace = empty({plan.graph.workspace()}, DType::u8, device);
  Tensor delta = call.dy ? empty({call.lse.numel()}, DType::f32, device) : Tensor();
  CudnnGraph::Pointers tensors;
  for (const auto& [id, tensor] : {std::pair<Id, const Tensor&>{kQ, call.q},
                                   {kK, call.k},
                                   {kV, call.v},
                                   {kY, call.y},
                                   {kLse, call.lse},
                                   {kDy, call.dy},
                                   {kDelta, delta},
                                   {kDq, call.dq},
                                   {kDk, call.dk},
                                   {kDv, call.dv}}) {
    if (tensor) tensors.emplace_back(id, const_cast<void*>(tensor.raw()));
  }
  const LaunchTimer timer(
      [&] { return std::string(call.dy ? "cuDNN attention backward" : "cuDNN attention forward"); });
  plan.graph.run(own.handle.get(), std::move(tensors), workspace.mutable_raw());
  return std::nullopt;
}

}  // namespace braid::cuda::attention::sdpa_cudnn
