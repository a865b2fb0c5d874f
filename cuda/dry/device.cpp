// The dry device: its log, its memory, its table.
#include <sys/mman.h>

#include <algorithm>

#include "braid/cuda/device/language.h"
// (first: cuda/runtime/launch.h needs dim3)
#include "braid/cuda/dry/log.h"
#include "braid/cuda/runtime/launch.h"
#include "braid/tensor/kernels/measured.h"
#include "braid/tensor/layer_scope.h"
#include "braid/tensor/trace_device.h"

namespace braid {

namespace {

DryDevice::State* current = nullptr;
cuda::dry::OpScope* op = nullptr;

// Address space that no one can read or write.
class AddressSpace final : public cuda::MemorySource {
 public:
  explicit AddressSpace(DryDevice::State& state) : state_(state) {}
  void* get(int64_t bytes) override {
    if (bytes > free_bytes()) return nullptr;
    void* data =
        mmap(nullptr, static_cast<size_t>(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) return nullptr;
    taken_[data] = bytes;
    used_ += bytes;
    ++state_.counts.allocations;
    return data;
  }
  void give_back(void* data) override {
    const auto it = taken_.find(data);
    munmap(data, static_cast<size_t>(it->second));
    used_ -= it->second;
    taken_.erase(it);
    ++state_.counts.frees;
  }
  int64_t free_bytes() override { return state_.gpu.memory - used_; }
  std::string name() override { return str("the dry device (", state_.gpu.name, ")"); }

 private:
  DryDevice::State& state_;
  std::map<void*, int64_t> taken_;
  int64_t used_ = 0;
};

// "dcmha_weights<N>, {.grid = ...}, ..." -> "dcmha_weights"; of "held ? a<T> : b<T>" the last one.
std::string_view kernel_name(std::string_view text, bool is_function) {
  int depth = 0;
  size_t end = 0;
  while (end < text.size() && (text[end] != ',' || depth > 0)) {
    depth += text[end] == '<' ? 1 : text[end] == '>' ? -1 : 0;
    ++end;
  }
  text = text.substr(0, end);
  const size_t arguments = text.rfind('<');
  if (arguments == text.npos && !is_function) return "";
  text = text.substr(0, arguments);
  const size_t before = text.find_last_of(" :?(");
  return before == text.npos ? text : text.substr(before + 1);
}

}  // namespace

namespace cuda::dry {

DryDevice::State& state() {
  check(current, "cuda", "there is no dry device any more");
  return *current;
}

OpScope::OpScope(const braid::detail::MeasuredCall& call)
    : name_(detail::running_kernel()), phase_(call.phase), bytes_(call.bytes), outer_(std::exchange(op, this)) {
  if (!call.attention) return;
  TracedFlops flops;
  flops.add_attention(*call.attention, call.backward ? 2 : 1);
  flops_ = flops.total();
}
OpScope::~OpScope() {
  op = outer_;
  if (launches_.empty() || !current) return;
  std::vector<DryWork>& work = current->pool != 0 ? current->captured : current->log;
  const auto known = [&](size_t i) { return work[i].bytes > 0; };
  if (std::none_of(launches_.begin(), launches_.end(), known)) work[launches_.front()].bytes = bytes_;
  const auto counted = [&](size_t i) { return work[i].flops > 0; };
  const auto scores = std::ranges::find_if(launches_, [&](size_t i) { return work[i].scores > 0; });
  if (scores != launches_.end() && std::ranges::none_of(launches_, counted)) work[*scores].flops = flops_;
}

void enqueue(DryWork work) {
  DryDevice::State& s = state();
  std::vector<DryWork>& to = s.pool != 0 ? s.captured : s.log;
  work.layer = detail::running_layer;
  if (op) {
    op->launches_.push_back(to.size());
    if (work.name.empty()) work.name = op->name_;
    const OpScope* call = op;
    while (call->outer_) call = call->outer_;
    work.op = call->name_;
    work.phase = call->phase_;
  }
  to.push_back(work);
}

void enqueue_kernel(const char* text, bool is_function, const Launch& shape) {
  DryWork work{.name = kernel_name(text, is_function)};
  const auto set = [](unsigned(&to)[3], const dim3& from) { to[0] = from.x, to[1] = from.y, to[2] = from.z; };
  set(work.grid, shape.grid);
  set(work.block, shape.block);
  work.bytes = shape.bytes;
  work.scores = shape.scores;
  enqueue(work);
}

// A model without values, on kMeta, can move here.
static void transfer(In x, Out y) {
  if (x.device() != kMeta) stream_kernels.transfer(x, y);
}

}  // namespace cuda::dry

namespace {
struct Measured {
  static const Backend& table() { return cuda_backend(0); }
  using Scope = cuda::dry::OpScope;
};
}  // namespace

DryDevice::DryDevice(const DryGpu& gpu) : state_(std::make_unique<State>()) {
  check(!current, "cuda", "there is a dry device already; one at a time is possible");
  state_->gpu = gpu;
  state_->allocator =
      std::make_unique<cuda::CachingAllocator>(std::make_unique<AddressSpace>(*state_), cuda::exact_allocations());
  static const Backend table = [] {
    Backend b = detail::measured<Measured>();
    b.name = "dry";
    b.stream.transfer = cuda::dry::transfer;
    return b;
  }();
  current = state_.get();
  detail::dry_backend = &table;
}
DryDevice::~DryDevice() {
  state_->workspace = {};
  detail::dry_backend = nullptr;
  current = nullptr;
}

const std::vector<DryWork>& DryDevice::log() const { return state_->log; }
const DryCounts& DryDevice::counts() const { return state_->counts; }
void DryDevice::clear() {
  state_->log.clear();
  state_->counts = {};
}

}  // namespace braid
