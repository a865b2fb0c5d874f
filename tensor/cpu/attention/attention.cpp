// The driver of the fused attention kernels: packs keys, values and key-side factors by key vector, cuts the query rows
// into tasks, and orders the tasks that add to the same gradients.
//
// Same bits at any thread count: a task's arithmetic does not depend on its thread, and additions to shared gradients
// follow the order of a dependency chain (problem.h). Tasks are taken in ascending order, so the task that another
// waits for is already running and no task waits for ever.
#include <sched.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "braid/tensor/base/integers.h"
#include "braid/tensor/cpu/attention/decode_rows.h"
#include "braid/tensor/cpu/attention/kept.h"
#include "braid/tensor/cpu/attention/packing.h"
#include "braid/tensor/cpu/attention/variants.h"
#include "braid/tensor/trace_device.h"

namespace braid::cpu {

namespace attention {

void wait_for_ticket(const Ticket& ticket, int64_t pass, int64_t tile) {
  if (!ticket.before || tile < ticket.before_first) return;
  const int64_t step = pass * ticket.tiles + tile;
  for (int spins = 0; __atomic_load_n(ticket.before, __ATOMIC_ACQUIRE) <= step; ++spins) {
    if (spins > 200) sched_yield();
  }
}

void complete_ticket(const Ticket& ticket, int64_t pass, int64_t tile) {
  __atomic_store_n(ticket.done, pass * ticket.tiles + tile + 1, __ATOMIC_RELEASE);
}

namespace {

// Rows per block: many, so that keys and values are read seldom; few enough that there are `blocks` of them, though not
// fewer than `least` for that, and that what must stay in memory between the passes of forward (row_bytes each) has
// room.
int64_t rows_per_block(int64_t chains, int64_t queries, int64_t row_bytes, int64_t blocks, int64_t least) {
  int64_t rows = kMaxBlockRows;
  while (rows > least && chains * queries < blocks * rows) rows /= 2;
  while (rows > 16 && rows * row_bytes > max_kept_bytes()) rows /= 2;
  return std::min(rows, detail::round_up(queries, kQueryTileRows));
}

template <class T>
class Call : Packing<T> {
  using Packing<T>::p_, Packing<T>::x_, Packing<T>::W_, Packing<T>::buffer, Packing<T>::keep, Packing<T>::pack,
      Packing<T>::pack_key_vectors, Packing<T>::pack_rows, Packing<T>::unpack_rows, Packing<T>::stage_gradients,
      Packing<T>::finish_stage;

 public:
  Call(const DcmhaInputs& inputs, const Kernels<T>& code)
      : Packing<T>(inputs, code.lanes, code.pairs, code.tiles), code_(code) {
    p_.max_kept_bytes = max_kept_bytes();
  }

  void forward(Out y, Out lse) {
    if (kStrict) p_.tile_vectors = kDecodeSegment / W_;
    pack(x_.pre, p_.pre);
    pack(x_.post, p_.post);
    const int64_t keys_of_row = p_.mask.causal && p_.mask.window > 0 ? std::min(p_.keys, p_.mask.window) : p_.keys;
    // No bit of a row depends on its block here, so it may depend on the threads: four blocks for each. Pairs of bf16
    // gain nothing by more than 64 rows, where these leave too few blocks.
    const int64_t blocks = 4 * threads();
    p_.block_rows = rows_per_block(p_.B * p_.G, p_.queries, keys_of_row * p_.M * int64_t{sizeof(T)},
                                   p_.pairs ? std::max<int64_t>(64, blocks) : blocks, 32);
    p_.keys_by_vector = pack_key_vectors(code_, x_.k);
    p_.value_rows = pack_rows(x_.v);
    p_.y = mutable_rows_of<T>(y);
    p_.lse = lse ? lse.mutable_data<T>() : nullptr;
    const int64_t chains = p_.B * p_.G, tasks = chains * p_.blocks();
    run(tasks, code_.forward_bytes(p_), [&](int64_t i, void* workspace) {
      const int64_t chain = i % chains;  // the longest rows first
      code_.forward(p_, {i, chain / p_.G, chain % p_.G, p_.blocks() - 1 - i / chains}, workspace);
    });
  }

  void backward(In y, In lse, In dy, DcmhaGradients& gradients) {
    pack(x_.pre, p_.pre);
    pack(x_.post, p_.post);
    set_backward_rows();
    p_.keys_by_vector = pack_key_vectors(code_, x_.k);
    p_.values_by_vector = pack_key_vectors(code_, x_.v);
    p_.key_rows = pack_rows(x_.k);
    Tensor lse_handle = lse;
    p_.lse = lse_handle.mutable_data<T>();
    p_.y_saved = rows_of<T>(y);
    p_.dy = rows_of<T>(dy);
    p_.dq = mutable_rows_of<T>(gradients.q);
    const int64_t packed = p_.B * p_.kv_heads() * p_.key_vectors * W_ * p_.d_padded;
    if (gradients.k) p_.dk = keep(zeros({packed}, dtype_of<T>())).template mutable_data<T>();
    if (gradients.v) p_.dv = keep(zeros({packed}, dtype_of<T>())).template mutable_data<T>();

    // Groups that share key/value heads form one chain with their blocks, the longest rows first.
    const int64_t together = std::lcm(p_.M, p_.share) / p_.M, chains = p_.B * (p_.G / together);
    const int64_t tasks = p_.B * p_.G * p_.blocks();
    stage_gradients(gradients.pre, p_.pre, tasks);
    stage_gradients(gradients.post, p_.post, tasks);
    auto task_of = [&](int64_t i) {
      const int64_t chain = i % chains, step = i / chains, clusters = p_.G / together;
      return Task{i, chain / clusters, chain % clusters * together + step % together,
                  p_.blocks() - 1 - step / together};
    };
    Tensor done = zeros({tasks}, DType::i64);
    int64_t* done_data = done.mutable_data<int64_t>();
    run(tasks, code_.backward_bytes(p_), [&](int64_t i, void* workspace) {
      Ticket ticket{done_data + i, nullptr, 0, detail::ceil_div(p_.key_vectors, p_.tile_vectors)};
      if (i >= chains) {
        ticket.before = done_data + i - chains;
        ticket.before_first = p_.mask.first(task_of(i - chains).block * p_.block_rows) / (W_ * p_.tile_vectors);
      }
      code_.backward(p_, task_of(i), ticket, workspace);
    });
    if (gradients.k) unpack_rows(p_.dk, p_.pairs ? static_cast<T>(p_.scale) : T(1), gradients.k);
    if (gradients.v) unpack_rows(p_.dv, T(1), gradients.v);
    finish_stage(gradients.pre, p_.pre, tasks, task_of);
    finish_stage(gradients.post, p_.post, tasks, task_of);
  }

 private:
  // The bits of a result depend on these, so they do not depend on the threads. Half of 128 rows where S and dP of so
  // many fit and those of 128 do not: computing them again costs more than reading keys and values twice as often.
  void set_backward_rows() {
    p_.block_rows = rows_per_block(p_.B * p_.G, p_.queries, 0, 64, 64);
    const int64_t rows = p_.block_rows;
    if (!p_.post.present || rows <= 64 || p_.kept_bytes(W_) <= max_kept_bytes_of_rows()) return;
    p_.block_rows = 64;
    if (p_.kept_bytes(W_) > max_kept_bytes_of_rows()) p_.block_rows = rows;
  }

  // Runs body(task, workspace) for tasks 0, 1, ..., in this order.
  void run(int64_t tasks, size_t bytes, FunctionRef<void(int64_t, void*)> body) {
    const int64_t workers = std::min<int64_t>(threads(), tasks);
    std::vector<Tensor> workspaces;  // one a worker: buffers of this size are more often used again than one large one
    for (int64_t i = 0; i < workers; ++i) workspaces.push_back(empty({static_cast<int64_t>(bytes)}, DType::u8));
    parallel_tasks(tasks, workers, [&](int64_t task, int64_t worker) {
      body(task, workspaces[static_cast<size_t>(worker)].mutable_data<uint8_t>());
    });
  }

  const Kernels<T>& code_;
};

// Calls body(Call) of one of the two types that the kernels compute in.
template <class Body>
void with_call(const DcmhaInputs& x, Body&& body) {
  if (x.q.dtype() == DType::f64) return body(Call<double>(x, kernels_in_use<double>()));
  const bool of_bf16 = x.q.dtype() == DType::bf16 && x.k.dtype() == DType::bf16 && x.v.dtype() == DType::bf16;
  const Kernels<float>* pairs = of_bf16 && !kStrict ? pair_kernels() : nullptr;
  body(Call<float>(x, pairs ? *pairs : kernels_in_use<float>()));
}

}  // namespace
}  // namespace attention

// A few rows without derivative: reading the keys once beats laying them out first. Strict: with the same bits.
static AttentionPlan plan(const DcmhaInputs& x, bool derivative) {
  const bool by_rows = !derivative && x.q.dim(1) <= 4;
  return {.forward = by_rows ? AttentionKernel::decode : AttentionKernel::generic};
}

// Counts a call. On a GPU that is traced it holds scores, their gradients and the weights of some rows instead of what
// the kernels below allocate: true.
static bool traced(const DcmhaInputs& x, double passes) {
  if (TracedFlops* flops = detail::counted_flops) [[unlikely]]
    flops->add_attention(x, passes);
  const TraceDevice* trace = TraceDevice::current();
  if (!trace || !trace->gpu()) [[likely]]
    return false;
  const int64_t scores = 3 * x.q.dim(0) * x.q.dim(1) * x.q.dim(2) * x.k.dim(1) * size_of(x.q.dtype());
  empty({std::min(scores, x.workspace > 0 ? x.workspace : kAttentionWorkspace)}, DType::u8);
  return true;
}

static void dcmha_forward(const AttentionPlan& plan, const DcmhaInputs& x, Out y, Out lse) {
  if (traced(x, 1)) return;
  if (plan.forward == AttentionKernel::decode) return attention::decode(x, y);
  attention::with_call(x, [&](auto call) { call.forward(y, lse); });
}

static void dcmha_backward(const AttentionPlan&, const DcmhaInputs& x, In y, In lse, In dy, DcmhaGradients& gradients) {
  if (traced(x, 2)) return;
  const Tensor of_type = dy.dtype() == y.dtype() ? dy : dy.to(y.dtype());
  attention::with_call(x, [&](auto call) { call.backward(y, lse, of_type, gradients); });
}

static void paged(const DcmhaInputs& x, const PagedRows& rows, Out y) { attention::paged_attention(x, rows, y); }

constinit const AttentionKernels attention_kernels{
    .plan = plan,
    .forward = dcmha_forward,
    .backward = dcmha_backward,
    .paged = paged,
};

}  // namespace braid::cpu
