// The attention ops: the choice of an implementation, and two of the three. The third, the definition, is
// attention_reference.cpp.
#include <algorithm>
#include <tuple>

#include "braid/autograd/detail/composed_gradients.h"
#include "braid/autograd/ops.h"
#include "braid/autograd/ops/attention_documents.h"
#include "braid/autograd/ops/attention_inputs.h"
#include "braid/autograd/ops/attention_reference.h"
#include "braid/autograd/saved.h"
#include "braid/tensor/called_op.h"
#include "braid/tensor/kernels/backend.h"
#include "braid/tensor/parallel.h"
#include "braid/tensor/trace_device.h"

namespace braid {

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
}

// ---- the tensors of a call ----

using TensorList = std::vector<Tensor>;  // in the order of for_each_tensor

template <class Call>
TensorList list_of(const Call& call) {
  TensorList list;
  for_each_tensor([&](const AttentionRole&, const Tensor& t) { list.push_back(t); }, call);
  return list;
}

// For the inputs whose gradient is required (flags in the order of for_each_tensor): make(role, input).
template <class Make>
DcmhaGradients gradients_for(const DcmhaInputs& x, const std::vector<bool>& required, Make&& make) {
  DcmhaGradients gradients;
  size_t i = 0;
  for_each_tensor(
      [&](const AttentionRole& role, const Tensor& input, Tensor& gradient) {
        if (required[i++]) gradient = make(role, input);
      },
      x, gradients);
  return gradients;
}

// For a gradient that several calls add to: a sum in 16 bits would lose what is small beside it.
Tensor zeros_for_sum(const Tensor& input) {
  return zeros(input.shape(), accumulate_type(input.dtype()), input.device());
}

Grads gradients_of_type(DType dtype, const DcmhaGradients& gradients) {
  Grads list = list_of(gradients);
  for (Tensor& g : list) {
    if (g) g = g.to(dtype);
  }
  return list;
}

DcmhaInputs part_of(const DcmhaInputs& x, const QueryBlock& block) {
  DcmhaInputs part = x;
  for_each_tensor([&](const AttentionRole& role, Tensor& t) { t = block.part(t, role.positions); }, part);
  part.mask.offset += block.t0 - block.s0;
  return part;
}

// A call as the implementations take it: the op's name, the tensors that it records, and the same tensors without their
// history, so that a closure keeps no graph alive.
struct Call {
  const char* op;
  TensorList recorded;
  std::vector<bool> required;  // gradients
  DcmhaInputs inputs;
  std::vector<detail::History> histories;  // for closures, which keep no values but those of `inputs`

  Call(const char* name, const DcmhaInputs& x)
      : op(name), recorded(list_of(x)), inputs(map_tensors(x, [](const Tensor& t) { return t.detach(); })) {
    for (const Tensor& t : recorded) {
      required.push_back(requires_grad(t));
      histories.emplace_back(t);
    }
  }
};

// The derivative by ops that record: that of the definition, document by document.
Grads recorded_gradients(const DcmhaInputs& x, const std::vector<detail::History>& histories,
                         const std::vector<QueryBlock>& documents, const Tensor& dy) {
  TensorList inputs = list_of(x);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i]) inputs[i] = histories[i].on(inputs[i]);
  const auto definition = [&](const TensorList& list) {
    DcmhaInputs call = x;
    size_t i = 0;
    for_each_tensor([&](const AttentionRole&, Tensor& t) { t = list[i++]; }, call);
    return TensorList{documents.empty() ? attention_reference(call) : attention_reference(call, documents)};
  };
  return detail::composed_gradients(inputs, definition, {dy});
}

// ---- chunked ----

// With documents: each of them cut for itself.
std::vector<QueryBlock> chunks_of(const DcmhaInputs& x, const std::vector<QueryBlock>& documents, int64_t chunk) {
  std::vector<QueryBlock> blocks;
  for (const QueryBlock& document : documents) {
    for (QueryBlock block : chunks_of(part_of(x, document), {}, chunk)) {
      block.b0 += document.b0, block.t0 += document.t0, block.s0 += document.s0;
      blocks.push_back(block);
    }
  }
  if (!documents.empty()) return blocks;
  const int64_t B = x.q.dim(0), T = x.q.dim(1), S = x.k.dim(1);
  const int64_t keys = x.mask.causal && x.mask.window > 0 ? std::min(S, x.mask.window) : S;
  const int64_t row_bytes = std::max<int64_t>(1, x.q.dim(2) * keys * size_of(x.q.dtype()));
  const int64_t rows = chunk > 0 ? chunk : std::clamp<int64_t>(kAttentionChunkBytes / row_bytes, 16, 128);
  const int64_t samples = std::clamp<int64_t>(kAttentionChunkBytes / (row_bytes * std::min(rows, T)), 1, B);
  return split_queries(B, T, S, x.mask, samples, rows);
}

// Whether samples have no key at all: their results are 0, and no kernel is called for them.
bool has_gaps(const std::vector<QueryBlock>& blocks) {
  return std::ranges::any_of(blocks, [](const QueryBlock& block) { return block.keys == 0; });
}

// The reference block by block. Backward recomputes each block, so that nothing but the inputs stays alive in between,
// and adds the block's gradients to their places: several blocks to those of a key and of the static term.
Tensor chunked(const Call& call, const std::vector<QueryBlock>& documents, int64_t chunk) {
  const DcmhaInputs& x = call.inputs;
  std::vector<QueryBlock> blocks = chunks_of(x, documents, chunk);
  Tensor y = has_gaps(documents) ? zeros_like(x.q) : empty_like(x.q);
  std::erase_if(blocks, [](const QueryBlock& block) { return block.keys == 0; });
  using enum AttentionRole::Positions;
  {
    const NoGrad off;
    for (const QueryBlock& block : blocks) block.part(y, queries).copy_(attention_reference(part_of(x, block)));
  }
  auto backward_pass = [x, required = call.required, blocks, documents,
                        histories = call.histories](const Tensor& dy) -> Grads {
    if (recording()) return recorded_gradients(x, histories, documents, dy);
    DcmhaGradients gradients = gradients_for(x, required, [](const AttentionRole& role, const Tensor& input) {
      return role.positions == queries ? zeros_like(input) : zeros_for_sum(input);
    });
    for (const QueryBlock& block : blocks) {
      DcmhaInputs leaves = map_tensors(part_of(x, block), [](const Tensor& t) { return t.detach(); });
      for_each_tensor(
          [](const AttentionRole&, Tensor& leaf, const Tensor& gradient) {
            if (gradient) require_grad(leaf);
          },
          leaves, gradients);
      const EnableGrad on;
      backward(attention_reference(leaves), block.part(dy, queries).contiguous());
      for_each_tensor(
          [&](const AttentionRole& role, const Tensor& leaf, Tensor& gradient) {
            if (gradient && grad(leaf)) block.part(gradient, role.positions).add_(grad(leaf).to(gradient.dtype()));
          },
          leaves, gradients);
    }
    return gradients_of_type(x.q.dtype(), gradients);
  };
  return record(call.op, y, std::span<const Tensor>(call.recorded), differentiable(backward_pass));
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
    if (recording()) return recorded_gradients(inputs, histories, {}, dy);
    DcmhaGradients gradients = gradients_for(inputs, required, [&plan](const AttentionRole&, const Tensor& input) {
      return gradient_memory(input, plan.backward);
    });
    device.attention.backward(plan, inputs, y, lse, dy.contiguous(), gradients);
    return list_of(gradients);
  };
  return record(call.op, y, std::span<const Tensor>(call.recorded), differentiable(backward_pass));
}

// Calls each(i) for every document. On the CPU short ones are shared out among the threads, since a short call keeps
// few of them busy; a long one has all threads to itself.
template <class Each>
void for_each_document(const std::vector<QueryBlock>& documents, bool on_cpu, Each&& each) {
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
Tensor fused(const Call& call, const DcmhaInputs& x, const std::vector<QueryBlock>& documents,
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
    if (recording()) return recorded_gradients(inputs, histories, documents, dy);
    const DType dtype = inputs.q.dtype(), part_type = on_cpu ? accumulate_type(dtype) : dtype;
    const Tensor d_result = dy.contiguous();
    DcmhaGradients gradients = gradients_for(inputs, required, [](const AttentionRole& role, const Tensor& input) {
      return role.positions == none ? zeros_for_sum(input) : zeros_like(input);
    });
    std::vector<DcmhaGradients> parts(documents.size(), gradients);
    for_each_document(documents, on_cpu, [&](size_t i) {
      const QueryBlock& document = documents[i];
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
  const bool may_fuse = options.impl == AttentionImpl::fused || options.impl == AttentionImpl::automatic;
  const bool no_elements = x.q.numel() == 0 || x.k.numel() == 0;
  const std::vector<QueryBlock> documents = options.documents             ? document_blocks(op, x, *options.documents)
                                            : options.key_lengths.empty() ? std::vector<QueryBlock>()
                                                                          : length_blocks(op, x, options.key_lengths);
  const AttentionExtras extras = extras_of(op, x, options);
  if (extras.attend || extras.bias || extras.dropout > 0 || x.v.dim(3) != x.k.dim(3)) {
    const bool reference = options.impl == AttentionImpl::reference;
    check(reference || options.impl == AttentionImpl::automatic, op,
          "attend, bias, dropout and values of another size take the definition: impl must be automatic or reference");
    const CalledOp called(op);
    if (no_elements) return attention_reference(x, extras);
    const std::vector<QueryBlock> blocks = chunks_of(x, documents, options.chunk);
    return attention_reference(x, blocks, extras, !reference && blocks.size() > 1);
  }
  if (options.impl == AttentionImpl::reference || no_elements)
    return documents.empty() ? attention_reference(x) : attention_reference(x, documents);
  const Call call(op, x);
  if (may_fuse) {
    const DcmhaInputs prepared = rows_contiguous(call.inputs);
    std::vector<AttentionPlan> plans;
    if (documents.empty()) plans.push_back(plan_of(prepared, recording(call.recorded)));
    for (const QueryBlock& document : documents)
      plans.push_back(document.keys == 0 ? AttentionPlan{}
                                         : plan_of(part_of(prepared, document), recording(call.recorded)));
    std::optional<std::string> unsupported_reason;
    for (const AttentionPlan& plan : plans)
      if (plan.unsupported_reason) unsupported_reason = plan.unsupported_reason;
    check(!unsupported_reason || options.impl == AttentionImpl::automatic, op,
          [&] { return *unsupported_reason + "; or use AttentionImpl::automatic, which then takes `chunked`"; });
    if (!unsupported_reason)
      return documents.empty() ? fused(call, prepared, plans[0]) : fused(call, prepared, documents, plans);
    add_attention_use("forward", "chunked", *unsupported_reason);
  }
  return chunked(call, documents, options.chunk);
}

// In a type in which scores keep their digits, recorded.
DcmhaInputs with_wide_type(const DcmhaInputs& x) {
  return map_tensors(x, [](const Tensor& t) { return cast(t, accumulate_type(t.dtype())); });
}

}  // namespace

Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v, const SdpaOptions& options) {
  return attend("scaled_dot_product_attention", inputs_of(q, k, v, {}, {}, 1, options), options);
}

Tensor dcmha(const Tensor& q, const Tensor& k, const Tensor& v, const HeadMixing& pre, const HeadMixing& post,
             const DcmhaOptions& options) {
  return attend("dcmha", inputs_of(q, k, v, pre, post, options.groups, options), options);
}

AttentionMaps attention_maps(const Tensor& q, const Tensor& k, const HeadMixing& pre, const HeadMixing& post,
                             const DcmhaOptions& options) {
  const DcmhaInputs x = inputs_of(q, k, k, pre, post, options.groups, options);
  check_inputs("attention_maps", x);
  check(!options.documents && options.key_lengths.empty(), "attention_maps",
        "gives the maps of whole sequences, not of documents or of key_lengths");
  check(!options.attend && !options.bias && options.dropout == 0, "attention_maps",
        "gives the maps without attend, bias and dropout");
  check_options("attention_maps", options);
  return reference_maps(with_wide_type(x));
}

}  // namespace braid
