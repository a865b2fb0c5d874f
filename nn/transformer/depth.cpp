#include "braid/nn/transformer/depth.h"

#include "braid/autograd/composed.h"
#include "braid/autograd/ops.h"
#include "braid/autograd/recompute.h"
#include "braid/nn/rule_list.h"
#include "braid/tensor/base/strings.h"

namespace braid::nn {

static RuleList<DepthRule>& rules() {
  static RuleList<DepthRule> list("connections over depth", detail::built_in_depth_rules());
  return list;
}

void register_depth_rule(const DepthRule& rule) { rules().add(rule); }

const std::vector<DepthRule>& depth_rules() { return rules().all(); }

const DepthRule& depth_rule_named(const std::string& name) {
  if (const DepthRule* rule = rules().find(name)) return *rule;
  const std::vector<std::string> names = rules().names();
  fail(ErrorKind::setting, "unknown connections over depth '" + braid::detail::preview(name) + "'" +
                               braid::detail::did_you_mean(name, names) + ": expected plain, or one of " +
                               braid::detail::join(names, ", "));
}

Tensor through(const DepthConnections& connections, const std::vector<Block>& blocks, const Tensor& x,
               const Pass& pass) {
  const std::unique_ptr<DepthPass> state = connections.begin(x, pass);
  for (size_t i = 0; i < blocks.size(); ++i) {
    const Pass of_block = pass.layer(i);
    const Block& block = blocks[i];
    const bool again = of_block.recomputes() && !block.gives(of_block);
    const auto run = [&](const Segment& layer, const std::vector<Tensor>& inputs) {
      return again ? recompute(layer, inputs) : layer(inputs);
    };
    const AttentionInputs in = state->attention(i);
    const std::vector<Tensor> inputs = in.k ? std::vector<Tensor>{in.q, in.k, in.v} : std::vector<Tensor>{in.q};
    const Tensor a = run(
        [&block, of_block](const std::vector<Tensor>& t) {
          return block.attend(t.size() == 1 ? AttentionInputs(t[0]) : AttentionInputs(t[0], t[1], t[2]), of_block);
        },
        inputs);
    const Tensor f =
        run([&block, of_block](const std::vector<Tensor>& t) { return block.feed_forward(t[0], of_block); },
            {state->feed_forward(i, a)});
    state->end(i, f);
    if (pass.observer) pass.observe(state->hidden(), "hidden.", i + 1);
  }
  return state->hidden();
}

Tensor unweighted_rms_norm(const Tensor& x, double eps) {
  return rms_norm(x, full({x.dim(-1)}, 1, x.dtype(), x.device()), eps);
}

std::vector<Tensor> weighted_sums(const Tensor& w, const std::vector<Tensor>& x) {
  std::vector<Tensor> inputs = {w};
  inputs.insert(inputs.end(), x.begin(), x.end());
  const Tensor y = recompute(  // (B, t, C, D)
      [](const std::vector<Tensor>& in) {
        std::vector<Tensor> rows;  // (B, t, 1, D)
        for (size_t j = 1; j < in.size(); ++j) rows.push_back(unsqueeze(in[j], 2));
        return matmul(in[0], concat(rows, 2));
      },
      inputs, SegmentCost::once);
  std::vector<Tensor> sums;
  for (const Tensor& sum : split(y, std::vector<int64_t>(static_cast<size_t>(w.dim(2)), 1), 2))
    sums.push_back(contiguous(squeeze(sum, 2)));
  return sums;
}

}  // namespace braid::nn
