// The sequences that a model is given: with a past in a cache, or packed with documents.
#include "braid/autograd/detail/linear_loss.h"
#include "braid/distributed/parallel/replicated_rows.h"
#include "braid/distributed/parallel/sequence_parallel.h"
#include "braid/models/families/dcformer/model.h"
#include "braid/models/whole_parameters.h"
#include "braid/tensor/strict.h"

namespace braid::models {

bool Dcformer::one_process() const {
  return WholeParameters::alive() || (mesh_.tensor.size() == 1 && mesh_.context.size() == 1);
}

KvCache Dcformer::make_cache(int64_t capacity) const {
  check(capacity >= 1 && capacity <= config_.block_size, "dcformer", [&] {
    return str("a cache of ", capacity, " positions was requested; the model's longest sequence is ",
               config_.block_size);
  });
  KvCache cache;
  for (int64_t i = 0; i < config_.n_layer; ++i) {
    // A local layer keeps what the wider of its two windows can reach.
    cache.layers.emplace_back(capacity, std::max(config_.keys_of_layer(i, false), config_.keys_of_layer(i, true)));
  }
  return cache;
}

nn::Pass Dcformer::pass(const Tensor& positions, const std::shared_ptr<const dist::SequenceParallel>& rows,
                        const nn::SampleRandom& random) const {
  nn::Pass pass{.rope = rope_,
                .local_rope = local_rope_,
                .shards = rows,
                .random = random,
                .dropout = dropout_,
                .recompute = recompute_};
  if (rows) {  // those of this rank
    std::vector<int64_t> own;
    for (const dist::Range& range : rows->rows().own)
      for (int64_t p = range.begin; p < range.end; ++p) own.push_back(p);
    pass.random = random.of_rows(std::move(own));
  }
  if (!rows && !one_process()) pass.shards = std::make_shared<dist::ReplicatedRows>(mesh_.tensor);
  if (!positions) return pass;
  const Tensor own = rows ? rows->local_tokens(positions) : positions;
  pass.rope = rope_.at(own);
  if (local_rope_) pass.local_rope = local_rope_.at(own);
  pass.documents = std::make_shared<const std::vector<Document>>(documents_of(positions));
  return pass;
}

Tensor Dcformer::hidden(const Tensor& ids, KvCache* cache, const nn::ActivationObserver* observer) const {
  return hidden(ids, {}, cache, observer);
}

void Dcformer::observe(const Batch& batch, const nn::ActivationObserver& observer) const {
  hidden(batch.at("input_ids"), batch.has(kPositions) ? batch.at(kPositions) : Tensor(), nullptr, &observer);
}

Tensor Dcformer::loss_sum(const Tensor& ids, const Tensor& targets) const { return loss_sum(ids, targets, {}, {}); }

Tensor Dcformer::loss_sum(const Batch& batch) const {
  return loss_sum(batch.at("input_ids"), batch.at("targets"), batch.has(kPositions) ? batch.at(kPositions) : Tensor(),
                  dropout_ > 0 ? sample_random(batch) : nn::SampleRandom());
}

// Strict: of 16 bits in f32, not rounded, as the loss has them.
Tensor Dcformer::output_products(const Tensor& hidden) const {
  const bool recorded = recording({hidden, output_.weight() ? output_.weight() : embeddings_.weight()});
  if (strict_bits() && !output_.quantized() && !recorded) return detail::wide_linear(hidden, output_weight());
  return output_.weight() ? output_(hidden) : linear(hidden, output_weight());
}

Tensor Dcformer::loss_of_hidden(const Tensor& hidden, const Tensor& targets) const {
  if (output_.quantized()) return LanguageModel::loss_of_hidden(hidden, targets);
  return linear_cross_entropy(hidden, output_weight(), targets, loss_options());
}

}  // namespace braid::models
