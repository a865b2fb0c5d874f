// The conductor of the fused attention kernels: lays keys, values and key-side factors out in strips, cuts the query
// rows into tasks, and hands out turns where several tasks add to the same gradients.
//
// Same bits at any thread count: a task's arithmetic does not depend on who runs it, and additions to shared gradients
// follow the order of a chain (problem.h). Tasks are taken in ascending order, so the one that a task waits for is
// already running and nobody waits for ever.
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "braid/tensor/cpu/attention/variants.h"
#include "braid/tensor/kernels/attention.h"
#include "braid/tensor/parallel.h"

namespace braid::cpu {

namespace dcmha {

void wait_for_turn(const Turn& turn, int64_t pass, int64_t tile) {
  if (!turn.before || tile < turn.before_first) return;
  const int64_t step = pass * turn.tiles + tile;
  for (int spins = 0; __atomic_load_n(turn.before, __ATOMIC_ACQUIRE) <= step; ++spins) {
    if (spins > 200) sched_yield();
  }
}

void end_turn(const Turn& turn, int64_t pass, int64_t tile) {
  __atomic_store_n(turn.done, pass * turn.tiles + tile + 1, __ATOMIC_RELEASE);
}

namespace {

// Bytes that a thread may keep between two passes over the keys. Reading back what fits no cache costs about as much
// as computing it again, and fewer rows per block cost more than either, so this bounds memory, not time.
int64_t most_kept() { return std::min<int64_t>(40 << 20, (int64_t{640} << 20) / threads()); }

// Rows per block: many, so that keys and values are read seldom; few enough that there are blocks for many threads and
// that what must stay in memory between the passes of forward (row_bytes each) has room.
int64_t rows_per_block(int64_t chains, int64_t queries, int64_t row_bytes) {
  int64_t rows = chains * queries >= 64 * 128 ? 128 : 64;
  while (rows > 16 && rows * row_bytes > most_kept()) rows /= 2;
  return std::min(rows, (queries + kBandRows - 1) / kBandRows * kBandRows);
}

template <class T>
Rows<const T> rows_of(const Tensor& x) {
  Rows<const T> rows;
  if (!x) return rows;
  rows.data = x.data<T>();
  for (int i = 0; i + 1 < x.rank(); ++i) rows.stride[i] = x.strides()[i];
  return rows;
}
template <class T>
Rows<T> rows_of(Tensor& x) {
  Rows<T> rows;
  if (!x) return rows;
  rows.data = x.mutable_data<T>();
  for (int i = 0; i + 1 < x.rank(); ++i) rows.stride[i] = x.strides()[i];
  return rows;
}

template <class T>
class Call {
 public:
  Call(const DcmhaInputs& inputs) : x_(inputs), code_(kernels<T>()), W_(code_.lanes) {
    const bool plain = none(x_.pre) && none(x_.post);
    p_.B = x_.q.dim(0);
    p_.queries = x_.q.dim(1);
    p_.keys = x_.k.dim(1);
    p_.N = x_.q.dim(2);
    p_.d = x_.q.dim(3);
    p_.G = plain ? p_.N : x_.groups;  // without compose every head is alone
    p_.M = p_.N / p_.G;
    p_.share = p_.N / x_.k.dim(2);
    p_.visible = x_.visible;
    p_.scale = x_.scale;
    p_.strips = (p_.keys + W_ - 1) / W_;
    p_.most_kept = most_kept();
    p_.tile_strips = std::clamp<int64_t>(64 / p_.M, 4, 16);
    p_.d_padded = (p_.d + W_ - 1) / W_ * W_;
    p_.q = rows_of<T>(x_.q);
    p_.k = rows_of<T>(x_.k);
    p_.v = rows_of<T>(x_.v);
    describe(x_.pre, p_.pre);
    describe(x_.post, p_.post);
  }

  // A few rows and nobody who will ask for a derivative: reading the keys once beats laying them out first.
  bool decodes(const Tensor& lse) const { return !lse && p_.queries <= 4; }

  void decode(Out y) {
    if (p_.plain()) p_.G = 1, p_.M = p_.N;  // heads side by side; nothing mixes them
    const int64_t rows = p_.B * p_.queries * p_.G, heads = (p_.M + W_ - 1) / W_ * W_, size = p_.M * p_.d_padded;
    const int64_t most = (p_.keys + kSegment - 1) / kSegment;
    T *e = buffer(rows * p_.keys * heads), *statistics = buffer(rows * most * 3 * heads);
    T *partial = buffer(rows * most * size), *spare = buffer(rows * most * W_ * heads);
    auto each_segment = [&](auto&& body) {
      parallel_for(rows * most, grain_for(kSegment * p_.M * p_.d), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t row = i / most, t = row / p_.G % p_.queries;
          const int64_t first = p_.visible.first(t) + i % most * kSegment, last = p_.visible.end(t, p_.keys);
          if (first >= last) continue;
          T* own = statistics + i * 3 * heads;
          body(Task{i, row / p_.G / p_.queries, row % p_.G, t},
               Segment<T>{first, std::min(last, first + kSegment), e + (row * p_.keys + first) * heads, own,
                          own + heads, own + 2 * heads, partial + i * size, spare + i * W_ * heads});
        }
      });
    };
    each_segment([&](const Task& task, const Segment<T>& s) { code_.decode_scores(p_, task, s); });
    for (int64_t row = 0; row < rows; ++row) combine_sums(segments_of(row), statistics + row * most * 3 * heads, heads);
    each_segment([&](const Task& task, const Segment<T>& s) { code_.decode_values(p_, task, s); });
    Rows<T> out = rows_of<T>(y);
    parallel_for(rows * p_.M, grain_for(most * p_.d), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = i / p_.M, m = i % p_.M, bt = row / p_.G, b = bt / p_.queries, t = bt % p_.queries;
        T* to = out.data + b * out.stride[0] + t * out.stride[1] + (row % p_.G * p_.M + m) * out.stride[2];
        std::fill_n(to, p_.d, T(0));
        for (int64_t s = 0; s < segments_of(row); ++s) {
          const T* from = partial + (row * most + s) * size + m * p_.d_padded;
          for (int64_t j = 0; j < p_.d; ++j) to[j] += from[j];
        }
      }
    });
  }

  void forward(Out y, Out lse) {
    if (decodes(lse)) return decode(y);
    pack(x_.pre, p_.pre);
    pack(x_.post, p_.post);
    const int64_t seen = p_.visible.causal && p_.visible.window > 0 ? std::min(p_.keys, p_.visible.window) : p_.keys;
    p_.block_rows = rows_per_block(p_.B * p_.G, p_.queries, seen * p_.M * int64_t{sizeof(T)});
    p_.key_strips = pack_strips(x_.k);
    p_.value_rows = pack_rows(x_.v);
    p_.y = rows_of<T>(y);
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
    p_.block_rows = rows_per_block(p_.B * p_.G, p_.queries, 1);
    p_.key_strips = pack_strips(x_.k);
    p_.value_strips = pack_strips(x_.v);
    p_.key_rows = pack_rows(x_.k);
    Tensor y_handle = y, lse_handle = lse;
    p_.y = rows_of<T>(y_handle);
    p_.lse = lse_handle.mutable_data<T>();
    p_.dy = rows_of<T>(dy);
    p_.dq = rows_of<T>(gradients.q);
    const int64_t packed = p_.B * p_.kv_heads() * p_.strips * W_ * p_.d_padded;
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
      Turn turn{done_data + i, nullptr, 0, (p_.strips + p_.tile_strips - 1) / p_.tile_strips};
      if (i >= chains) {
        turn.before = done_data + i - chains;
        turn.before_first = p_.visible.first(task_of(i - chains).block * p_.block_rows) / (W_ * p_.tile_strips);
      }
      code_.backward(p_, task_of(i), turn, workspace);
    });
    if (gradients.k) unpack_rows(p_.dk, gradients.k);
    if (gradients.v) unpack_rows(p_.dv, gradients.v);
    finish_stage(gradients.pre, p_.pre, tasks, task_of);
    finish_stage(gradients.post, p_.post, tasks, task_of);
  }

 private:
  static constexpr int64_t kSegment = 256;  // keys per piece of a decoded row

  int64_t segments_of(int64_t row) const {
    const int64_t t = row / p_.G % p_.queries, n = p_.visible.end(t, p_.keys) - p_.visible.first(t);
    return n <= 0 ? 0 : (n + kSegment - 1) / kSegment;
  }

  // From each segment's maximum and sum to the factor that turns its exponentials into probabilities.
  // statistics: [segment][top, sum, factor][M'].
  void combine_sums(int64_t segments, T* statistics, int64_t heads) {
    for (int64_t m = 0; m < heads; ++m) {
      auto at = [&](int64_t s, int64_t what) -> T& { return statistics[(s * 3 + what) * heads + m]; };
      T top = std::numeric_limits<T>::lowest(), sum = 0;
      for (int64_t s = 0; s < segments; ++s) top = std::max(top, at(s, 0));
      for (int64_t s = 0; s < segments; ++s) sum += at(s, 1) * std::exp(at(s, 0) - top);
      for (int64_t s = 0; s < segments; ++s) at(s, 2) = std::exp(at(s, 0) - top) / sum;
    }
  }

  static bool none(const Compose& c) { return !c.base && !c.q_down && !c.k_down && !c.q_gate && !c.k_gate; }

  Tensor keep(Tensor x) { return kept_.emplace_back(std::move(x)); }
  T* buffer(int64_t n) { return keep(empty({n}, dtype_of<T>())).template mutable_data<T>(); }

  // Runs body(task, workspace) for tasks 0, 1, ...: every thread takes the next one.
  void run(int64_t tasks, size_t bytes, FunctionRef<void(int64_t, void*)> body) {
    const int64_t workers = std::min<int64_t>(threads(), tasks);
    std::vector<Tensor> workspaces;  // one a worker: buffers of this size are more often used again than one large one
    for (int64_t i = 0; i < workers; ++i) workspaces.push_back(empty({static_cast<int64_t>(bytes)}, DType::u8));
    std::atomic<int64_t> next{0};
    parallel_for(workers, 1, [&](int64_t worker, int64_t) {
      uint8_t* workspace = workspaces[static_cast<size_t>(worker)].mutable_data<uint8_t>();
      for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < tasks;) body(i, workspace);
    });
  }

  // (B, S, H, d) -> [B][H][strips][d][W], zeros beyond S.
  const T* pack_strips(const Tensor& x) {
    const int64_t heads = x.dim(2), d = p_.d, strips = p_.strips;
    T* out = buffer(p_.B * heads * strips * d * W_);
    const Rows<const T> from = rows_of<T>(x);
    parallel_for(p_.B * heads * strips, grain_for(d * W_), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t strip = i % strips, head = i / strips % heads, b = i / strips / heads, key = strip * W_;
        const T* in = from.data + b * from.stride[0] + key * from.stride[1] + head * from.stride[2];
        const int64_t count = std::min(W_, p_.keys - key);
        T* o = out + i * d * W_;
        for (int64_t l = 0; l < W_; ++l) {  // rows lie far apart, mostly in the same cache set: one after the other
          const T* row = in + l * from.stride[1];
          for (int64_t e = 0; e < d; ++e) o[e * W_ + l] = l < count ? row[e] : T(0);
        }
      }
    });
    return out;
  }

  // (B, S, H, d) -> [B][H][strips W][d_padded], zeros beyond S and d.
  const T* pack_rows(const Tensor& x) {
    const int64_t heads = x.dim(2), d = p_.d, keys = p_.strips * W_;
    T* out = buffer(p_.B * heads * keys * p_.d_padded);
    const Rows<const T> from = rows_of<T>(x);
    parallel_for(p_.B * heads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        T* o = out + i * keys * p_.d_padded;
        for (int64_t key = 0; key < keys; ++key, o += p_.d_padded) {
          const T* in = from.data + i / heads * from.stride[0] + key * from.stride[1] + i % heads * from.stride[2];
          const int64_t count = key < p_.keys ? d : 0;
          for (int64_t e = 0; e < count; ++e) o[e] = in[e];
          for (int64_t e = count; e < p_.d_padded; ++e) o[e] = 0;
        }
      }
    });
    return out;
  }

  // The way back.
  void unpack_rows(const T* from, Tensor& x) {
    const int64_t heads = x.dim(2), keys = p_.strips * W_;
    const Rows<T> to = rows_of<T>(x);
    parallel_for(p_.B * p_.keys, grain_for(heads * p_.d), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t b = i / p_.keys, key = i % p_.keys;
        for (int64_t head = 0; head < heads; ++head) {
          const T* in = from + ((b * heads + head) * keys + key) * p_.d_padded;
          std::copy_n(in, p_.d, to.data + b * to.stride[0] + key * to.stride[1] + head * to.stride[2]);
        }
      }
    });
  }

  void describe(const Compose& c, Stage<T>& s) {
    s.present = !none(c);
    if (!s.present) return;
    const int64_t q_rank = c.q_down ? c.q_down.dim(3) : 0, k_rank = c.k_down ? c.k_down.dim(3) : 0;
    s.query_rank = q_rank > 0;
    s.key_rank = k_rank > 0;
    s.query_rank_size = q_rank;
    s.key_rank_size = k_rank;
    s.pairs = (std::max(q_rank, k_rank) + 1) / 2;
    s.items = 4 * s.pairs + 1;
    s.q_down = rows_of<T>(c.q_down);
    s.q_up = rows_of<T>(c.q_up);
    s.q_gate = rows_of<T>(c.q_gate);
    s.k_down = rows_of<T>(c.k_down);
    s.k_up = rows_of<T>(c.k_up);
    s.k_gate = rows_of<T>(c.k_gate);
    if (!c.base) return;
    const Tensor base = keep(c.base.contiguous());
    s.base = base.data<T>();
    s.base_transposed = keep(base.transposed().contiguous()).template data<T>();
  }

  // The key-side factors in strips.
  void pack(const Compose& c, Stage<T>& s) {
    if (!s.present) return;
    T* packed = buffer(p_.B * p_.G * p_.strips * s.items * p_.M * W_);
    s.keys = packed;
    for_key_factors(s, [&](int64_t b, int64_t g, int64_t strip) {
      T* out = packed + ((b * p_.G + g) * p_.strips + strip) * s.items * p_.M * W_;
      std::fill_n(out, s.items * p_.M * W_, T(0));
      for_key_items(c, s, [&](const Tensor& x, int64_t rank, int64_t item) {
        const Rows<const T> from = rows_of<T>(x);
        for_lanes(strip, [&](int64_t key, int64_t lane) {
          const T* in =
              from.data + b * from.stride[0] + key * from.stride[1] + g * from.stride[2] + rank * from.stride[3];
          for (int64_t m = 0; m < p_.M; ++m) out[(item * p_.M + m) * W_ + lane] = in[m];
        });
      });
    });
  }

  void stage_gradients(Compose& c, Stage<T>& s, int64_t tasks) {
    s.dq_down = rows_of<T>(c.q_down);
    s.dq_up = rows_of<T>(c.q_up);
    s.dq_gate = rows_of<T>(c.q_gate);
    if (c.k_down || c.k_up || c.k_gate) {
      s.dkeys = keep(zeros({p_.B * p_.G * p_.strips * s.items * p_.M * W_}, dtype_of<T>())).template mutable_data<T>();
    }
    if (c.base) s.dbase = keep(zeros({tasks * p_.M * p_.M}, dtype_of<T>())).template mutable_data<T>();
  }

  // Unpacks the key factors' gradients and adds up the pieces of the static term's.
  template <class TaskOf>
  void finish_stage(Compose& c, const Stage<T>& s, int64_t tasks, TaskOf&& task_of) {
    if (s.dkeys) {
      for_key_factors(s, [&](int64_t b, int64_t g, int64_t strip) {
        const T* in = s.dkeys + ((b * p_.G + g) * p_.strips + strip) * s.items * p_.M * W_;
        for_key_items(c, s, [&](Tensor& x, int64_t rank, int64_t item) {
          const Rows<T> to = rows_of<T>(x);
          for_lanes(strip, [&](int64_t key, int64_t lane) {
            T* out = to.data + b * to.stride[0] + key * to.stride[1] + g * to.stride[2] + rank * to.stride[3];
            for (int64_t m = 0; m < p_.M; ++m) out[m] = in[(item * p_.M + m) * W_ + lane];
          });
        });
      });
    }
    if (s.dbase) {
      c.base.fill(0);
      T* sum = c.base.template mutable_data<T>();
      const int64_t size = p_.M * p_.M;
      for (int64_t i = 0; i < tasks; ++i) {
        T* out = sum + task_of(i).g * size;
        for (int64_t j = 0; j < size; ++j) out[j] += s.dbase[i * size + j];
      }
    }
  }

  template <class Body>
  void for_key_factors(const Stage<T>& s, Body&& body) {
    parallel_for(p_.B * p_.G * p_.strips, grain_for(s.items * p_.M * W_), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) body(i / p_.strips / p_.G, i / p_.strips % p_.G, i % p_.strips);
    });
  }
  template <class C, class Each>
  void for_key_items(C& c, const Stage<T>& s, Each&& each) {
    for (int64_t rank = 0; c.k_down && rank < c.k_down.dim(3); ++rank) each(c.k_down, rank, rank);
    for (int64_t rank = 0; c.k_up && rank < c.k_up.dim(3); ++rank) each(c.k_up, rank, 2 * s.pairs + rank);
    if (c.k_gate) each(c.k_gate, 0, 4 * s.pairs);
  }
  template <class Each>
  void for_lanes(int64_t strip, Each&& each) {
    for (int64_t lane = 0; lane < W_ && strip * W_ + lane < p_.keys; ++lane) each(strip * W_ + lane, lane);
  }

  const DcmhaInputs& x_;
  const Kernels<T>& code_;
  int64_t W_;
  Problem<T> p_{};
  std::vector<Tensor> kept_;  // what the pointers in p_ point into
};

// Calls body<T>() for the two types that the kernels compute in.
template <class Body>
void visit(In q, Body&& body) {
  if (q.dtype() == DType::f64) return body.template operator()<double>();
  body.template operator()<float>();
}

}  // namespace
}  // namespace dcmha

static void dcmha_forward(const DcmhaInputs& x, Out y, Out lse) {
  dcmha::visit(x.q, [&]<class T>() { dcmha::Call<T>(x).forward(y, lse); });
}

static void dcmha_backward(const DcmhaInputs& x, In y, In lse, In dy, DcmhaGradients& gradients) {
  dcmha::visit(x.q, [&]<class T>() { dcmha::Call<T>(x).backward(y, lse, dy, gradients); });
}

constinit const AttentionKernels attention_kernels{
    .forward = dcmha_forward,
    .backward = dcmha_backward,
};

}  // namespace braid::cpu
