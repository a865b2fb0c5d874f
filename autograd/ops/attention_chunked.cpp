// The reference block by block: memory for the scores of one block, whatever the options are.
#include <algorithm>

#include "braid/autograd/ops.h"
#include "braid/autograd/ops/attention_call.h"
#include "braid/tensor/trace_device.h"

namespace braid::attention {

namespace {

// With parts: each of them cut for itself.
std::vector<CallPart> chunks_of(const DcmhaInputs& x, const std::vector<CallPart>& parts, int64_t chunk) {
  std::vector<CallPart> blocks;
  for (const CallPart& part : parts) {
    for (CallPart block : chunks_of(part_of(x, part), {}, chunk)) {
      block.b0 += part.b0, block.t0 += part.t0, block.s0 += part.s0, block.shift = part.shift;
      blocks.push_back(block);
    }
  }
  if (!parts.empty()) return blocks;
  const int64_t B = x.q.dim(0), T = x.q.dim(1), S = x.k.dim(1);
  const int64_t keys = x.mask.causal && x.mask.window > 0 ? std::min(S, x.mask.window) : S;
  const int64_t row_bytes = std::max<int64_t>(1, x.q.dim(2) * keys * size_of(x.q.dtype()));
  const int64_t rows = chunk > 0 ? chunk : std::clamp<int64_t>(kAttentionChunkBytes / row_bytes, 16, 128);
  const int64_t samples = std::clamp<int64_t>(kAttentionChunkBytes / (row_bytes * std::min(rows, T)), 1, B);
  for (const QueryBlock& block : split_queries(B, T, S, x.mask, samples, rows)) blocks.push_back({block, 0});
  return blocks;
}

}  // namespace

// Backward recomputes each block, so that nothing but the inputs stays alive in between, and adds the block's gradients
// to their places: several blocks to those of a key, of the static term and of a bias that samples share.
Tensor chunked(const Call& call, const std::vector<CallPart>& parts, int64_t chunk) {
  const DcmhaInputs& x = call.inputs;
  std::vector<CallPart> blocks = chunks_of(x, parts, chunk);
  Shape shape = x.q.shape();
  shape[3] = x.v.dim(3);
  const auto no_keys = [](const CallPart& block) { return block.keys == 0; };
  const bool gaps = std::ranges::any_of(blocks, no_keys);  // rows without a key, which no block writes
  Tensor y = gaps ? zeros(shape, x.q.dtype(), x.q.device()) : empty(shape, x.q.dtype(), x.q.device());
  std::erase_if(blocks, no_keys);
  using enum AttentionRole::Positions;
  {
    const NoGrad off;
    for (const CallPart& block : blocks) {
      const DcmhaInputs inputs = part_of(x, block);
      const TracedApart ops;  // a trace counts what a kernel would compute
      ops.add_attention(inputs, 1);
      block.part(y, queries).copy_(attention_reference(inputs, part_of(call.extras, x, block)));
    }
  }
  auto backward_pass = [x, extras = call.extras, required = call.required, blocks, parts,
                        histories = call.histories](const Tensor& dy) -> Grads {
    if (recording()) return recorded_gradients(x, extras, histories, parts, dy);
    DcmhaGradients gradients = gradients_for(x, required, [](const AttentionRole& role, const Tensor& input) {
      return role.positions == queries ? zeros_like(input) : zeros_for_sum(input);
    });
    const bool needs_bias = extras.bias && required[required.size() - 2];
    const Tensor bias_gradient = needs_bias ? zeros_for_sum(extras.bias) : Tensor();
    for (const CallPart& block : blocks) {
      DcmhaInputs leaves = map_tensors(part_of(x, block), [](const Tensor& t) { return t.detach(); });
      AttentionExtras block_extras = part_of(extras, x, block);
      for_each_tensor(
          [](const AttentionRole&, Tensor& leaf, const Tensor& gradient) {
            if (gradient) require_grad(leaf);
          },
          leaves, gradients);
      if (bias_gradient) require_grad(block_extras.bias);
      const EnableGrad on;
      const TracedApart ops;
      ops.add_attention(leaves, 2);
      backward(attention_reference(leaves, block_extras), block.part(dy, queries).contiguous());
      for_each_tensor(
          [&](const AttentionRole& role, const Tensor& leaf, Tensor& gradient) {
            if (gradient && grad(leaf)) block.part(gradient, role.positions).add_(grad(leaf).to(gradient.dtype()));
          },
          leaves, gradients);
      if (bias_gradient && grad(block_extras.bias))
        entries_of(bias_gradient, block).add_(grad(block_extras.bias).to(bias_gradient.dtype()));
    }
    Grads list = gradients_of_type(x.q.dtype(), gradients);
    if (!extras.empty()) list.insert(list.end(), {needs_bias ? bias_gradient.to(extras.bias.dtype()) : Tensor(), {}});
    return list;
  };
  return record(call.op, y, std::span<const Tensor>(call.recorded), differentiable(backward_pass));
}

}  // namespace braid::attention
