#include "braid/distributed/parallel/parallel_block.h"

#include "braid/autograd/ops.h"
#include "braid/distributed/parallel/mappings.h"

namespace braid::dist {

namespace {
struct FfnParts {
  Partition hidden, blocks;  // of F and of E
};
FfnParts ffn_parts(const nn::BlockOptions& o, int ranks) {
  int64_t gates = o.swiglu ? o.gates : 0, units = gates > 0 ? gates : o.hidden;  // what cannot be cut further
  check(units >= ranks, ErrorKind::setting, [&] {
    return "parallel.tensor = " + std::to_string(ranks) + " is more than the " + std::to_string(units) +
           (gates > 0 ? " gated blocks" : " hidden units") + " of the feed-forward layer";
  });
  if (gates == 0) return {even_partition(o.hidden, ranks), {}};
  Partition blocks = even_partition(gates, ranks);
  return {widened(blocks, o.hidden / gates), blocks};
}
}  // namespace

std::vector<std::pair<std::string, Shard>> block_shards(const nn::BlockOptions& o, int ranks) {
  std::vector<std::pair<std::string, Shard>> list;
  for (auto& [name, shard] : attention_shards(o.attention, ranks)) list.push_back({"attention." + name, shard});
  Partition hidden = ffn_parts(o, ranks).hidden;
  for (const char* name : {"w1.weight", "w1.bias", "w3.weight", "w3.bias"})
    list.push_back({std::string("feed_forward.") + name, {0, hidden}});
  list.push_back({"feed_forward.w2.weight", {1, hidden}});
  return list;
}

ParallelMlp::ParallelMlp(const nn::BlockOptions& o, const ProcessMesh& mesh)
    : mesh_(mesh), swiglu_(o.swiglu), gates_(o.swiglu ? o.gates : 0) {
  FfnParts parts = ffn_parts(o, mesh.tensor.size());
  hidden_ = parts.hidden;
  blocks_ = parts.blocks;
  int64_t D = o.attention.width, F = hidden_.size(mesh.tensor.rank());
  bool bias = o.attention.projection.bias;
  nn::Linear::Options options{.bias = bias, .init = nn::Init::none()};
  gate_ = nn::Linear(D, F, options, {});
  if (swiglu_) up_ = nn::Linear(D, F, options, {});
  down_ = RowParallelLinear(F, D, bias, mesh.tensor);
  if (gates_ > 0) block_gate_ = nn::Linear(D, gates_, options, {});
}

Tensor ParallelMlp::operator()(const Tensor& u, const SequenceShard& rows) const {
  Tensor x = all_gather(u, 1, rows.over_tensor, mesh_.tensor);  // (B, Tc, D)
  Tensor hidden = swiglu_ ? swiglu(gate_(x), up_(x)) : gelu(gate_(x));
  if (gates_ > 0) {
    const Range& mine = blocks_.of[static_cast<size_t>(mesh_.tensor.rank())][0];
    Tensor s = contiguous(slice(softmax(block_gate_(x)), 2, mine.begin, mine.end));  // (B, Tc, our gates)
    Tensor gated =
        mul(reshape(hidden, {-1, mine.size(), hidden.dim(2) / mine.size()}), reshape(s, {-1, mine.size(), 1}));
    hidden = reshape(gated, hidden.shape());
  }
  return down_(hidden, rows.over_tensor);
}

void ParallelMlp::visit(nn::Visitor& v) const {
  v("w1", gate_);
  if (swiglu_) v("w3", up_);
  v("w2", down_);
  if (gates_ > 0) v("mg", block_gate_);
}

ParallelBlock::ParallelBlock(const nn::BlockOptions& o, const ProcessMesh& mesh)
    : parallel_(o.parallel_residual), attention_(o.attention, mesh), feed_forward_(o, mesh) {
  for (Norm* norm : {&attention_norm_, &ffn_norm_}) {
    if (o.layer_norm) {
      *norm = nn::LayerNorm(o.attention.width, o.norm_eps);
    } else {
      *norm = nn::RmsNorm(o.attention.width, o.norm_eps);
    }
  }
}

Tensor ParallelBlock::operator()(const Tensor& x, const SequenceShard& rows, const nn::Rope& rope,
                                 const nn::ActivationObserver* observer) const {
  auto normed = [](const Norm& norm, const Tensor& in) {
    return std::visit([&](const auto& n) { return n(in); }, norm);
  };
  auto show = [&](const char* name, const Tensor& value) {
    if (observer) (*observer)(name, value);
    return value;
  };
  Tensor a = show("attn_out", attention_(normed(attention_norm_, x), rows, rope));
  SumAndNorm h = parallel_ ? SumAndNorm{add(x, a), normed(ffn_norm_, x)}
                           : std::visit([&](const auto& norm) { return norm(x, a); }, ffn_norm_);
  return add(h.sum, show("ffn_out", feed_forward_(h.y, rows)));
}

void ParallelBlock::visit(nn::Visitor& v) const {
  v("attention", attention_);
  v("feed_forward", feed_forward_);
  std::visit([&](auto& norm) { v("attention_norm", norm); }, attention_norm_);
  std::visit([&](auto& norm) { v("ffn_norm", norm); }, ffn_norm_);
}

}  // namespace braid::dist
