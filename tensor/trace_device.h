// A device without memory. While a TraceDevice lives, the CPU of this thread computes nothing: kernels allocate what
// they would, count their FLOPs and leave out their loops; tensors take address space alone. So the memory and the
// FLOPs of a step of any size are found by running it.
//
//   const TraceDevice trace;                    // kCpu is this device for this thread from now on
//   ... a model, a step ...
//   trace.flops(), memory_by_use(kCpu)
//
// Values that nothing on the host has written are 0: ids, losses, norms.
#pragma once
#include <cstdint>
#include <map>

#include "braid/tensor/scoped_value.h"
#include "braid/tensor/storage.h"

namespace braid {

struct DcmhaInputs;
class Tensor;

// A multiply-add is 2; elementwise work and softmax are not counted. Backward, attention counts twice its forward pass,
// whatever its kernel or its ops compute again.
struct TracedFlops {
  double products = 0;
  double attention = 0;  // q k and p v over unmasked keys, and what else multiplies these scores
  double low_rank = 0;   // of Compose over unmasked keys, as the next two
  double diagonal = 0;
  double static_proj = 0;
  double total() const { return products + attention + low_rank + diagonal + static_proj; }
  TracedFlops operator-(const TracedFlops& before) const;
  void add_product(int64_t results, int64_t depth) { products += 2.0 * double(results) * double(depth); }
  // of_scores: FLOPs of further products with the scores of all keys, of which those of unmasked keys count.
  void add_attention(const DcmhaInputs& x, double passes, double of_scores = 0);
};
namespace detail {
// Where kernels that this thread calls add their FLOPs, whether they compute or not; null: nowhere.
extern constinit thread_local TracedFlops* counted_flops;
}  // namespace detail

// Used by the thread that made it. Tensors of before must outlive it, its own must be gone before it.
class TraceDevice final : private Allocator {
 public:
  // gpu: derivatives keep cheap results, and attention holds scores, as on a GPU (tensor/kernels/attention.h).
  explicit TraceDevice(bool gpu = false);
  ~TraceDevice() override;
  TraceDevice(const TraceDevice&) = delete;
  TraceDevice& operator=(const TraceDevice&) = delete;

  const TracedFlops& flops() const { return flops_; }
  bool gpu() const { return gpu_; }

  static TraceDevice* current();  // of this thread; null: it computes
  // What the host may read is computed all the same: short loops outside of kernels (kernel: nullptr), and copies, but
  // for those of more than a few floats.
  static bool runs_loop(const char* kernel, bool is_short);
  static bool leaves_out(const Tensor& result);  // a copy or a sum that gives it
  Allocator& allocator() { return *this; }

 private:
  struct Area {  // of address space
    int64_t bytes = 0, used = 0, tensors = 0;
  };
  char* reserve(int64_t bytes, int64_t least);
  void* allocate(int64_t bytes) override;
  void release(void* data, int64_t bytes) noexcept override;
  MemoryStats stats() const override { return stats_; }
  void reset_peak() override { stats_.peak = stats_.current; }
  void release_cached() override {}

  bool gpu_;
  TracedFlops flops_;
  ScopedValue<TracedFlops*> counted_{detail::counted_flops, &flops_};
  MemoryStats stats_;
  std::map<char*, Area> areas_;  // by their ends
  char* open_ = nullptr;         // end of the area that tensors come from
  char* large_ = nullptr;        // of tensors that are larger than an area
  int64_t large_bytes_ = 0;
};

// While it lives, what this thread computes is no part of a trace but counted here: for ops that compute masked keys,
// or once more what they had computed, and then add to the trace what a kernel would. Without a trace it does nothing.
class TracedApart {
 public:
  TracedApart();
  ~TracedApart();
  TracedApart(const TracedApart&) = delete;
  TracedApart& operator=(const TracedApart&) = delete;

  const TracedFlops& flops() const { return flops_; }
  // These add to the trace.
  void add(const TracedFlops& flops, double times) const;
  void add_attention(const DcmhaInputs& x, double passes, double of_scores = 0) const;

 private:
  TracedFlops flops_;
  TracedFlops* trace_;
};

}  // namespace braid
