#include "braid/models/families/seq2seq/greedy.h"

#include <algorithm>
#include <cmath>

#include "braid/autograd.h"

namespace braid::models {

namespace {

// logits (B, 1, V) -> the likeliest of each row.
std::vector<int32_t> likeliest(const Tensor& logits) {
  const int64_t B = logits.dim(0), V = logits.dim(2);
  const std::vector<float> all = logits.detach().to(kCpu).to(DType::f32).to_vector<float>();
  std::vector<int32_t> best;
  for (int64_t b = 0; b < B; ++b) {
    const auto row = all.begin() + b * V;
    check(std::all_of(row, row + V, [](float x) { return std::isfinite(x); }), ErrorKind::numerical,
          "logits are NaN or Inf: nothing can be decoded");
    best.push_back(static_cast<int32_t>(std::max_element(row, row + V) - row));
  }
  return best;
}

}  // namespace

std::vector<std::vector<int32_t>> decode_greedily(const Seq2Seq& model, const Tensor& source_ids, int64_t max_symbols,
                                                  const std::vector<int64_t>& source_lengths) {
  const NoGrad off;
  const int64_t B = source_ids.dim(0);
  const Seq2Seq::Encoded source = model.encode(source_ids.to(model.device()), nullptr, source_lengths);
  KvCache cache = model.make_cache(max_symbols);
  std::vector<std::vector<int32_t>> found(static_cast<size_t>(B));
  std::vector<int32_t> last(static_cast<size_t>(B), kPairBegin);
  std::vector<bool> ended(static_cast<size_t>(B));
  for (int64_t t = 0; t < max_symbols && !std::all_of(ended.begin(), ended.end(), [](bool e) { return e; }); ++t) {
    const Tensor ids = from_vector(last, {B, 1}).to(model.device());
    last = likeliest(model.logits(model.decode(ids, source, &cache)));
    for (size_t b = 0; b < last.size(); ++b) {
      ended[b] = ended[b] || last[b] == kPairEnd;
      if (!ended[b]) found[b].push_back(last[b]);
    }
  }
  return found;
}

ExactMatch exact_match(const Seq2Seq& model, const PairTask& task, text::Split split,
                       const std::vector<std::vector<int64_t>>& batches, const std::function<bool()>& stop) {
  ExactMatch counts;
  for (const std::vector<int64_t>& indices : batches) {
    if (stop && stop()) break;
    if (indices.empty()) continue;
    const Batch batch = pair_batch(task, split, indices);
    const auto found = decode_greedily(model, batch.at("source_ids"), task.target_length());
    const std::vector<int32_t> targets = batch.at("targets").to_vector<int32_t>();
    for (size_t i = 0; i < indices.size(); ++i) {
      const auto row = targets.begin() + static_cast<int64_t>(i) * task.target_length();
      const std::vector<int32_t> expected(row, std::find(row, row + task.target_length(), kPairEnd));
      ++counts.pairs;
      counts.exact += found[i] == expected;  // what never ends is longer than every target
    }
  }
  return counts;
}

}  // namespace braid::models
