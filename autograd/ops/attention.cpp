// The attention ops: the choice of an implementation, and the one by the device's kernels. The others are
// attention_chunked.cpp and the definition, attention_reference.cpp.
#include <algorithm>
#include <tuple>

#include "braid/autograd/attention_maps.h"
#include "braid/autograd/ops.h"
#include "braid/autograd/ops/attention_call.h"
#include "braid/autograd/saved.h"
#include "braid/tensor/kernels/backend.h"
#include "braid/tensor/parallel.h"
#include "braid/tensor/trace_device.h"

namespace braid {

namespace attention {

namespace {

// ---- checks ----

void check_options(const char* op, const SdpaOptions& options) {
  const auto not_negative = [&](const char* name, const char* zero, int64_t value) {
    check(value >= 0, op, [&] { return str("the ", name, " must be positive, or 0 for ", zero, "; got ", value); });
  };
  not_negative("window", "none", options.mask.window);
  not_negative("chunk", "automatic", options.chunk);
  not_negative("workspace", "automatic", options.workspace);
  check(options.mask.causal || options.mask.window == 0, op,
        "a window counts keys back from the query: it needs mask.causal = true; without causality use `attend`");
  check(options.key_lengths.empty() || !options.documents, op,
        "takes key_lengths or documents; documents already say which keys a query has");
  check(options.alignment == CausalAlignment::top_left || !options.documents, op,
        "documents are aligned by mask.offset: alignment must be top_left");
}

// ---- fused ----

// The inputs of a call as its derivative keeps them: queries and keys that come out of a norm and a rotation are
// computed again.
class SavedInputs {
 public:
  SavedInputs(const Call& call, const DcmhaInputs& x) : x_(x), q_(call.recorded[0]), k_(call.recorded[1]) {
    drop_one(q_, x_.q);
    drop_one(k_, x_.k);
  }
  DcmhaInputs get() const {
    DcmhaInputs x = x_;
    if (!x.q) x.q = q_.get().detach();
    if (!x.k) x.k = k_.get().detach();
    return rows_contiguous(x);
  }

 private:
  static void drop_one(Saved& saved, Tensor& values) {
    if (saved.is_recomputed())
      values = Tensor();
    else
      saved = Saved();
  }

  DcmhaInputs x_;
  Saved q_, k_;
};

// For the kernels to write: y (B, T, N, d), and where backward may follow the row statistics.
std::pair<Tensor, Tensor> fused_results(const Call& call, const DcmhaInputs& x) {
  Tensor y = empty(x.q.shape(), x.q.dtype(), x.q.device()), lse;
  if (recording(call.recorded))
    lse = empty({x.q.dim(0), x.q.dim(1), x.q.dim(2)}, accumulate_type(x.q.dtype()), x.q.device());
  return {std::move(y), std::move(lse)};
}

// For a gradient: heads first in memory where the input is and the kernel writes such memory directly, else contiguous.
Tensor gradient_memory(const Tensor& input, AttentionKernel kernel) {
  const bool heads_first =
      kernel == AttentionKernel::tensor_core && input.rank() == 4 && input.transposed(1, 2).is_contiguous();
  if (!heads_first) return empty_like(input);
  return empty({input.dim(0), input.dim(2), input.dim(1), input.dim(3)}, input.dtype(), input.device())
      .transposed(1, 2);
}

// The device's kernels. Backward needs the inputs, the row statistics and, without a mixing after softmax, y.
Tensor fused(const Call& call, const DcmhaInputs& x, const AttentionPlan& plan) {
  const Backend& device = backend(x.q.device());
  Tensor y, lse;
  std::tie(y, lse) = fused_results(call, x);
  device.attention.forward(plan, x, y, lse);
  auto backward_pass = [y, lse, plan, &device, saved = SavedInputs(call, x), required = call.required,
                        histories = call.histories](const Tensor& dy) -> Grads {
    const DcmhaInputs inputs = saved.get();
    if (recording()) return recorded_gradients(inputs, {}, histories, {}, dy);
    DcmhaGradients gradients = gradients_for(inputs, required, [&plan](const AttentionRole&, const Tensor& input) {
      return gradient_memory(input, plan.backward);
    });
    device.attention.backward(plan, inputs, y, lse, dy.contiguous(), gradients);
    return list_of(gradients);
  };
  return record(call.op, y, std::span<const Tensor>(call.recorded), differentiable(backward_pass));
}

// Whether samples have no key at all: their results are 0, and no kernel is called for them.
bool has_gaps(const std::vector<CallPart>& parts) {
  return std::ranges::any_of(parts, [](const CallPart& part) { return part.keys == 0; });
}

// Calls each(i) for every document. On the CPU short ones are shared out among the threads, since a short call keeps
// few of them busy; a long one has all threads to itself.
template <class Each>
void for_each_document(const std::vector<CallPart>& documents, bool on_cpu, Each&& each) {
  const auto work = [&](size_t i) { return static_cast<double>(documents[i].rows * documents[i].keys); };
  double sum = 0;
  for (size_t i = 0; i < documents.size(); ++i) sum += work(i);
  std::vector<size_t> short_ones;
  for (size_t i = 0; i < documents.size(); ++i) {
    if (on_cpu && !TraceDevice::current() && 2 * threads() * work(i) < sum)
      short_ones.push_back(i);
    else
      each(i);
  }
  parallel_for(static_cast<int64_t>(short_ones.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) each(short_ones[static_cast<size_t>(i)]);
  });
}

// One call of the device's kernels for each document, on its part of the tensors. The parts of one sample are
// contiguous, as results of kernels must be. Only the static term is shared: the sum over the documents is its
// gradient, rounded to the inputs' type once (on a GPU, whose kernels write that type, each document's part too).
Tensor fused(const Call& call, const DcmhaInputs& x, const std::vector<CallPart>& documents,
             const std::vector<AttentionPlan>& plans) {
  using enum AttentionRole::Positions;
  const Backend& device = backend(x.q.device());
  const bool on_cpu = x.q.device() == kCpu;
  Tensor y, lse;
  std::tie(y, lse) = fused_results(call, x);
  if (has_gaps(documents)) y.fill(0);
  for_each_document(documents, on_cpu, [&](size_t i) {
    if (documents[i].keys == 0) return;
    Tensor part = documents[i].part(y, queries), part_lse = documents[i].part(lse, queries);
    device.attention.forward(plans[i], part_of(x, documents[i]), part, part_lse);
  });
  auto backward_pass = [y, lse, plans, documents, on_cpu, &device, saved = SavedInputs(call, x),
                        required = call.required, histories = call.histories](const Tensor& dy) -> Grads {
    const DcmhaInputs inputs = saved.get();
    if (recording()) return recorded_gradients(inputs, {}, histories, documents, dy);
    const DType dtype = inputs.q.dtype(), part_type = on_cpu ? accumulate_type(dtype) : dtype;
    const Tensor d_result = dy.contiguous();
    DcmhaGradients gradients = gradients_for(inputs, required, [](const AttentionRole& role, const Tensor& input) {
      return role.positions == none ? zeros_for_sum(input) : zeros_like(input);
    });
    std::vector<DcmhaGradients> parts(documents.size(), gradients);
    for_each_document(documents, on_cpu, [&](size_t i) {
      const CallPart& document = documents[i];
      if (document.keys == 0) return;
      for_each_tensor(
          [&](const AttentionRole& role, Tensor& part) {
            if (!part) return;
            part = role.positions == none ? empty(part.shape(), part_type, part.device())
                                          : document.part(part, role.positions);
          },
          parts[i]);
      device.attention.backward(plans[i], part_of(inputs, document), document.part(y, queries),
                                document.part(lse, queries), document.part(d_result, queries), parts[i]);
    });
    for (size_t i = 0; i < parts.size(); ++i) {
      if (documents[i].keys == 0) continue;
      for_each_tensor(
          [](const AttentionRole& role, Tensor& whole, const Tensor& of_document) {
            if (whole && role.positions == none) whole.add_(of_document.to(whole.dtype()));
          },
          gradients, parts[i]);
    }
    return gradients_of_type(dtype, gradients);
  };
  return record(call.op, y, std::span<const Tensor>(call.recorded), differentiable(backward_pass));
}

// How the device computes the call, or why it cannot.
AttentionPlan plan_of(const DcmhaInputs& x, bool derivative) {
  const Backend& device = backend(x.q.device());
  if (!device.attention.forward) return {.unsupported_reason = str("there is no fused kernel on ", x.q.device())};
  return device.attention.plan(x, derivative);
}

// Checks the call, chooses its implementation once, and runs it.
Tensor attend(const char* op, const DcmhaInputs& x, const SdpaOptions& options) {
  check_inputs(op, x);
  check_options(op, options);
  const std::vector<CallPart> parts = parts_of(op, x, options);
  const AttentionExtras extras = extras_of(op, x, options);
  const bool composed = !extras.empty() || x.v.dim(3) != x.k.dim(3);
  check(!composed || options.impl != AttentionImpl::fused, op,
        "attend, bias, dropout, softcap and values of another size have no fused kernel: impl must be automatic, "
        "chunked or reference");
  const bool no_elements = x.q.numel() == 0 || x.k.numel() == 0 || x.v.numel() == 0;
  if (options.impl == AttentionImpl::reference || no_elements) return attention_reference(x, parts, extras);
  const Call call(op, x, extras);
  if (composed)
    add_attention_use("forward", "chunked", "no kernel takes attend, bias, dropout, softcap or wide values");
  if (composed || options.impl == AttentionImpl::chunked) return chunked(call, parts, options.chunk);
  const DcmhaInputs prepared = rows_contiguous(call.inputs);
  const bool derivative = recording(call.recorded);
  std::vector<AttentionPlan> plans;
  if (parts.empty()) plans.push_back(plan_of(prepared, derivative));
  for (const CallPart& part : parts)
    plans.push_back(part.keys == 0 ? AttentionPlan{} : plan_of(part_of(prepared, part), derivative));
  std::optional<std::string> unsupported_reason;
  for (const AttentionPlan& plan : plans)
    if (plan.unsupported_reason) unsupported_reason = plan.unsupported_reason;
  check(!unsupported_reason || options.impl == AttentionImpl::automatic, op,
        [&] { return *unsupported_reason + "; or use AttentionImpl::automatic, which then takes `chunked`"; });
  if (!unsupported_reason) return parts.empty() ? fused(call, prepared, plans[0]) : fused(call, prepared, parts, plans);
  add_attention_use("forward", "chunked", *unsupported_reason);
  return chunked(call, parts, options.chunk);
}

// In a type in which scores keep their digits, recorded.
DcmhaInputs with_wide_type(const DcmhaInputs& x) {
  return map_tensors(x, [](const Tensor& t) { return cast(t, accumulate_type(t.dtype())); });
}

}  // namespace

}  // namespace attention

Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v, const SdpaOptions& options) {
  const char* op = "scaled_dot_product_attention";
  return attention::attend(op, inputs_of(op, q, k, v, {}, {}, 1, options), options);
}

Tensor dcmha(const Tensor& q, const Tensor& k, const Tensor& v, const HeadMixing& pre, const HeadMixing& post,
             const DcmhaOptions& options) {
  return attention::attend("dcmha", inputs_of("dcmha", q, k, v, pre, post, options.groups, options), options);
}

AttentionMaps attention_maps(const Tensor& q, const Tensor& k, const HeadMixing& pre, const HeadMixing& post,
                             const DcmhaOptions& options) {
  const DcmhaInputs x = inputs_of("attention_maps", q, k, k, pre, post, options.groups, options);
  check_inputs("attention_maps", x);
  check(!options.documents && options.key_lengths.empty(), "attention_maps",
        "gives the maps of whole sequences, not of documents or of key_lengths");
  check(!options.attend && !options.bias && options.dropout == 0, "attention_maps",
        "gives the maps without attend, bias and dropout");
  attention::check_options("attention_maps", options);
  return reference_maps(attention::with_wide_type(x), {.softcap = options.softcap});
}

}  // namespace braid
