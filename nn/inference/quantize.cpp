#include "braid/nn/inference/quantize.h"

#include <algorithm>
#include <map>

#include "braid/autograd/int8.h"
#include "braid/nn/layers/linear.h"
#include "braid/tensor/base/integers.h"

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

void Linear::quantize(int bits) {
  if (scale_) return;
  merge_lora();
  if (bits == 4) return set_quantized(quantize_groups(weight_.detach(), 4));
  Int8Weight w = quantize_int8(weight_.detach());
  weight_ = w.values;
  scale_ = w.scale;
}

void Linear::set_quantized(const GroupWeight& weight) {
  const GroupPanels panels = in_panels(weight);
  weight_ = panels.values;
  scale_ = panels.scale;
}

void quantize_weights(Module& m, int bits) {
  MemoryScope scope(MemoryUse::weights);
  freeze(m);
  each_linear(m,
              [&](const Linear& layer) { const_cast<Linear&>(layer).quantize(bits); });  // a member, as in module.cpp
}

int quantized_bits(const Module& m) {
  int bits = 0;
  each_linear(m, [&](const Linear& layer) {
    if (layer.bits() > 0) bits = bits > 0 ? std::min(bits, layer.bits()) : layer.bits();
  });
  return bits;
}

int64_t quantized_bytes(const Module& m, int bits) {
  std::map<const void*, int> uses;  // outside of linear layers, with which an embedding table may be tied
  Visitor visitor([&](const std::string&, const Tensor& p, const ShardRule&) { ++uses[p.id()]; });
  m.visit(visitor);
  int64_t bytes = 0;
  each_linear(m, [&](const Linear& layer) {
    --uses[layer.weight().id()];
    const int64_t out = layer.weight().dim(0), in = layer.weight().dim(1);
    bytes += out * (bits == 4 ? braid::detail::ceil_div(in, kGroup) * (kGroup / 2 + 2) : in + 4);
  });
  for (const NamedTensor& p : parameters(m)) bytes += uses[p.value.id()] > 0 ? 4 * p.value.numel() : 0;
  return bytes;
}

}  // namespace braid::nn
