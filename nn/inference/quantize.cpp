#include "braid/nn/inference/quantize.h"

#include <algorithm>
#include <map>

#include "braid/autograd/int8.h"
#include "braid/nn/layers/linear.h"

namespace braid::nn {

namespace {

void each_linear(const Module& m, const std::function<void(const Linear&)>& action) {
  const auto enter = [&](const std::string&, const Module& child) {
    const auto* layer = dynamic_cast<const Linear*>(&child);
    if (layer && layer->weight()) action(*layer);
  };
  Visitor visitor([](const std::string&, const Tensor&, const ShardRule&) {}, enter);
  enter("", m);
  m.visit(visitor);
}

}  // namespace

void Linear::quantize() {
  if (scale_) return;
  merge_lora();
  Int8Weight w = quantize_int8(weight_.detach());
  weight_ = w.values;
  scale_ = w.scale;
}

void quantize_weights(Module& m) {
  MemoryScope scope(MemoryUse::weights);
  freeze(m);
  each_linear(m,
              [](const Linear& layer) { const_cast<Linear&>(layer).quantize(); });  // a member of m, as in module.cpp
}

bool is_quantized(const Module& m) {
  return std::ranges::any_of(parameters(m), [](const NamedTensor& p) { return !is_float(p.value.dtype()); });
}

int64_t quantized_bytes(const Module& m) {
  std::map<const void*, int> uses;  // outside of linear layers, with which an embedding table may be tied
  Visitor visitor([&](const std::string&, const Tensor& p, const ShardRule&) { ++uses[p.id()]; });
  m.visit(visitor);
  int64_t bytes = 0;
  each_linear(m, [&](const Linear& layer) {
    --uses[layer.weight().id()];
    bytes += layer.weight().numel() + 4 * layer.weight().dim(0);
  });
  for (const NamedTensor& p : parameters(m)) bytes += uses[p.value.id()] > 0 ? 4 * p.value.numel() : 0;
  return bytes;
}

}  // namespace braid::nn
