#include "braid/tensor/cpu/convolution/dnnl_plan.h"

#include <algorithm>
#include <array>
#include <dnnl.hpp>
#include <list>
#include <map>
#include <mutex>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "braid/tensor/base/lock_at_fork.h"

namespace braid::cpu {

using dnnl::memory;

struct DnnlPlan::Parts {
  std::array<memory::desc, 3> layouts;  // oneDNN's, by operand
  std::array<memory::desc, 3> plain;
  std::array<dnnl::reorder, 3> copies;  // empty where the layouts are equal; of the result, from oneDNN's to the plain
  std::array<int, 3> arguments;
  dnnl::primitive convolution;
  memory::desc scratch;
};

namespace {

using Parts = DnnlPlan::Parts;

// f is a call of oneDNN's C++ interface, whose exceptions become Braid's.
template <class F>
auto guarded(F&& f) {
  try {
    return f();
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_out_of_memory) throw OutOfMemory("out of memory: a convolution by oneDNN gets no buffer");
    fail("convolution", str("oneDNN failed: ", error.message, " (status ", int(error.status),
                            "); configure with -DBRAID_DNNL=OFF to do without oneDNN"));
  }
}

const dnnl::engine& engine() {
  static const auto* instance = new dnnl::engine(dnnl::engine::kind::cpu, 0);  // tensors may outlive static objects
  return *instance;
}

memory::desc layout(const memory::dims& sizes, int64_t first_stride) {
  memory::dims strides(sizes.size(), 1);
  for (size_t axis = sizes.size() - 1; axis-- > 0;) strides[axis] = strides[axis + 1] * sizes[axis + 1];
  if (sizes[0] > 1) strides[0] = first_stride;
  return {sizes, memory::data_type::f32, strides};
}

memory::desc any_layout(const memory::desc& of) {
#if DNNL_VERSION_MAJOR >= 3
  return {of.get_dims(), memory::data_type::f32, memory::format_tag::any};
#else
  return {of.dims(), memory::data_type::f32, memory::format_tag::any};
#endif
}

dnnl::primitive_attr attributes() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

struct Sizes {
  memory::desc x, weight, y;
  memory::dims strides, dilations, before, after;
};

// oneDNN 2 describes a convolution in an object of its own, oneDNN 3 does not. hint: forward, for a gradient.
template <class Convolution, class... Kind>
typename Convolution::primitive_desc describe(const Sizes& s, const memory::desc& first, const memory::desc& second,
                                              const memory::desc& third, [[maybe_unused]] const auto* hint,
                                              Kind... kind) {
  constexpr auto direct = dnnl::algorithm::convolution_direct;
  constexpr bool is_forward = sizeof...(kind) > 0;
#if DNNL_VERSION_MAJOR >= 3
  if constexpr (is_forward)
    return {engine(),  kind...,     direct,   first,   second,       third,
            s.strides, s.dilations, s.before, s.after, attributes(), true};
  else
    return {engine(),    direct,   first,   second, third,        s.strides,
            s.dilations, s.before, s.after, *hint,  attributes(), true};
#else
  const typename Convolution::desc desc(kind..., direct, first, second, third, s.strides, s.dilations, s.before,
                                        s.after);
  if constexpr (is_forward)
    return {desc, attributes(), engine(), true};
  else
    return {desc, attributes(), engine(), *hint, true};
#endif
}

Sizes sizes_of(const DnnlProblem& p) {
  const ConvolutionAxis &r = p.shape.rows, &c = p.shape.columns;
  // Zeros behind the image; windows that end before its last pixel need none.
  const auto after = [](const ConvolutionAxis& a) {
    return std::max<int64_t>((a.count - 1) * a.stride + a.dilation * (a.kernel - 1) + 1 - a.size - a.before, 0);
  };
  return {.x = layout({p.images, p.inputs, r.size, c.size}, p.x_stride),
          .weight = layout({p.outputs, p.inputs, r.kernel, c.kernel}, p.weight_stride),
          .y = layout({p.images, p.outputs, r.count, c.count}, p.y_stride),
          .strides = {r.stride, c.stride},
          .dilations = {r.dilation - 1, c.dilation - 1},
          .before = {r.before, c.before},
          .after = {after(r), after(c)}};
}

// Makes the convolution that is described; false where oneDNN has none, or a plain loop.
template <class Description, class Convolution>
bool complete(Parts& parts, const Description& d, std::type_identity<Convolution>) {
  if (!d || std::string_view(d.impl_info_str()).starts_with("ref")) return false;
  parts.convolution = Convolution(d);
  parts.scratch = d.scratchpad_desc();
  return true;
}

std::unique_ptr<const Parts> prepare(const DnnlProblem& p) {
  const Sizes s = sizes_of(p);
  auto parts = std::make_unique<Parts>();
  parts->plain = {s.x, s.weight, s.y};
  const memory::desc x = any_layout(s.x), weight = any_layout(s.weight), y = any_layout(s.y);
  const auto forward = describe<dnnl::convolution_forward>(
      s, x, weight, y, static_cast<const int*>(nullptr),
      p.pass == ConvolutionPass::forward ? dnnl::prop_kind::forward_inference : dnnl::prop_kind::forward_training);
  if (!forward) return nullptr;
  DnnlPlan::Operand result = DnnlPlan::y;
  bool fast = false;
  if (p.pass == ConvolutionPass::forward) {
    fast = complete(*parts, forward, std::type_identity<dnnl::convolution_forward>());
    if (fast) parts->layouts = {forward.src_desc(), forward.weights_desc(), forward.dst_desc()};
    parts->arguments = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
  } else if (p.pass == ConvolutionPass::input_gradient) {
    const auto d = describe<dnnl::convolution_backward_data>(s, x, weight, y, &forward);
    fast = complete(*parts, d, std::type_identity<dnnl::convolution_backward_data>());
    if (fast) parts->layouts = {d.diff_src_desc(), d.weights_desc(), d.diff_dst_desc()};
    parts->arguments = {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST};
    result = DnnlPlan::x;
  } else {
    const auto d = describe<dnnl::convolution_backward_weights>(s, x, weight, y, &forward);
    fast = complete(*parts, d, std::type_identity<dnnl::convolution_backward_weights>());
    if (fast) parts->layouts = {d.src_desc(), d.diff_weights_desc(), d.diff_dst_desc()};
    parts->arguments = {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST};
    result = DnnlPlan::weight;
  }
  if (!fast) return nullptr;
  for (const auto operand : {DnnlPlan::x, DnnlPlan::weight, DnnlPlan::y}) {
    const memory::desc &plain = parts->plain[operand], &chosen = parts->layouts[operand];
    if (plain == chosen) continue;
    const dnnl::reorder::primitive_desc d(engine(), operand == result ? chosen : plain, engine(),
                                          operand == result ? plain : chosen, attributes());
    if (d.scratchpad_desc().get_size() > 0) return nullptr;  // no copy of f32 does today
    parts->copies[operand] = dnnl::reorder(d);
  }
  return parts;
}

memory at(const memory::desc& layout, const float* data) {
  return {layout, engine(), const_cast<float*>(data)};  // oneDNN writes to results alone
}

void execute(const dnnl::primitive& primitive, const std::unordered_map<int, memory>& arguments) {
  dnnl::stream stream(engine());
  primitive.execute(stream, arguments);
  stream.wait();
}

// The plans that were used last.
class Plans {
 public:
  Plans() { detail::lock_at_fork(mutex_); }

  std::shared_ptr<const DnnlPlan> find_or_make(const DnnlProblem& p) {
    const ConvolutionAxis &r = p.shape.rows, &c = p.shape.columns;
    const Key key = {int64_t(p.pass), p.images, p.inputs,   p.outputs,  p.x_stride, p.weight_stride, p.y_stride,
                     r.size,          r.kernel, r.stride,   r.dilation, r.before,   r.count,         c.size,
                     c.kernel,        c.stride, c.dilation, c.before,   c.count};
    const std::lock_guard lock(mutex_);
    if (const auto it = places_.find(key); it != places_.end()) {
      plans_.splice(plans_.begin(), plans_, it->second);
      return plans_.front().second;
    }
    std::unique_ptr<const Parts> parts = guarded([&] { return prepare(p); });
    plans_.emplace_front(key, parts ? std::make_shared<const DnnlPlan>(std::move(parts)) : nullptr);
    places_.emplace(key, plans_.begin());
    if (plans_.size() > DnnlPlan::kMaxPlans) {
      places_.erase(plans_.back().first);
      plans_.pop_back();
    }
    return plans_.front().second;
  }

 private:
  using Key = std::array<int64_t, 19>;
  using List = std::list<std::pair<Key, std::shared_ptr<const DnnlPlan>>>;
  std::mutex mutex_;
  List plans_;  // the last used first
  std::map<Key, List::iterator> places_;
};

}  // namespace

std::shared_ptr<const DnnlPlan> DnnlPlan::of(const DnnlProblem& p) {
  static auto* plans = new Plans;  // never destroyed, as its mutex must be
  return plans->find_or_make(p);
}

DnnlPlan::DnnlPlan(std::unique_ptr<const Parts> parts) : parts_(std::move(parts)) {}
DnnlPlan::~DnnlPlan() = default;

size_t DnnlPlan::bytes(Operand operand) const {
  return parts_->copies[operand] ? parts_->layouts[operand].get_size() : 0;
}

size_t DnnlPlan::scratch_bytes() const { return parts_->scratch.get_size(); }

void DnnlPlan::to_dnnl(Operand operand, const float* plain, float* buffer) const {
  guarded([&] {
    execute(parts_->copies[operand],
            {{DNNL_ARG_FROM, at(parts_->plain[operand], plain)}, {DNNL_ARG_TO, at(parts_->layouts[operand], buffer)}});
  });
}

void DnnlPlan::to_plain(Operand operand, const float* buffer, float* plain) const {
  guarded([&] {
    execute(parts_->copies[operand],
            {{DNNL_ARG_FROM, at(parts_->layouts[operand], buffer)}, {DNNL_ARG_TO, at(parts_->plain[operand], plain)}});
  });
}

void DnnlPlan::run(const float* x_data, const float* weight_data, const float* y_data, float* scratch) const {
  guarded([&] {
    const auto& [layout_x, layout_weight, layout_y] = parts_->layouts;
    const auto& [of_x, of_weight, of_y] = parts_->arguments;
    execute(parts_->convolution, {{of_x, at(layout_x, x_data)},
                                  {of_weight, at(layout_weight, weight_data)},
                                  {of_y, at(layout_y, y_data)},
                                  {DNNL_ARG_SCRATCHPAD, at(parts_->scratch, scratch)}});
  });
}

}  // namespace braid::cpu
