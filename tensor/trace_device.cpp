#include "braid/tensor/trace_device.h"

#include <sys/mman.h>

#include <algorithm>
#include <string_view>

#include "braid/tensor/base/integers.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/kernels/backend.h"

namespace braid {

namespace {
constinit thread_local TraceDevice* current_trace = nullptr;
constexpr int64_t kArea = int64_t{1} << 36;  // bytes of address space that tensors share
constexpr int64_t kSmallArea = int64_t{1}
                               << 28;  // of them where address space is limited (ulimit -v, strict overcommit)
}  // namespace

constinit thread_local TracedFlops* detail::counted_flops = nullptr;

TracedFlops TracedFlops::operator-(const TracedFlops& b) const {
  return {products - b.products, attention - b.attention, low_rank - b.low_rank, diagonal - b.diagonal,
          static_proj - b.static_proj};
}

TraceDevice* TraceDevice::current() { return current_trace; }
bool TraceDevice::runs_loop(const char* kernel, bool is_short) {
  return kernel ? kernel == std::string_view("copy") : is_short;
}
bool TraceDevice::leaves_out(const Tensor& result) {
  constexpr int64_t kFew = 64;
  return current_trace && is_float(result.dtype()) && result.numel() > kFew;
}

TraceDevice::TraceDevice(bool gpu) : gpu_(gpu) {
  check(!current_trace, "trace", "a trace runs on this thread already; one at a time is possible");
  current_trace = this;
  detail::reset_memory_by_use(kCpu);
}

TraceDevice::~TraceDevice() {
  current_trace = nullptr;
  for (const auto& [end, area] : areas_) munmap(end - area.bytes, static_cast<size_t>(area.bytes));
}

// The end of a new area of `bytes`; of `least` where the system does not give so many.
char* TraceDevice::reserve(int64_t bytes, int64_t least) {
  void* begin = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (begin == MAP_FAILED && least < bytes) return reserve(least, least);
  if (begin == MAP_FAILED)
    throw OutOfMemory("cannot trace a step: the system gives no " + detail::mebibytes(bytes) + " of address space");
  char* end = static_cast<char*>(begin) + bytes;
  areas_[end] = {bytes, 0, 0};
  return end;
}

// Nothing is used twice, so every byte that nobody has written is 0.
void* TraceDevice::allocate(int64_t bytes) {
  const int64_t size = std::max<int64_t>(64, detail::round_up(bytes, 64));
  stats_.current += size;
  stats_.peak = std::max(stats_.peak, stats_.current);
  if (size > kArea) {  // nothing is computed: they may lie at one place
    if (size > large_bytes_) {
      large_ = reserve(size, size) - size;
      large_bytes_ = size;
    }
    return large_;
  }
  if (!open_ || areas_[open_].used + size > areas_[open_].bytes) open_ = reserve(kArea, std::max(kSmallArea, size));
  Area& area = areas_[open_];
  char* data = open_ - area.bytes + area.used;
  area.used += size;
  ++area.tensors;
  return data;
}

void TraceDevice::release(void* data, int64_t bytes) noexcept {
  const int64_t size = std::max<int64_t>(64, detail::round_up(bytes, 64));
  stats_.current -= size;
  if (size > kArea) return;
  const auto at = areas_.upper_bound(static_cast<char*>(data));
  if (--at->second.tensors > 0 || at->first == open_) return;
  munmap(at->first - at->second.bytes, static_cast<size_t>(at->second.bytes));
  areas_.erase(at);
}

void TracedFlops::add_attention(const DcmhaInputs& x, double passes, double of_scores) {
  const int64_t B = x.q.dim(0), T = x.q.dim(1), N = x.q.dim(2), d = x.q.dim(3), S = x.k.dim(1), dv = x.v.dim(3);
  double pairs = 0;  // of a query and an unmasked key
  for (int64_t t = 0; t < T; ++t) pairs += double(std::max<int64_t>(0, x.mask.end(t, S) - x.mask.first(t)));
  if (of_scores > 0) attention += passes * pairs * (of_scores / (double(T) * double(S)));
  pairs *= double(B) * double(N) * passes;
  attention += pairs * 2 * double(d + dv);
  for (const HeadMixing* mixing : {&x.pre, &x.post}) {
    for (const Tensor* down : {&mixing->q_down, &mixing->k_down})
      if (*down) low_rank += pairs * 4 * double(down->dim(3));
    for (const Tensor* gate : {&mixing->q_gate, &mixing->k_gate})
      if (*gate) diagonal += pairs * 2;
    if (mixing->base) static_proj += pairs * 2 * double(mixing->base.dim(-1));
  }
}

TracedApart::TracedApart() : trace_(TraceDevice::current() ? detail::counted_flops : nullptr) {
  if (trace_) detail::counted_flops = &flops_;
}
TracedApart::~TracedApart() {
  if (trace_) detail::counted_flops = trace_;
}

void TracedApart::add(const TracedFlops& flops, double times) const {
  if (!trace_) return;
  for (double TracedFlops::*part : {&TracedFlops::products, &TracedFlops::attention, &TracedFlops::low_rank,
                                    &TracedFlops::diagonal, &TracedFlops::static_proj})
    trace_->*part += times * (flops.*part);
}

void TracedApart::add_attention(const DcmhaInputs& x, double passes, double of_scores) const {
  if (trace_) trace_->add_attention(x, passes, of_scores);
}

}  // namespace braid
