#include "braid/autograd/recompute.h"

#include <algorithm>
#include <optional>

#include "braid/autograd/detail/segment.h"
#include "braid/tensor/base/recording.h"
#include "braid/tensor/trace_device.h"

namespace braid {

constinit thread_local detail::TensorsUsed* detail::TensorsUsed::current = nullptr;

detail::TensorsUsed::TensorsUsed() : before_(current, this) {}

void detail::TensorsUsed::note(Inputs inputs) {
  if (!current) return;
  for (const Tensor& x : inputs) {
    if (!requires_grad(x)) continue;
    const auto same = [&](const Tensor& t) { return t.node() == x.node(); };
    if (std::none_of(current->list_.begin(), current->list_.end(), same)) current->list_.push_back(x);
  }
}

Tensor recompute(Segment f, const std::vector<Tensor>& inputs, SegmentCost cost) {
  if (!detail::recording) return f(inputs);
  Tensor y;
  TracedFlops once;
  std::vector<Tensor> captured, all = inputs;
  {
    NoGrad off;
    const detail::TensorsUsed used;
    const TracedApart first;
    y = f(inputs);
    once = first.flops();
    first.add(once, 1);
    detail::TensorsUsed::note({&y, 1});  // f may return what it was given or captured
    for (const Tensor& t : used.list()) {
      const bool is_input = std::any_of(inputs.begin(), inputs.end(),
                                        [&](const Tensor& x) { return requires_grad(x) && x.node() == t.node(); });
      if (!is_input) captured.push_back(t);
    }
  }
  all.insert(all.end(), captured.begin(), captured.end());
  return record("recompute", y, all, [f = std::move(f), inputs, captured, cost, once](const Tensor& dy) -> Grads {
    std::optional<TracedApart> apart;
    if (cost == SegmentCost::once) TracedApart().add(once, -1);
    if (cost == SegmentCost::twice) apart.emplace().add(once, 2);
    std::vector<Tensor> leaves;
    for (const Tensor& x : inputs) {
      leaves.push_back(x ? x.detach() : Tensor());
      if (requires_grad(x)) require_grad(leaves.back());
    }
    EnableGrad on;
    Tensor again;
    {
      MemoryScope scope(MemoryUse::activations);
      again = f(leaves);
    }
    if (requires_grad(again)) detail::backward_in_segment(again, dy, captured);
    Grads grads;
    for (const Tensor& leaf : leaves) grads.push_back(requires_grad(leaf) ? grad(leaf) : Tensor());
    grads.resize(inputs.size() + captured.size());
    return grads;
  });
}

}  // namespace braid
