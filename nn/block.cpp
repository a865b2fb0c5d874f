#include "braid/nn/block.h"

#include "braid/autograd/ops.h"

namespace braid::nn {

Block::Norm Block::make_norm(const BlockOptions& o) {
  if (o.layer_norm) return LayerNorm(o.attention.width, o.norm_eps);
  return RmsNorm(o.attention.width, o.norm_eps);
}

Block::Block(const BlockOptions& o, RandomKey key)
    : parallel_(o.parallel_residual),
      attention_(o.attention, child(key, "attention")),
      attention_norm_(make_norm(o)),
      ffn_norm_(make_norm(o)) {
  RandomKey ffn_key = child(key, "feed_forward");
  if (o.swiglu) {
    feed_forward_ = SwiGlu(o.attention.width, o.hidden, o.gates, o.attention.projection, ffn_key);
  } else {
    feed_forward_ = GeluMlp(o.attention.width, o.hidden, o.attention.projection, ffn_key);
  }
}

Tensor Block::operator()(const Tensor& x, const Rope* rope, LayerCache* cache,
                         const ActivationObserver* observer) const {
  auto call = [](const auto& layer, const Tensor& in) {
    return std::visit([&](const auto& l) { return l(in); }, layer);
  };
  auto show = [&](const char* name, const Tensor& value) {
    if (observer) (*observer)(name, value);
    return value;
  };
  Tensor a = show("attn_out", attention_(call(attention_norm_, x), rope, cache, observer));
  SumAndNorm h = parallel_ ? SumAndNorm{add(x, a), call(ffn_norm_, x)}
                           : std::visit([&](const auto& norm) { return norm(x, a); }, ffn_norm_);
  return add(h.sum, show("ffn_out", call(feed_forward_, h.y)));
}

void Block::visit(Visitor& v) const {
  auto name = [&](const char* text, auto& layer) { std::visit([&](auto& l) { v(text, l); }, layer); };
  v("attention", attention_);
  name("feed_forward", feed_forward_);
  name("attention_norm", attention_norm_);
  name("ffn_norm", ffn_norm_);
}

}  // namespace braid::nn
