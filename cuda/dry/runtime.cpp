// The dry device in place of driver, cuBLASLt and cuDNN: streams, copies, graphs, products, attention.
#include "braid/cuda/runtime/runtime.h"

#include <cstring>

#include "braid/cuda/attention/sdpa_cudnn.h"
#include "braid/cuda/dry/log.h"
#include "braid/cuda/matmul/matmul.h"
#include "braid/cuda/runtime/graph.h"
#include "braid/cuda/runtime/launch_times.h"
#include "braid/tensor/dry/graph_cost.h"
#include "braid/tensor/kernels/measured.h"

namespace braid::cuda {

using dry::state;

// ---- runtime.h ----

int device_count() { return 1; }
std::string unsupported_reason(int) { return ""; }
void use_device(int) {}
int current_device() { return 0; }
StreamHandle current_stream() { return nullptr; }
void synchronize() { ++state().counts.waits; }

const Properties& properties() {
  static Properties p;
  const DryGpu& gpu = state().gpu;
  p = {.name = gpu.name,
       .major = gpu.major,
       .minor = 0,
       .multiprocessors = gpu.multiprocessors,
       .memory = gpu.memory,
       .shared_bytes = gpu.shared_bytes};
  return p;
}

CachingAllocator& caching_allocator() { return *state().allocator; }
Allocator& device_allocator() { return caching_allocator(); }

void copy_to_device(void*, const void*, int64_t bytes) {
  state().counts.to_device += bytes;
  synchronize();
}
void copy_to_host(void* to, const void*, int64_t bytes) {
  std::memset(to, 0, static_cast<size_t>(bytes));
  state().counts.to_host += bytes;
  synchronize();
}

// ---- launch_times.h ----

std::vector<LaunchTime> launch_times(const std::function<void()>& work) {  // nothing takes time
  check_not_capturing("launches were timed");
  const size_t before = state().log.size();
  work();
  return {{"logged work", static_cast<int64_t>(state().log.size() - before), 0}};
}

// ---- graph.h ----

namespace {

class DryGraph final : public DeviceGraph {
 public:
  DryGraph(std::vector<DryWork> work, int pool) : work_(std::move(work)), pool_(pool) {
    for (DryWork& w : work_) w.replayed = true;
  }
  ~DryGraph() override { caching_allocator().drop_pool(pool_); }
  void replay() override { state().log.insert(state().log.end(), work_.begin(), work_.end()); }

 private:
  std::vector<DryWork> work_;
  int pool_;
};

}  // namespace

bool capturing() { return state().pool != 0; }

void begin_capture() {
  check(!capturing(), "graph", "a graph is being captured already");
  state().pool = caching_allocator().begin_pool();
}

std::unique_ptr<DeviceGraph> end_capture() {
  DryDevice::State& s = state();
  s.allocator->end_pool();
  ++s.counts.captures;
  s.counts.nodes = std::max(s.counts.nodes, static_cast<int64_t>(s.captured.size()));
  braid::detail::add_graph_cost({.graphs = 1, .nodes = static_cast<int64_t>(s.captured.size())});
  return std::make_unique<DryGraph>(std::exchange(s.captured, {}), std::exchange(s.pool, 0));
}

void abort_capture() {
  DryDevice::State& s = state();
  s.captured.clear();
  s.allocator->end_pool();
  s.allocator->drop_pool(std::exchange(s.pool, 0));
}

// ---- matmul.h ----

bool execute(const MatmulPlan& p, double, double beta) {
  const DType dtype = p.a.tensor->dtype();
  if (p.bias && dtype == DType::f64) return false;  // as cuBLASLt, which has no epilogues there
  DryDevice::State& s = state();
  for (const auto& call : p.calls) {
    const ProductKey key = key_of(p, call, beta != 0);
    if (!s.products.contains(key)) check_may_choose(p);
    s.products.insert(key);
  }
  if (!s.workspace) s.workspace = empty({kBlasWorkspace}, DType::u8, p.c.tensor->device());
  const auto matrices = [&](const BlasOperand& o) { return o.batch == 0 ? 1 : p.batch; };
  const int64_t results = p.batch * p.rows * p.columns * size_of(p.c.tensor->dtype());
  DryWork work{.kind = DryWork::Kind::product,
               .name = "product",
               .rows = p.rows,
               .columns = p.columns,
               .inner = p.inner,
               .batch = p.batch,
               .dtype = dtype};
  work.bytes =
      size_of(dtype) * p.inner * (matrices(p.a) * p.rows + matrices(p.b) * p.columns) + results * (beta == 0 ? 1 : 2);
  work.flops = 2.0 * static_cast<double>(p.batch * p.rows) * static_cast<double>(p.columns * p.inner);
  for (size_t i = 0; i < p.calls.size(); ++i) dry::enqueue(work);
  return true;
}

// ---- sdpa_cudnn.h ----

// dS of a head in tiles of 64 x 128, as far as these have an unmasked pair: its kernels pass over no others.
static int64_t unmasked_tile_bytes(const AttentionMask& mask, int64_t T, int64_t S) {
  constexpr int64_t rows = 64, keys = 128;
  int64_t tiles = 0;
  for (int64_t t = 0; t < T; t += rows) {
    const int64_t begin = mask.causal ? mask.first(t) : 0,
                  end = mask.causal ? mask.end(std::min(t + rows, T) - 1, S) : S;
    if (begin < end) tiles += (end + keys - 1) / keys - begin / keys;
  }
  return 2 * tiles * rows * keys;
}

std::optional<std::string> attention::sdpa_cudnn::run_attention(const AttentionCall& call) {
  if (!state().gpu.cudnn) return "there is no cuDNN";
  const int64_t B = call.q.dim(0), T = call.q.dim(1), N = call.q.dim(2), d = call.q.dim(3), S = call.k.dim(1);
  double pairs = 0;  // of unmasked scores
  for (int64_t t = 0; t < T; ++t) {
    const int64_t end = call.mask.causal ? call.mask.end(t, S) : S;
    pairs += static_cast<double>(std::max<int64_t>(0, end - std::max<int64_t>(0, call.mask.first(t))));
  }
  const bool backward = static_cast<bool>(call.dy);
  DryWork work{
      .kind = DryWork::Kind::attention, .name = backward ? "cudnn_backward" : "cudnn_forward", .dtype = call.q.dtype()};
  for (const Tensor* t : {&call.q, &call.k, &call.v, &call.y, &call.lse, &call.dy, &call.dq, &call.dk, &call.dv})
    work.bytes += braid::detail::bytes_of(*t);
  // Products of depth d: 2 forward, 5 backward.
  work.flops = (backward ? 5 : 2) * 2.0 * static_cast<double>(B * N * d) * pairs;
  // Backward writes dS to its workspace and another kernel reads it for dq, so that sums have one order.
  const int64_t workspace = backward ? B * attention::sdpa_cudnn::gradient_bytes(N, T, S) : 0;
  const Tensor scores = workspace > 0 ? empty({workspace}, DType::u8, call.q.device()) : Tensor();
  if (backward) work.bytes += 2 * B * N * unmasked_tile_bytes(call.mask, T, S);
  dry::enqueue(work);
  return std::nullopt;
}

}  // namespace braid::cuda
